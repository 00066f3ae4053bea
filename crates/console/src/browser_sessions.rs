//! The sessions of browsers: in the data folder, or in the store that replicas share, so that a session that one replica has
//! opened is used and ended at each of them.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolhub::Person;
use toolhub_core::millis::duration_millis;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::{EntryFilter, EntryReplacement, NewEntry, StateEntry, StateKind};
use toolhub_core::{RawJson, Secret};
use toolhub_server::hash_of;

use crate::folder_sessions::{
    FolderSessions, MAX_OWN_SESSIONS, SessionOwner, StoredSession, TICKET_LIFETIME, USE_INTERVAL, is_token,
    new_token, now_ms, superseded_session,
};

const KIND: StateKind = StateKind::BrowserSession;
const TICKET: StateKind = StateKind::ConsoleTicket;

/// The sessions of a hub.
pub(crate) struct BrowserSessions {
    folder: FolderSessions,
    shared: Option<SharedSessions>,
}

impl BrowserSessions {
    /// The sessions in the data folder, or in `store` if other replicas share it.
    pub(crate) fn open(data_dir: &Path, store: Option<&Arc<dyn HubStore>>) -> Self {
        let shared = store.filter(|store| store.is_shared());
        let shared = shared.map(|store| SharedSessions { store: Arc::clone(store) });
        Self { folder: FolderSessions::open(data_dir), shared }
    }

    /// Uses a ticket, once at all replicas together. Returns the token of a new session.
    pub(crate) async fn redeem(&self, ticket: &str) -> io::Result<Option<Secret>> {
        let Some(shared) = &self.shared else { return self.folder.redeem(ticket) };
        // A ticket of the data folder is that of a command that could not reach the store.
        match shared.use_ticket(ticket).await? || self.folder.use_ticket(ticket)? {
            true => shared.create(None).await.map(Some),
            false => Ok(None),
        }
    }

    /// Creates a session of a person, or of the local user. Returns its token.
    pub(crate) async fn create(&self, person: Option<Person>) -> io::Result<Secret> {
        match &self.shared {
            Some(shared) => shared.create(person).await,
            None => self.folder.create(person),
        }
    }

    /// The owner of a session if it is valid. Extends it.
    pub(crate) async fn owner(&self, token: &str) -> io::Result<Option<SessionOwner>> {
        match &self.shared {
            Some(shared) => shared.owner(token).await,
            None => Ok(self.folder.owner(token)),
        }
    }

    /// The owner of a session if it is valid, without extending it.
    pub(crate) async fn live_owner(&self, token: &str) -> io::Result<Option<SessionOwner>> {
        match &self.shared {
            Some(shared) => Ok(shared.find(token).await?.map(|(_, session)| session.owner())),
            None => Ok(self.folder.live_owner(token)),
        }
    }

    /// Ends a session, at every replica.
    pub(crate) async fn end(&self, token: &str) -> io::Result<()> {
        match &self.shared {
            Some(shared) => shared.end(token).await,
            None => self.folder.end(token),
        }
    }
}

/// Creates a one-time ticket in a shared store, which each replica accepts. A user with write access to that store owns the hub.
pub(crate) async fn new_shared_ticket(store: &dyn HubStore) -> io::Result<Secret> {
    let ticket = new_token()?;
    let entry = NewEntry {
        kind: TICKET,
        id: hash_of(ticket.expose()),
        scope: String::new(),
        slot: None,
        value: RawJson::null(),
        expires_at: SystemTime::now() + TICKET_LIFETIME,
    };
    match store.create_entry(entry).await.map_err(failed)? {
        Some(_) => Ok(ticket),
        None => Err(io::Error::other("the ticket could not be stored")),
    }
}

/// The sessions in a shared store, one entry each, by the SHA-256 of their tokens. Each request reads its session again, so that
/// one that was ended at another replica is not accepted any more.
struct SharedSessions {
    store: Arc<dyn HubStore>,
}

impl SharedSessions {
    async fn use_ticket(&self, ticket: &str) -> io::Result<bool> {
        // Of several concurrent requests with one ticket, one receives the entry.
        Ok(is_token(ticket)
            && self.store.take_entry(TICKET, &hash_of(ticket)).await.map_err(failed)?.is_some())
    }

    async fn create(&self, person: Option<Person>) -> io::Result<Secret> {
        let (token, now) = (new_token()?, now_ms());
        self.make_room(person.as_ref(), now).await?;
        let scope = scope_of(person.as_ref());
        let session = StoredSession { created_ms: now, used_ms: now, person };
        let entry = NewEntry {
            kind: KIND,
            id: hash_of(token.expose()),
            scope: scope.clone(),
            slot: None,
            value: to_json(&session)?,
            expires_at: UNIX_EPOCH + Duration::from_millis(session.ends_ms()),
        };
        if self.store.create_entry(entry).await.map_err(failed)?.is_none() {
            return Err(io::Error::other("the session could not be stored"));
        }
        // Several replicas may have made room for one session at the same time.
        self.store.trim_entries(KIND, &scope, MAX_OWN_SESSIONS).await.map_err(failed)?;
        Ok(token)
    }

    async fn make_room(&self, person: Option<&Person>, now: u64) -> io::Result<()> {
        let entries = self.store.entries(EntryFilter::all(KIND)).await.map_err(failed)?;
        let sessions: HashMap<String, StoredSession> = entries
            .iter()
            .filter_map(|entry| Some((entry.id.clone(), session_of(entry)?)))
            .filter(|(_, session)| session.is_valid(now))
            .collect();
        let Some(superseded) = superseded_session(&sessions, person) else { return Ok(()) };
        if let Some(entry) = entries.iter().find(|entry| entry.id == superseded) {
            // If it has just been used at another replica, its revision has changed: it stays.
            self.store.remove_entry(KIND, &entry.id, &entry.revision).await.map_err(failed)?;
        }
        Ok(())
    }

    /// A valid session with its entry.
    async fn find(&self, token: &str) -> io::Result<Option<(StateEntry, StoredSession)>> {
        if !is_token(token) {
            return Ok(None);
        }
        let entry = self.store.entry(KIND, &hash_of(token)).await.map_err(failed)?;
        let found = entry.and_then(|entry| session_of(&entry).map(|session| (entry, session)));
        Ok(found.filter(|(_, session)| session.is_valid(now_ms())))
    }

    async fn owner(&self, token: &str) -> io::Result<Option<SessionOwner>> {
        let Some((entry, session)) = self.find(token).await? else { return Ok(None) };
        let (owner, now) = (session.owner(), now_ms());
        if now.saturating_sub(session.used_ms) >= duration_millis(USE_INTERVAL) {
            let change = EntryReplacement {
                kind: KIND,
                id: entry.id,
                expected: entry.revision,
                slot: None,
                value: to_json(&StoredSession { used_ms: now, ..session })?,
                expires_at: entry.expires_at,
            };
            // The session is valid in any case. Another replica may have extended it, or ended it: then it stays ended.
            let _ = self.store.replace_entry(change).await;
        }
        Ok(Some(owner))
    }

    async fn end(&self, token: &str) -> io::Result<()> {
        // A session that is extended meanwhile has another revision, and is read again.
        while let Some((entry, _)) = self.find(token).await? {
            if self.store.remove_entry(KIND, &entry.id, &entry.revision).await.map_err(failed)? {
                break;
            }
        }
        Ok(())
    }
}

/// The scope of an entry: the person that owns it, or nothing for the local user.
fn scope_of(person: Option<&Person>) -> String {
    person.map(|person| format!("{}#{}", person.issuer, person.subject)).unwrap_or_default()
}

fn session_of(entry: &StateEntry) -> Option<StoredSession> {
    entry.value.decode().ok()
}

fn to_json(session: &StoredSession) -> io::Result<RawJson> {
    RawJson::parse(serde_json::to_string(session)?).map_err(io::Error::other)
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use toolhub_store::SqliteStore;

    use super::*;

    fn shared(folder: &Path) -> SharedSessions {
        let store = SqliteStore::open(folder).unwrap();
        SharedSessions { store: Arc::new(store) }
    }

    fn person(subject: usize) -> Person {
        Person {
            issuer: "https://idp.example".to_owned(),
            subject: subject.to_string(),
            display: String::new(),
            groups: Vec::new(),
        }
    }

    #[tokio::test]
    async fn people_log_only_themselves_out_of_shared_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = shared(folder.path());
        let local = sessions.create(None).await.unwrap();
        let ann = sessions.create(Some(person(0))).await.unwrap();
        let first = sessions.create(Some(person(1))).await.unwrap();
        // Sessions of the same millisecond are equally old.
        tokio::time::sleep(Duration::from_millis(5)).await;
        for _ in 0..MAX_OWN_SESSIONS {
            sessions.create(Some(person(1))).await.unwrap();
        }
        assert_eq!(sessions.owner(first.expose()).await.unwrap(), None);
        assert_eq!(
            sessions.owner(ann.expose()).await.unwrap(),
            Some(SessionOwner::Person(Box::new(person(0))))
        );
        assert_eq!(sessions.owner(local.expose()).await.unwrap(), Some(SessionOwner::Local));
        let filter = EntryFilter { scope: Some("https://idp.example#1"), ..EntryFilter::all(KIND) };
        assert_eq!(sessions.store.entries(filter).await.unwrap().len(), MAX_OWN_SESSIONS);
        sessions.end(ann.expose()).await.unwrap();
        assert_eq!(sessions.owner(ann.expose()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn shared_ticket_is_used_once() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = shared(folder.path());
        let ticket = new_shared_ticket(&*sessions.store).await.unwrap();
        let uses = futures_util::future::join_all((0..8).map(|_| sessions.use_ticket(ticket.expose()))).await;
        assert_eq!(uses.into_iter().filter(|used| *used.as_ref().unwrap()).count(), 1);
        assert!(!sessions.use_ticket("../x").await.unwrap());
    }
}
