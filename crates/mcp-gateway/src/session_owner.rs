//! The owner replica of a session: the one that issued its id, or the one that rebuilt it after that replica ended.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{EntryReplacement, NewEntry, ReplicaId, SharedState, StateKind};

use crate::ended_session::RESUMABLE_FOR;

/// How long the owner of a session is used without reading it again.
const OWNER_CACHE_LIFETIME: Duration = Duration::from_secs(1);
/// Maximum number of owners that are kept for that time.
const MAX_CACHED_OWNERS: usize = 4_096;
/// How often an entry is read again that other replicas change at the same time.
const MAX_ATTEMPTS: usize = 8;

/// The replica that owns a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerReplica {
    /// This replica, which may rebuild the session.
    This,
    /// Another replica, which is alive.
    Other(ReplicaId),
    /// A replica that has ended.
    Ended,
}

/// The owners of sessions that this replica has looked up recently.
#[derive(Default)]
pub(crate) struct SessionOwners(Mutex<HashMap<String, (ReplicaId, Instant)>>);

impl SessionOwners {
    /// The owner of the session with this id, which `issuer` has issued.
    pub(crate) async fn find(
        &self,
        state: &dyn SharedState,
        id: &str,
        issuer: ReplicaId,
    ) -> Result<OwnerReplica, StoreError> {
        let recent = self
            .cached_owners()
            .get(id)
            .filter(|(_, at)| at.elapsed() < OWNER_CACHE_LIFETIME)
            .map(|(owner, _)| *owner);
        if let Some(owner) = recent {
            return Ok(OwnerReplica::Other(owner));
        }
        let entry = state.entry(StateKind::SessionOwner, &entry_id(id)).await?;
        let owner = entry.and_then(|entry| replica_of(&entry.value)).unwrap_or(issuer);
        if owner == state.replica() {
            return Ok(OwnerReplica::This);
        }
        if !state.is_alive(owner).await? {
            return Ok(OwnerReplica::Ended);
        }
        let mut cached_owners = self.cached_owners();
        if cached_owners.len() >= MAX_CACHED_OWNERS {
            cached_owners.clear();
        }
        cached_owners.insert(id.to_owned(), (owner, Instant::now()));
        Ok(OwnerReplica::Other(owner))
    }

    /// Makes this replica the owner of a session whose owner has ended. Of several replicas, one succeeds; returns the owner
    /// afterwards.
    pub(crate) async fn adopt(
        &self,
        state: &dyn SharedState,
        id: &str,
        issuer: ReplicaId,
    ) -> Result<OwnerReplica, StoreError> {
        let (kind, key) = (StateKind::SessionOwner, entry_id(id));
        for _ in 0..MAX_ATTEMPTS {
            self.forget(id);
            match self.find(state, id, issuer).await? {
                OwnerReplica::Ended => {}
                owner => return Ok(owner),
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
                        Some(owner) => !state.is_alive(owner).await?,
                        None => true,
                    };
                    let (id, expected) = (key.clone(), entry.revision);
                    let change = EntryReplacement { kind, id, expected, slot: None, value, expires_at };
                    is_ended && state.replace_entry(change).await?.is_some()
                }
            };
            if is_adopted {
                return Ok(OwnerReplica::This);
            }
        }
        Ok(OwnerReplica::Ended)
    }

    /// Forgets the owner of a session, which did not respond.
    pub(crate) fn forget(&self, id: &str) {
        self.cached_owners().remove(id);
    }

    fn cached_owners(&self) -> std::sync::MutexGuard<'_, HashMap<String, (ReplicaId, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The replica that has adopted a session; `None` if its owner is the one that issued its id.
pub(crate) async fn adopted_by(
    state: &dyn SharedState,
    session: &str,
) -> Result<Option<ReplicaId>, StoreError> {
    let entry = state.entry(StateKind::SessionOwner, &entry_id(session)).await?;
    Ok(entry.and_then(|entry| replica_of(&entry.value)))
}

/// The id of the entry of a session. Ids of sessions are not stored: they would be of use to a reader of the database.
fn entry_id(session: &str) -> String {
    hex::sha256(session.as_bytes())
}

fn replica_of(value: &RawJson) -> Option<ReplicaId> {
    ReplicaId::parse(&value.text()?)
}
