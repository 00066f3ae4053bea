//! The requests that a process handles for others: each at most once, with its cancellation and what belongs to it while it runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::cluster_protocol::WAITING_TIMEOUT;

/// How long the id of a request is kept after its end. A request must begin within a shorter time.
const ID_RETENTION: Duration = Duration::from_secs(60);
/// Above this number of ids, those that are no longer needed are removed.
const PRUNE_ABOVE: usize = 4096;
/// Minimum time between two such removals, which look at all ids.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);
/// Above this number of ids, a cancellation of an unknown request has no effect.
const MAX_HANDLED_CALLS: usize = 1 << 20;
/// Length of the longest id in bytes.
const MAX_CALL_ID_BYTES: usize = 128;

/// A request that runs, with its state.
#[derive(Debug)]
pub(crate) struct HandledRequest<S> {
    pub(crate) cancelled: CancellationToken,
    pub(crate) state: S,
    /// When its sender waited for it last.
    waited_for: Mutex<Instant>,
}

impl<S: Default> Default for HandledRequest<S> {
    fn default() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            state: S::default(),
            waited_for: Mutex::new(Instant::now()),
        }
    }
}

impl<S> HandledRequest<S> {
    /// Records that the sender still waits for it.
    fn renew_interest(&self) {
        *self.waited_for.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether its sender may still wait for it. The sender says so at intervals: a cancellation can be lost.
    pub(crate) fn is_waited_for(&self) -> bool {
        let since = *self.waited_for.lock().unwrap_or_else(PoisonError::into_inner);
        since.elapsed() < WAITING_TIMEOUT
    }
}

#[derive(Debug)]
struct RequestEntry<S> {
    since: Instant,
    /// `None` once it has ended, or if it was cancelled before it came.
    running: Option<Arc<HandledRequest<S>>>,
}

/// The requests that run, and those that ended a short time ago.
#[derive(Debug)]
pub(crate) struct HandledRequests<S>(Mutex<Table<S>>);

#[derive(Debug)]
struct Table<S> {
    entries: HashMap<String, RequestEntry<S>>,
    pruned: Instant,
}

impl<S> Default for HandledRequests<S> {
    fn default() -> Self {
        Self(Mutex::new(Table { entries: HashMap::new(), pruned: Instant::now() }))
    }
}

impl<S> Table<S> {
    /// Removes the ids that are no longer needed, at most once per interval.
    fn prune(&mut self) {
        if self.entries.len() > PRUNE_ABOVE && self.pruned.elapsed() >= PRUNE_INTERVAL {
            self.entries.retain(|_, entry| entry.running.is_some() || entry.since.elapsed() < ID_RETENTION);
            self.pruned = Instant::now();
        }
    }
}

impl<S: Default> HandledRequests<S> {
    /// Begins a request; `None` if it came before, or was cancelled.
    pub(crate) fn begin(&self, id: &str) -> Option<RunningRequest<'_, S>> {
        let mut table = self.table();
        if id.len() > MAX_CALL_ID_BYTES || table.entries.contains_key(id) {
            return None;
        }
        table.prune();
        let call = Arc::new(HandledRequest::default());
        table
            .entries
            .insert(id.to_owned(), RequestEntry { since: Instant::now(), running: Some(Arc::clone(&call)) });
        Some(RunningRequest { calls: self, id: id.to_owned(), call })
    }
}

impl<S> HandledRequests<S> {
    fn table(&self) -> MutexGuard<'_, Table<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels a request, also one that comes later.
    pub(crate) fn cancel(&self, id: &str) {
        let mut table = self.table();
        table.prune();
        let is_full = table.entries.len() >= MAX_HANDLED_CALLS || id.len() > MAX_CALL_ID_BYTES;
        if is_full && !table.entries.contains_key(id) {
            return;
        }
        let entry = table
            .entries
            .entry(id.to_owned())
            .or_insert_with(|| RequestEntry { since: Instant::now(), running: None });
        if let Some(call) = &entry.running {
            call.cancelled.cancel();
        }
    }

    /// Records that the senders of these requests still wait for them. Returns the ids of those that have ended: all messages about
    /// them were passed to the connection before.
    pub(crate) fn renew_interest(&self, ids: &[String]) -> Vec<String> {
        let table = self.table();
        let mut ended = Vec::new();
        for id in ids {
            match table.entries.get(id).map(|entry| &entry.running) {
                Some(Some(call)) => call.renew_interest(),
                Some(None) => ended.push(id.clone()),
                // It may not have arrived yet.
                None => {}
            }
        }
        ended
    }

    /// A request that runs.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<HandledRequest<S>>> {
        self.table().entries.get(id).and_then(|entry| entry.running.clone())
    }
}

/// Guard of a request that runs.
pub(crate) struct RunningRequest<'a, S> {
    calls: &'a HandledRequests<S>,
    id: String,
    pub(crate) call: Arc<HandledRequest<S>>,
}

impl<S> Drop for RunningRequest<'_, S> {
    fn drop(&mut self) {
        if let Some(entry) = self.calls.table().entries.get_mut(&self.id) {
            entry.running = None;
            entry.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_begins_twice_or_after_its_cancellation() {
        let calls = HandledRequests::<()>::default();
        let running = calls.begin("a").unwrap();
        assert!(calls.begin("a").is_none() && calls.find("a").is_some());
        calls.cancel("a");
        assert!(running.call.cancelled.is_cancelled());
        drop(running);
        assert!(calls.begin("a").is_none() && calls.find("a").is_none());
        calls.cancel("b");
        assert!(calls.begin("b").is_none());
    }

    #[test]
    fn reports_requests_that_ended_while_they_are_waited_for() {
        let calls = HandledRequests::<()>::default();
        let (running, ended) = (calls.begin("running").unwrap(), calls.begin("ended").unwrap());
        drop(ended);
        let ids = ["running", "ended", "not arrived yet"].map(str::to_owned);
        assert_eq!(calls.renew_interest(&ids), ["ended"]);
        drop(running);
        assert_eq!(calls.renew_interest(&ids), ["running", "ended"]);
    }
}
