//! Requests whose turn made a call that may have changed something, and that were not answered with success. Client libraries
//! repeat a request by themselves after a timeout, a lost connection or a server error; such a repetition would make the call
//! again, so it is refused.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;

/// Client libraries number their repetitions of a request in this header, from 0.
const RETRY_HEADER: &str = "x-stainless-retry-count";
/// How long a repetition is recognised: longer than the timeouts of client libraries, of 10 minutes.
const MEMORY: Duration = Duration::from_secs(15 * 60);
/// Maximum number of requests.
const MAX_ENTRIES: usize = 4_096;

/// What makes two requests equal.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct RequestIdentity<'a> {
    pub(crate) principal: &'a str,
    pub(crate) profile: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
}

/// The requests of all principals.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedChanges {
    hasher: RandomState,
    /// The number of turns of equal requests, and when the last call of them began.
    entries: Mutex<HashMap<u64, (usize, Instant)>>,
}

impl UnfinishedChanges {
    /// The mark of a request, which is not set yet.
    pub(crate) fn of_request(self: &Arc<Self>, request: RequestIdentity<'_>) -> ChangeMark {
        let key = self.hasher.hash_one(request);
        ChangeMark { changes: Arc::clone(self), key, is_set: AtomicBool::new(false) }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, (usize, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the request of a turn once the turn may have changed something.
#[derive(Debug)]
pub(crate) struct ChangeMark {
    changes: Arc<UnfinishedChanges>,
    key: u64,
    is_set: AtomicBool,
}

impl ChangeMark {
    /// Whether these headers are those of a repetition of a marked request.
    pub(crate) fn is_repetition(&self, headers: &HeaderMap) -> bool {
        let count = headers.get(RETRY_HEADER).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
        let entry = self.changes.entries().get(&self.key).copied();
        count.is_some_and(|count| count > 0) && entry.is_some_and(|(_, since)| since.elapsed() < MEMORY)
    }

    /// A call that may change something begins.
    pub(crate) fn set(&self) {
        let mut entries = self.changes.entries();
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, (_, since)| since.elapsed() < MEMORY);
        }
        if entries.len() >= MAX_ENTRIES {
            let oldest = entries.iter().min_by_key(|(_, (_, since))| *since).map(|(key, _)| *key);
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let now = Instant::now();
        let (turns, since) = entries.entry(self.key).or_insert((0, now));
        *turns += usize::from(!self.is_set.swap(true, Ordering::AcqRel));
        *since = now;
    }

    /// Whether the turn may have changed something.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The turn ended with success: its request is forgotten.
    pub(crate) fn clear(&self) {
        if !self.is_set.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut entries = self.changes.entries();
        if let Some((turns, _)) = entries.get_mut(&self.key) {
            *turns = turns.saturating_sub(1);
            if *turns == 0 {
                entries.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(count: &str) -> HeaderMap {
        let count = HeaderValue::from_str(count).unwrap();
        [(http::HeaderName::from_static(RETRY_HEADER), count)].into_iter().collect()
    }

    #[test]
    fn recognises_repetitions_of_unfinished_changes() {
        let changes = Arc::new(UnfinishedChanges::default());
        let mark = |principal: &str, body: &str| {
            let request =
                RequestIdentity { principal, profile: None, path: "responses", body: body.as_bytes() };
            changes.of_request(request)
        };
        let (first, again) = (headers("0"), headers("1"));
        let running = mark("ann", "{}");
        assert!(!mark("ann", "{}").is_repetition(&again));
        running.set();
        assert!(mark("ann", "{}").is_repetition(&again));
        assert!(!mark("ann", "{}").is_repetition(&first), "a new request of the same text");
        assert!(!mark("ann", "{}").is_repetition(&HeaderMap::new()));
        assert!(!mark("ben", "{}").is_repetition(&again) && !mark("ann", "[]").is_repetition(&again));
        // Two equal requests at once: the answer to one leaves the mark of the other.
        let other = mark("ann", "{}");
        other.set();
        other.set();
        other.clear();
        assert!(mark("ann", "{}").is_repetition(&again));
        running.clear();
        assert!(!mark("ann", "{}").is_repetition(&again));
        // What was dropped without an answer stays.
        mark("ann", "{}").set();
        assert!(mark("ann", "{}").is_repetition(&again));
    }

    #[test]
    fn remembers_a_bounded_number() {
        let changes = Arc::new(UnfinishedChanges::default());
        for number in 0..MAX_ENTRIES + 10 {
            let body = &number.to_le_bytes();
            let request = RequestIdentity { principal: "ann", profile: None, path: "responses", body };
            changes.of_request(request).set();
        }
        assert_eq!(changes.entries().len(), MAX_ENTRIES);
    }
}
