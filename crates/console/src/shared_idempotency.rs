//! `Idempotency-Key` across the replicas of a hub: a request that is repeated with the same key, at whichever replica, runs once.

use std::sync::Arc;
use std::time::SystemTime;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use toolhub::Hub;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::{
    EntryReplacement, EntryRevision, NewEntry, ReplicaId, StateEntry, StateKind,
};
use toolhub_server::hash_of;

use crate::idempotency::{MAX_KEPT_BYTES, RETENTION, conflict};
use crate::problem::Problem;

const KIND: StateKind = StateKind::IdempotencyKey;
/// Maximum number of keys of one principal; the oldest are forgotten first.
const MAX_SHARED_IDEMPOTENCY_KEYS: usize = 4_096;
/// How often an entry is read again that other replicas change at the same time.
const MAX_ATTEMPTS: usize = 4;

/// The content of an entry.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    /// The hash of the request.
    request: String,
    /// The replica that runs it.
    replica: String,
    is_done: bool,
    /// The result, unless it is too long.
    result: Option<String>,
}

/// What happens with a request.
pub(crate) enum SharedTurn {
    /// It runs here.
    First(SharedRequest),
    /// The result of the first request.
    Repeated(String),
}

/// A request that runs at this replica. If it is not finished, it counts as cut off as soon as this replica has ended.
pub(crate) struct SharedRequest {
    store: Arc<dyn HubStore>,
    id: String,
    request: String,
    revision: EntryRevision,
}

impl SharedRequest {
    /// Claims a key for a request; `None` if no other replica shares the store, or there is no key.
    pub(crate) async fn begin(
        hub: &Hub,
        principal: &str,
        key: Option<&str>,
        request: &str,
    ) -> Result<Option<SharedTurn>, Problem> {
        let Some(store) = hub.store().filter(|store| store.is_shared()) else { return Ok(None) };
        let Some(key) = key else { return Ok(None) };
        // The length separates the two parts.
        let id = hash_of(&format!("{} {principal} {key}", principal.len()));
        let request = hash_of(request);
        for _ in 0..MAX_ATTEMPTS {
            let stored = StoredRequest {
                request: request.clone(),
                replica: store.replica().to_string(),
                is_done: false,
                result: None,
            };
            let entry = NewEntry {
                kind: KIND,
                id: id.clone(),
                scope: principal.to_owned(),
                slot: None,
                value: to_json(&stored)?,
                expires_at: SystemTime::now() + RETENTION,
            };
            if let Some(revision) = store.create_entry(entry).await.map_err(|error| unavailable(&error))? {
                store
                    .trim_entries(KIND, principal, MAX_SHARED_IDEMPOTENCY_KEYS)
                    .await
                    .map_err(|error| unavailable(&error))?;
                let store = Arc::clone(store);
                return Ok(Some(SharedTurn::First(Self { store, id, request, revision })));
            }
            if let Some(known) = store.entry(KIND, &id).await.map_err(|error| unavailable(&error))? {
                return known_request(&**store, &known, &request).await.map(SharedTurn::Repeated).map(Some);
            }
        }
        Err(unavailable(&StoreError("the key is in use".into())))
    }

    /// Keeps the result for repetitions.
    pub(crate) async fn finish(self, result: &str) {
        let stored = StoredRequest {
            request: self.request,
            replica: self.store.replica().to_string(),
            is_done: true,
            result: (result.len() <= MAX_KEPT_BYTES).then(|| result.to_owned()),
        };
        let Ok(value) = to_json(&stored) else { return };
        let change = EntryReplacement {
            kind: KIND,
            id: self.id,
            expected: self.revision,
            slot: None,
            value,
            expires_at: SystemTime::now() + RETENTION,
        };
        // If this fails, repetitions learn that the request is running or was cut off, and do not run it again.
        let _ = self.store.replace_entry(change).await;
    }

    /// Forgets the key: nothing was run.
    pub(crate) async fn abandon(self) {
        let _ = self.store.remove_entry(KIND, &self.id, &self.revision).await;
    }
}

/// The result of the first request with a key, if there is one.
async fn known_request(store: &dyn HubStore, known: &StateEntry, request: &str) -> Result<String, Problem> {
    let stored: StoredRequest = known.value.decode().map_err(|error| {
        unavailable(&StoreError(format!("an entry of an idempotency key is damaged: {error}").into()))
    })?;
    if stored.request != request {
        return Err(conflict(
            "key-reused",
            "this `Idempotency-Key` was used for another request: use a new one",
            "此 `Idempotency-Key` 已用于另一请求：请换一个",
        ));
    }
    if let (true, Some(result)) = (stored.is_done, stored.result) {
        return Ok(result);
    }
    if stored.is_done {
        return Err(conflict(
            "done",
            "the first request with this `Idempotency-Key` is done; its result is in the list of calls",
            "使用此 `Idempotency-Key` 的首个请求已完成；结果见调用列表",
        ));
    }
    let is_alive = match ReplicaId::parse(&stored.replica) {
        Some(replica) => store.is_alive(replica).await.map_err(|error| unavailable(&error))?,
        None => false,
    };
    Err(match is_alive {
        true => conflict(
            "in-progress",
            "the first request with this `Idempotency-Key` is still running",
            "使用此 `Idempotency-Key` 的首个请求仍在执行",
        ),
        false => conflict(
            "interrupted",
            "the first request with this `Idempotency-Key` was cut off, and may have taken effect: look at its call",
            "使用此 `Idempotency-Key` 的首个请求被中断，可能已生效：请查看其调用记录",
        ),
    })
}

fn to_json(stored: &StoredRequest) -> Result<RawJson, Problem> {
    let failed = |error: String| unavailable(&StoreError(error.into()));
    let text = serde_json::to_string(stored).map_err(|error| failed(error.to_string()))?;
    RawJson::parse(text).map_err(|error| failed(error.to_string()))
}

/// The store cannot be used: the request was not run.
fn unavailable(error: &StoreError) -> Problem {
    let detail = LocalizedText::new(
        format!("the request was not run, since its `Idempotency-Key` could not be stored: {error}"),
        format!("无法保存 `Idempotency-Key`，请求未执行：{error}"),
    );
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", detail)
}
