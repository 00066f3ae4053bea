//! Fair shares of the scripts that run at the same time: no principal can use all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The scripts of each principal that run now.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Scripts of one principal at the same time.
    limit: usize,
    /// The slots of the principals that use one, or wait for one.
    slots: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// A script that runs. Dropping it frees its slot.
#[derive(Debug)]
pub(crate) struct ScriptSlot<'a> {
    shares: &'a Shares,
    principal: Arc<str>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Shares {
    /// Half of all slots for each principal.
    pub(crate) fn of(max_running: usize) -> Self {
        Self { limit: max_running.div_ceil(2).max(1), slots: Mutex::default() }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots_of(&self, principal: &Arc<str>) -> Arc<Semaphore> {
        let new = || Arc::new(Semaphore::new(self.limit));
        Arc::clone(self.slots().entry(Arc::clone(principal)).or_insert_with(new))
    }

    fn slot(&self, principal: &Arc<str>, permit: Option<OwnedSemaphorePermit>) -> ScriptSlot<'_> {
        ScriptSlot { shares: self, principal: Arc::clone(principal), permit }
    }

    /// A slot for one more script of a principal; `None` if its share is used up.
    pub(crate) fn take(&self, principal: &Arc<str>) -> Option<ScriptSlot<'_>> {
        let permit = self.slots_of(principal).try_acquire_owned().ok()?;
        Some(self.slot(principal, Some(permit)))
    }

    /// Waits for a slot. Only scripts that another script calls wait: their number is bounded by that script.
    pub(crate) async fn wait(&self, principal: &Arc<str>) -> ScriptSlot<'_> {
        let slots = self.slots_of(principal);
        // The semaphore is never closed.
        let permit = slots.acquire_owned().await.ok();
        self.slot(principal, permit)
    }
}

impl Drop for ScriptSlot<'_> {
    fn drop(&mut self) {
        let mut slots = self.shares.slots();
        drop(self.permit.take());
        // Each script that runs or waits has a reference.
        if slots
            .get(&self.principal)
            .is_some_and(|slots_of_principal| Arc::strong_count(slots_of_principal) == 1)
        {
            slots.remove(&self.principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_leaves_slots_for_others() {
        let shares = Shares::of(4);
        let (ann, bob): (Arc<str>, Arc<str>) = ("key:ann".into(), "key:bob".into());
        let first = shares.take(&ann).unwrap();
        let _second = shares.take(&ann).unwrap();
        assert!(shares.take(&ann).is_none());
        assert!(shares.take(&bob).is_some());
        drop(first);
        assert!(shares.take(&ann).is_some());
        drop(shares.take(&ann));
        assert_eq!(shares.slots().len(), 1);
    }

    #[tokio::test]
    async fn inner_scripts_wait_for_a_slot() {
        let shares = Arc::new(Shares::of(2));
        let ann: Arc<str> = "key:ann".into();
        let first = shares.take(&ann).unwrap();
        let mut waiting = Box::pin(shares.wait(&ann));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(first);
        let second = waiting.await;
        assert!(shares.take(&ann).is_none());
        drop(second);
        assert!(shares.slots().is_empty());
    }
}
