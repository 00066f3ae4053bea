//! The link between replicas: a request whose session lives at another replica is served there.
//!
//! A session has one home: the replica that issued its id, or the one that rebuilt it after that replica ended. Its streams, its
//! questions to the client and its requests in progress are there.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::Stream;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{NewEntry, Replacement, ReplicaId, SharedState, StateKind};
use toolhub_core::{BoxFuture, Principal, RawJson};

use crate::header_lookup::HeaderLookup;
use crate::session_record::{RESUMABLE_FOR, hex};

/// How long the home of a session is used without reading it again.
const HOME_LIFETIME: Duration = Duration::from_secs(1);
/// Maximum number of homes that are kept for that time.
const MAX_KNOWN_HOMES: usize = 4_096;
/// How often an entry is read again that other replicas change at the same time.
const MAX_ATTEMPTS: usize = 8;

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// A message, or a batch.
    Post,
    /// The stream of a session.
    Get,
    /// The end of a session.
    Delete,
}

/// A request for another replica. The sender has authenticated it and counted it against the budget of its principal.
#[derive(Debug, Clone)]
pub struct ReplicaRequest {
    /// The profile.
    pub profile: String,
    /// The method.
    pub method: RequestMethod,
    /// The headers that concern sessions.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The principal that made it.
    pub principal: Arc<Principal>,
}

/// The body of a response of another replica.
pub enum ReplicaBody {
    /// JSON, or nothing.
    Json(String),
    /// Serialized server-sent events. Dropping the stream cancels what the client may cancel by disconnecting.
    Events(Pin<Box<dyn Stream<Item = String> + Send>>),
}

impl fmt::Debug for ReplicaBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Json(_)) { "Json" } else { "Events" })
    }
}

/// The response of another replica.
pub struct ReplicaResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: ReplicaBody,
}

impl fmt::Debug for ReplicaResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why another replica did not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// It did not receive the request: nothing has happened.
    Unreachable,
    /// It may have received the request: what it does may take effect.
    Lost,
}

/// Sends requests to other replicas.
pub trait ReplicaLink: Send + Sync {
    /// Sends a request to a replica, at most once. Dropping the future cancels the request.
    fn send(
        &self,
        to: ReplicaId,
        request: ReplicaRequest,
    ) -> BoxFuture<'_, Result<ReplicaResponse, LinkError>>;
}

/// Headers in a request of another replica.
pub(crate) struct ForwardedHeaders(pub(crate) Vec<(String, String)>);

impl HeaderLookup for ForwardedHeaders {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes())
    }

    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.iter().filter(|(known, _)| known == name).any(|(_, value)| predicate(value.as_bytes()))
    }
}

/// Where a session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// At this replica, which may rebuild it.
    Here,
    /// At another replica, which is alive.
    At(ReplicaId),
    /// At a replica that has ended.
    Ended,
}

/// The homes of sessions that this replica has looked for recently.
#[derive(Default)]
pub(crate) struct SessionHomes(Mutex<HashMap<String, (ReplicaId, Instant)>>);

impl SessionHomes {
    /// Where the session with this id lives, which `issuer` has issued.
    pub(crate) async fn find(
        &self,
        state: &dyn SharedState,
        id: &str,
        issuer: ReplicaId,
    ) -> Result<Home, StoreError> {
        let recent =
            self.known().get(id).filter(|(_, at)| at.elapsed() < HOME_LIFETIME).map(|(home, _)| *home);
        if let Some(home) = recent {
            return Ok(Home::At(home));
        }
        let entry = state.entry(StateKind::SessionHome, &entry_id(id)).await?;
        let home = entry.and_then(|entry| replica_of(&entry.value)).unwrap_or(issuer);
        if home == state.replica() {
            return Ok(Home::Here);
        }
        if !state.is_alive(home).await? {
            return Ok(Home::Ended);
        }
        let mut known = self.known();
        if known.len() >= MAX_KNOWN_HOMES {
            known.clear();
        }
        known.insert(id.to_owned(), (home, Instant::now()));
        Ok(Home::At(home))
    }

    /// Makes this replica the home of a session whose home has ended. Of several replicas, one succeeds; returns the home
    /// afterwards.
    pub(crate) async fn adopt(
        &self,
        state: &dyn SharedState,
        id: &str,
        issuer: ReplicaId,
    ) -> Result<Home, StoreError> {
        let (kind, key) = (StateKind::SessionHome, entry_id(id));
        for _ in 0..MAX_ATTEMPTS {
            self.forget(id);
            match self.find(state, id, issuer).await? {
                Home::Ended => {}
                home => return Ok(home),
            }
            let value = RawJson::from(state.replica().to_string());
            let expires_at = SystemTime::now() + RESUMABLE_FOR;
            let is_adopted = match state.entry(kind, &key).await? {
                None => {
                    let (id, scope) = (key.clone(), String::new());
                    let entry = NewEntry { kind, id, scope, slot: None, value, expires_at };
                    state.create_entry(entry).await?.is_some()
                }
                Some(entry) => {
                    // Another replica may have adopted it since, and may be alive.
                    let is_ended = match replica_of(&entry.value) {
                        Some(home) => !state.is_alive(home).await?,
                        None => true,
                    };
                    let (id, expected) = (key.clone(), entry.revision);
                    let change = Replacement { kind, id, expected, slot: None, value, expires_at };
                    is_ended && state.replace_entry(change).await?.is_some()
                }
            };
            if is_adopted {
                return Ok(Home::Here);
            }
        }
        Ok(Home::Ended)
    }

    /// Forgets the home of a session, which did not respond.
    pub(crate) fn forget(&self, id: &str) {
        self.known().remove(id);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, (ReplicaId, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The replica that has adopted a session; `None` if it is at the one that issued its id.
pub(crate) async fn adopted_by(
    state: &dyn SharedState,
    session: &str,
) -> Result<Option<ReplicaId>, StoreError> {
    let entry = state.entry(StateKind::SessionHome, &entry_id(session)).await?;
    Ok(entry.and_then(|entry| replica_of(&entry.value)))
}

/// The id of the entry of a session. Ids of sessions are not stored: they would be of use to a reader of the database.
fn entry_id(session: &str) -> String {
    hex(&Sha256::digest(session))
}

fn replica_of(value: &RawJson) -> Option<ReplicaId> {
    ReplicaId::parse(&value.text()?)
}
