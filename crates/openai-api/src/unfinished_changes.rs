//! Requests whose turn made a call that may have changed something, and that were not answered with success. Client libraries
//! repeat a request by themselves after a timeout, a lost connection or a server error; such a repetition would make the call
//! again, so it is refused, at every hub with the same store, and after a restart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;
use toolhub_core::RawJson;
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::{EntryFilter, EntryReplacement, EntryRevision, NewEntry, StateKind};
use toolhub_server::hash_of;

/// Client libraries number their repetitions of a request in this header, from 0.
const RETRY_HEADER: &str = "x-stainless-retry-count";
/// How long a repetition is recognised: longer than the timeouts of client libraries, of 10 minutes.
const MEMORY: Duration = Duration::from_secs(15 * 60);
/// A stored mark is extended by a later call of its turn once it is so old.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of requests that this process keeps, and of stored ones of one principal.
const MAX_UNFINISHED_CHANGES: usize = 4_096;
/// One of so many new marks deletes the oldest ones of its principal beyond the maximum.
const TRIM_INTERVAL: u32 = 32;
const KIND: StateKind = StateKind::UnfinishedChange;

/// What makes two requests equal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestIdentity<'a> {
    pub(crate) principal: &'a str,
    pub(crate) profile: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
}

impl RequestIdentity<'_> {
    /// A digest of the request. Its length separates one part from the next.
    fn digest(&self) -> String {
        let Self { principal, profile, path, body } = self;
        let profile = profile.map_or("-".to_owned(), |profile| format!("={profile}"));
        // The body is JSON, and so UTF-8.
        let body = String::from_utf8_lossy(body);
        let lengths = [principal.len(), profile.len(), path.len()];
        hash_of(&format!("{lengths:?} {principal} {profile} {path} {body}"))
    }
}

/// The requests of all principals.
#[derive(Default)]
pub(crate) struct UnfinishedChanges {
    store: Option<Arc<dyn HubStore>>,
    /// By the digests of equal requests: the number of their turns, and when the last call of them began.
    entries: Mutex<HashMap<String, (usize, Instant)>>,
}

impl std::fmt::Debug for UnfinishedChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnfinishedChanges").finish_non_exhaustive()
    }
}

impl UnfinishedChanges {
    /// The requests that hubs with this store remember; without one, those of this process.
    pub(crate) fn new(store: Option<Arc<dyn HubStore>>) -> Self {
        Self { store, entries: Mutex::default() }
    }

    /// The mark of a request, which is not set yet.
    pub(crate) fn of_request(self: &Arc<Self>, request: RequestIdentity<'_>) -> ChangeMark {
        ChangeMark {
            changes: Arc::clone(self),
            principal: request.principal.to_owned(),
            key: request.digest(),
            is_set: AtomicBool::new(false),
            stored: tokio::sync::Mutex::default(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, (usize, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a mark in the store.
#[derive(Debug)]
struct StoredMark {
    id: String,
    revision: EntryRevision,
    since: Instant,
}

/// Marks the request of a turn once the turn may have changed something.
#[derive(Debug)]
pub(crate) struct ChangeMark {
    changes: Arc<UnfinishedChanges>,
    principal: String,
    key: String,
    is_set: AtomicBool,
    /// Several calls of a turn may begin at the same time: the first one stores the mark, and the others wait for that.
    stored: tokio::sync::Mutex<Option<StoredMark>>,
}

impl ChangeMark {
    /// Whether these headers are those of a repetition of a marked request.
    pub(crate) async fn is_repetition(&self, headers: &HeaderMap) -> Result<bool, StoreError> {
        let count = headers.get(RETRY_HEADER).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
        if count.is_none_or(|count| count == 0) {
            return Ok(false);
        }
        let entry = self.changes.entries().get(&self.key).copied();
        if entry.is_some_and(|(_, since)| since.elapsed() < MEMORY) {
            return Ok(true);
        }
        let Some(store) = &self.changes.store else { return Ok(false) };
        let prefix = format!("{}-", self.key);
        let scope = Some(self.principal.as_str());
        let filter = EntryFilter { scope, prefix: &prefix, limit: 1, ..EntryFilter::all(KIND) };
        Ok(!store.entries(filter).await?.is_empty())
    }

    /// A call that may change something begins. It must not run if this fails.
    pub(crate) async fn set(&self) -> Result<(), StoreError> {
        self.remember();
        let Some(store) = &self.changes.store else { return Ok(()) };
        let mut stored = self.stored.lock().await;
        let expires_at = SystemTime::now() + MEMORY;
        let Some(mark) = &mut *stored else {
            // Each turn has an entry of its own, since equal requests may be under way at the same time.
            let id = format!("{}-{}", self.key, RecordId::generate());
            let entry = NewEntry {
                kind: KIND,
                id: id.clone(),
                scope: self.principal.clone(),
                slot: None,
                value: RawJson::null(),
                expires_at,
            };
            let revision = store.create_entry(entry).await?;
            let revision = revision.ok_or_else(|| StoreError("the id of a mark is in use".into()))?;
            *stored = Some(StoredMark { id, revision, since: Instant::now() });
            if fastrand::u32(..TRIM_INTERVAL) == 0 {
                let _ = store.trim_entries(KIND, &self.principal, MAX_UNFINISHED_CHANGES).await;
            }
            return Ok(());
        };
        if mark.since.elapsed() < EXTENSION_INTERVAL {
            return Ok(());
        }
        let change = EntryReplacement {
            kind: KIND,
            id: mark.id.clone(),
            expected: mark.revision.clone(),
            slot: None,
            value: RawJson::null(),
            expires_at,
        };
        match store.replace_entry(change).await? {
            Some(revision) => (mark.revision, mark.since) = (revision, Instant::now()),
            None => return Err(StoreError("the mark of the request was deleted".into())),
        }
        Ok(())
    }

    fn remember(&self) {
        let mut entries = self.changes.entries();
        if entries.len() >= MAX_UNFINISHED_CHANGES {
            entries.retain(|_, (_, since)| since.elapsed() < MEMORY);
        }
        if entries.len() >= MAX_UNFINISHED_CHANGES {
            let oldest = entries.iter().min_by_key(|(_, (_, since))| *since).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let now = Instant::now();
        let (turns, since) = entries.entry(self.key.clone()).or_insert((0, now));
        *turns += usize::from(!self.is_set.swap(true, Ordering::AcqRel));
        *since = now;
    }

    /// Whether the turn may have changed something.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The turn ended with success: its request is forgotten.
    pub(crate) async fn clear(&self) {
        if !self.is_set.swap(false, Ordering::AcqRel) {
            return;
        }
        if let (Some(store), Some(mark)) = (&self.changes.store, self.stored.lock().await.take()) {
            // If this fails, the request is refused if it is repeated although it was answered, until the mark expires.
            let _ = store.remove_entry(KIND, &mark.id, &mark.revision).await;
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

    #[tokio::test]
    async fn recognises_repetitions_of_unfinished_changes() {
        let changes = Arc::new(UnfinishedChanges::default());
        let mark = |principal: &str, body: &str| {
            let request =
                RequestIdentity { principal, profile: None, path: "responses", body: body.as_bytes() };
            changes.of_request(request)
        };
        let repeats = async |principal: &str, body: &str, headers: &HeaderMap| {
            mark(principal, body).is_repetition(headers).await.unwrap()
        };
        let (first, again) = (headers("0"), headers("1"));
        let running = mark("ann", "{}");
        assert!(!repeats("ann", "{}", &again).await);
        running.set().await.unwrap();
        assert!(repeats("ann", "{}", &again).await);
        assert!(!repeats("ann", "{}", &first).await, "a new request of the same text");
        assert!(!repeats("ann", "{}", &HeaderMap::new()).await);
        assert!(!repeats("ben", "{}", &again).await && !repeats("ann", "[]", &again).await);
        // Two equal requests at once: the answer to one leaves the mark of the other.
        let other = mark("ann", "{}");
        other.set().await.unwrap();
        other.set().await.unwrap();
        other.clear().await;
        assert!(repeats("ann", "{}", &again).await);
        running.clear().await;
        assert!(!repeats("ann", "{}", &again).await);
        // What was dropped without an answer stays.
        mark("ann", "{}").set().await.unwrap();
        assert!(repeats("ann", "{}", &again).await);
    }

    #[test]
    fn parts_of_a_request_are_separated() {
        let digest = |principal: &str, profile: Option<&str>, path: &str, body: &str| {
            RequestIdentity { principal, profile, path, body: body.as_bytes() }.digest()
        };
        let all = [
            digest("a", None, "b", "c"),
            digest("a", Some(""), "b", "c"),
            digest("a", Some("-"), "b", "c"),
            digest("a -", None, "b", "c"),
            digest("a", None, "b c", ""),
            digest("a", None, "b", "c "),
        ];
        let unique: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
    }

    #[tokio::test]
    async fn remembers_a_bounded_number() {
        let changes = Arc::new(UnfinishedChanges::default());
        for number in 0..MAX_UNFINISHED_CHANGES + 10 {
            let body = number.to_string();
            let request =
                RequestIdentity { principal: "ann", profile: None, path: "responses", body: body.as_bytes() };
            changes.of_request(request).set().await.unwrap();
        }
        assert_eq!(changes.entries().len(), MAX_UNFINISHED_CHANGES);
    }
}
