//! Fair shares of the scripts that run at the same time: no principal can use all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The scripts of each principal that run now.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Scripts of one principal at the same time.
    limit: usize,
    running: Mutex<HashMap<Arc<str>, usize>>,
}

/// A script that runs. Dropping it frees its place.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    shares: &'a Shares,
    principal: Arc<str>,
}

impl Shares {
    /// Half of all places for each principal.
    pub(crate) fn of(max_running: usize) -> Self {
        Self { limit: max_running.div_ceil(2).max(1), running: Mutex::default() }
    }

    /// A place for one more script of a principal; `None` if its share is used up.
    pub(crate) fn take(&self, principal: &Arc<str>) -> Option<Place<'_>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(Arc::clone(principal)).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(Place { shares: self, principal: Arc::clone(principal) })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut running = self.shares.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_leaves_places_for_others() {
        let shares = Shares::of(4);
        let (ann, bob): (Arc<str>, Arc<str>) = ("key:ann".into(), "key:bob".into());
        let first = shares.take(&ann).unwrap();
        let _second = shares.take(&ann).unwrap();
        assert!(shares.take(&ann).is_none());
        assert!(shares.take(&bob).is_some());
        drop(first);
        assert!(shares.take(&ann).is_some());
        assert_eq!(shares.running.lock().unwrap().len(), 1);
    }
}
