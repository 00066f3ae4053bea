//! The requests that a process handles for others: each at most once, with its cancellation and what belongs to it while it runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// How long the id of a request is remembered. A request must begin within a shorter time.
const REMEMBER: Duration = Duration::from_secs(60);
/// Above this number of ids, those that are no longer needed are removed.
const PRUNE_ABOVE: usize = 4096;

/// A request that runs, with its state.
#[derive(Debug, Default)]
pub(crate) struct Call<S> {
    pub(crate) cancelled: CancellationToken,
    pub(crate) state: S,
}

#[derive(Debug)]
struct Known<S> {
    since: Instant,
    /// `None` once it has ended, or if it was cancelled before it came.
    running: Option<Arc<Call<S>>>,
}

/// The requests that run, and those that ended a short time ago.
#[derive(Debug)]
pub(crate) struct Calls<S>(Mutex<HashMap<String, Known<S>>>);

impl<S> Default for Calls<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Default> Calls<S> {
    /// Begins a request; `None` if it came before, or was cancelled.
    pub(crate) fn begin(&self, id: &str) -> Option<Running<'_, S>> {
        let mut known = self.known();
        if known.contains_key(id) {
            return None;
        }
        if known.len() > PRUNE_ABOVE {
            known.retain(|_, known| known.running.is_some() || known.since.elapsed() < REMEMBER);
        }
        let call = Arc::new(Call::default());
        known.insert(id.to_owned(), Known { since: Instant::now(), running: Some(Arc::clone(&call)) });
        Some(Running { calls: self, id: id.to_owned(), call })
    }
}

impl<S> Calls<S> {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Known<S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels a request, also one that comes later.
    pub(crate) fn cancel(&self, id: &str) {
        let mut known = self.known();
        let entry =
            known.entry(id.to_owned()).or_insert_with(|| Known { since: Instant::now(), running: None });
        if let Some(call) = &entry.running {
            call.cancelled.cancel();
        }
    }

    /// A request that runs.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Call<S>>> {
        self.known().get(id).and_then(|known| known.running.clone())
    }
}

/// Guard of a request that runs.
pub(crate) struct Running<'a, S> {
    calls: &'a Calls<S>,
    id: String,
    pub(crate) call: Arc<Call<S>>,
}

impl<S> Drop for Running<'_, S> {
    fn drop(&mut self) {
        if let Some(known) = self.calls.known().get_mut(&self.id) {
            known.running = None;
            known.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_begins_twice_or_after_its_cancellation() {
        let calls = Calls::<()>::default();
        let running = calls.begin("a").unwrap();
        assert!(calls.begin("a").is_none() && calls.find("a").is_some());
        calls.cancel("a");
        assert!(running.call.cancelled.is_cancelled());
        drop(running);
        assert!(calls.begin("a").is_none() && calls.find("a").is_none());
        calls.cancel("b");
        assert!(calls.begin("b").is_none());
    }
}
