//! Limits the requests in flight over one stream, shared fairly among principals.
//!
//! A principal may take another permit while it holds fewer than [`MAX_SHARE`] times the number of free ones (dynamic thresholds,
//! as switches share buffers). A single principal gets three quarters, two get three sevenths each, and there is always a
//! permit left for another one. The hub itself, which has no principal, may take all free ones. Waiting requests are served
//! round robin by principal, and in FIFO order within a principal.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A principal may hold up to this multiple of the free permits.
const MAX_SHARE: usize = 3;
/// Number of idle principals that are kept, so that their next request finds its entry.
const MAX_IDLE: usize = 64;

/// The permits of one principal.
#[derive(Default)]
struct PrincipalPermits {
    /// `None` for requests of the hub itself.
    principal: Option<Box<str>>,
    held: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl PrincipalPermits {
    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}

struct SemaphoreState {
    free: usize,
    /// An entry keeps its index while it is in use.
    holders: Vec<PrincipalPermits>,
    /// Number of waiting requests.
    waiting: usize,
    /// The index of the holder that is served next.
    next: usize,
}

impl SemaphoreState {
    /// The index of a principal's entry.
    fn index(&mut self, principal: Option<&str>) -> usize {
        let known = self.holders.iter().position(|holder| holder.principal.as_deref() == principal);
        if let Some(index) = known {
            return index;
        }
        let holder = PrincipalPermits { principal: principal.map(Box::from), ..PrincipalPermits::default() };
        let unused =
            (self.holders.len() >= MAX_IDLE).then(|| self.holders.iter().position(PrincipalPermits::is_idle));
        match unused.flatten() {
            Some(index) => {
                self.holders[index] = holder;
                index
            }
            None => {
                self.holders.push(holder);
                self.holders.len() - 1
            }
        }
    }

    fn may_acquire(&self, index: usize) -> bool {
        let PrincipalPermits { principal, held, .. } = &self.holders[index];
        self.free > 0 && (principal.is_none() || *held < MAX_SHARE.saturating_mul(self.free))
    }

    /// Gives free permits to waiting requests, round robin by principal.
    fn grant_waiting(&mut self) {
        let mut refused = 0;
        while self.waiting > 0 && refused < self.holders.len() {
            let index = self.next % self.holders.len();
            self.next = index + 1;
            if !self.may_acquire(index) {
                refused += 1;
                continue;
            }
            match self.holders[index].waiting.pop_front() {
                None => refused += 1,
                Some(waiter) => {
                    self.waiting -= 1;
                    // A dropped request takes no permit.
                    if waiter.send(()).is_ok() {
                        self.holders[index].held += 1;
                        self.free -= 1;
                    }
                    refused = 0;
                }
            }
        }
    }
}

/// The permits of one connection. The limit of a principal depends on the number of free permits.
pub(super) struct DynamicThresholdSemaphore(Mutex<SemaphoreState>);

impl DynamicThresholdSemaphore {
    pub(super) fn new(count: usize) -> Self {
        Self(Mutex::new(SemaphoreState { free: count, holders: Vec::new(), waiting: 0, next: 0 }))
    }

    fn state(&self) -> MutexGuard<'_, SemaphoreState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit for a principal.
    pub(super) async fn take(&self, principal: Option<&str>) -> FairPermit<'_> {
        let (index, waiting) = {
            let mut state = self.state();
            let index = state.index(principal);
            if state.holders[index].waiting.is_empty() && state.may_acquire(index) {
                state.holders[index].held += 1;
                state.free -= 1;
                return FairPermit { semaphore: self, index };
            }
            let (waiter, waiting) = oneshot::channel();
            state.holders[index].waiting.push_back(waiter);
            state.waiting += 1;
            (index, waiting)
        };
        let mut waiting = Waiter { semaphore: self, index, granted: waiting, done: false };
        // The sender stays in the queue until it is used, so this always ends with a permit.
        let _ = (&mut waiting.granted).await;
        waiting.done = true;
        FairPermit { semaphore: self, index }
    }

    fn release(&self, index: usize) {
        let mut state = self.state();
        state.free += 1;
        state.holders[index].held -= 1;
        if state.waiting > 0 {
            state.grant_waiting();
        }
    }
}

/// A permit, released on drop.
pub(super) struct FairPermit<'a> {
    semaphore: &'a DynamicThresholdSemaphore,
    index: usize,
}

impl Drop for FairPermit<'_> {
    fn drop(&mut self) {
        self.semaphore.release(self.index);
    }
}

/// A waiting request, which may be dropped.
struct Waiter<'a> {
    semaphore: &'a DynamicThresholdSemaphore,
    index: usize,
    granted: oneshot::Receiver<()>,
    done: bool,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.granted.close();
        // The permit was granted concurrently.
        if self.granted.try_recv().is_ok() {
            return self.semaphore.release(self.index);
        }
        // Removes its own entry and those of other dropped requests.
        let mut state = self.semaphore.state();
        let before = state.holders[self.index].waiting.len();
        state.holders[self.index].waiting.retain(|waiter| !waiter.is_closed());
        let cancelled = before - state.holders[self.index].waiting.len();
        state.waiting -= cancelled;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn single_principal_gets_three_quarters_of_the_permits() {
        let semaphore = DynamicThresholdSemaphore::new(1024);
        let take = |name: &'static str| semaphore.take(Some(name)).now_or_never();
        let held: Vec<_> = std::iter::from_fn(|| take("ann")).collect();
        assert_eq!(held.len(), 768);
        let others: Vec<_> = std::iter::from_fn(|| take("bob")).collect();
        assert!(others.len() >= 190, "{}", others.len());
        assert!(take("carol").is_some() && semaphore.take(None).now_or_never().is_some());
        drop((held, others));
        let again: Vec<_> = std::iter::from_fn(|| take("bob")).collect();
        assert_eq!(again.len(), 768, "all were given back");
    }

    #[tokio::test]
    async fn serves_waiters_round_robin_by_principal() {
        let semaphore = DynamicThresholdSemaphore::new(8);
        let mut held: Vec<_> = std::iter::from_fn(|| semaphore.take(Some("ann")).now_or_never()).collect();
        held.extend(std::iter::from_fn(|| semaphore.take(Some("bob")).now_or_never()));
        held.extend(std::iter::from_fn(|| semaphore.take(None).now_or_never()));
        let names = ["ann", "ann", "ann", "bob"];
        let mut waiting: Vec<_> = names.iter().map(|name| Box::pin(semaphore.take(Some(name)))).collect();
        assert!(waiting.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
        // A dropped request is skipped, and takes no permit.
        drop(waiting.remove(0));
        drop(held);
        let mut served = Vec::new();
        for waiter in waiting {
            served.push(waiter.await);
        }
        drop(served);
        let all: Vec<_> = std::iter::from_fn(|| semaphore.take(Some("ann")).now_or_never()).collect();
        assert_eq!(all.len(), 6);
        let state = semaphore.state();
        assert_eq!((state.free, state.waiting), (2, 0));
    }

    #[test]
    fn requests_without_principal_may_take_all_permits() {
        let semaphore = DynamicThresholdSemaphore::new(8);
        let held: Vec<_> = std::iter::from_fn(|| semaphore.take(None).now_or_never()).collect();
        assert_eq!(held.len(), 8);
        assert!(semaphore.take(Some("ann")).now_or_never().is_none());
    }

    #[tokio::test]
    async fn queue_of_one_principal_does_not_starve_another() {
        let semaphore = DynamicThresholdSemaphore::new(4);
        let held: Vec<_> = std::iter::from_fn(|| semaphore.take(Some("ann")).now_or_never()).collect();
        assert_eq!(held.len(), 3);
        let mut queue: Vec<_> = (0..100).map(|_| Box::pin(semaphore.take(Some("ann")))).collect();
        assert!(queue.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
        assert!(semaphore.take(Some("bob")).now_or_never().is_some());
    }

    #[test]
    fn reuses_entries_of_idle_principals() {
        let semaphore = DynamicThresholdSemaphore::new(8);
        for number in 0..1_000 {
            let name = number.to_string();
            assert!(semaphore.take(Some(&name)).now_or_never().is_some());
        }
        assert!(semaphore.state().holders.len() <= MAX_IDLE);
    }
}
