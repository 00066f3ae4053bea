//! Sessions of browsers in the data folder, and the one-time tickets that create them.
//!
//! A ticket is a file in the data folder: only the user who owns the hub can create one. Sessions survive a restart of the hub,
//! so that open pages go on. Both are stored as hashes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use toolhub::Person;
use toolhub_core::Secret;
use toolhub_core::millis::{duration_millis, unix_millis};
use toolhub_mcp_gateway::random_token;
use toolhub_private_files::{
    SyncMode, create_private, create_private_dir, open_private_file, replace_private,
};
use toolhub_server::hash_of;

/// The folder of the console's files in the data folder.
pub(crate) const CONSOLE_FOLDER: &str = "console";
const SESSIONS_FILE: &str = "sessions.json";
const HOST_FILE: &str = "host";
const TICKETS_FOLDER: &str = "tickets";
/// How long a ticket can be used.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(300);
/// A session ends if it was not used for this long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(12 * 3_600);
/// A session ends after this time in any case.
const MAX_LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// How often the time of the last use is stored.
pub(crate) const USE_INTERVAL: Duration = Duration::from_secs(300);
/// Number of sessions from which those of people make room, the one that was not used for the longest time first.
const MAX_SESSIONS: usize = 500;
/// Maximum number of sessions of a person, or of the local user. The one that was not used for the longest time makes room.
pub(crate) const MAX_OWN_SESSIONS: usize = 20;

/// A session of a person ends after this time in any case: the identity provider is asked again then.
const MAX_PERSON_LIFETIME: Duration = Duration::from_secs(12 * 3_600);

/// A stored session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) created_ms: u64,
    pub(crate) used_ms: u64,
    /// The person who logged in; a session that a ticket created belongs to the local user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<Person>,
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionOwner {
    /// The user who runs the hub.
    Local,
    /// A person who logged in at an identity provider.
    Person(Box<Person>),
}

impl StoredSession {
    /// When it ends in any case, in milliseconds since 1970.
    pub(crate) fn ends_ms(&self) -> u64 {
        self.created_ms.saturating_add(duration_millis(self.lifetime()))
    }

    fn lifetime(&self) -> Duration {
        if self.person.is_some() { MAX_PERSON_LIFETIME } else { MAX_LIFETIME }
    }

    pub(crate) fn is_valid(&self, now_ms: u64) -> bool {
        // A clock that was set back must not extend a session without end.
        let since = |then: u64, limit: Duration| now_ms.abs_diff(then) < duration_millis(limit);
        since(self.used_ms, IDLE_TIMEOUT) && since(self.created_ms, self.lifetime())
    }

    pub(crate) fn owner(&self) -> SessionOwner {
        self.person.clone().map_or(SessionOwner::Local, |person| SessionOwner::Person(Box::new(person)))
    }
}

/// The sessions in the data folder of a hub, by the SHA-256 of their tokens.
pub(crate) struct FolderSessions {
    folder: PathBuf,
    sessions: Mutex<HashMap<String, StoredSession>>,
}

impl FolderSessions {
    /// Reads the stored sessions. An unreadable file means that all browsers have to log in again.
    pub(crate) fn open(data_dir: &Path) -> Self {
        let folder = data_dir.join(CONSOLE_FOLDER);
        let stored = fs::read(folder.join(SESSIONS_FILE)).ok();
        let sessions = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { folder, sessions: Mutex::new(sessions) }
    }

    /// Uses a ticket, once. Returns the token of a new session.
    pub(crate) fn redeem(&self, ticket: &str) -> io::Result<Option<Secret>> {
        match self.use_ticket(ticket)? {
            true => self.create(None).map(Some),
            false => Ok(None),
        }
    }

    /// Uses a ticket, once. Returns whether it is valid.
    pub(crate) fn use_ticket(&self, ticket: &str) -> io::Result<bool> {
        if !is_token(ticket) {
            return Ok(false);
        }
        let file = self.folder.join(TICKETS_FOLDER).join(hash_of(ticket));
        let created = fs::metadata(&file).and_then(|metadata| metadata.modified());
        // Removing the file decides between two requests with the same ticket.
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        let age = SystemTime::now().duration_since(created?).unwrap_or(TICKET_LIFETIME);
        Ok(age < TICKET_LIFETIME)
    }

    /// Creates a session of a person, or of the local user. Returns its token.
    pub(crate) fn create(&self, person: Option<Person>) -> io::Result<Secret> {
        let token = new_token()?;
        let now = now_ms();
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.is_valid(now));
        if let Some(superseded) = superseded_session(&sessions, person.as_ref()) {
            sessions.remove(&superseded);
        }
        // Later than every other one, also within a millisecond, so that the oldest one is known.
        let newest = sessions.values().map(|session| session.used_ms).max().unwrap_or_default();
        let used_ms = now.max(newest.saturating_add(1));
        sessions.insert(hash_of(token.expose()), StoredSession { created_ms: now, used_ms, person });
        self.store(&sessions)?;
        Ok(token)
    }

    /// The owner of a session if it is valid. Extends it.
    pub(crate) fn owner(&self, token: &str) -> Option<SessionOwner> {
        if !is_token(token) {
            return None;
        }
        let (hash, now) = (hash_of(token), now_ms());
        let mut sessions = self.lock();
        let session = sessions.get_mut(&hash)?;
        if !session.is_valid(now) {
            sessions.remove(&hash);
            return None;
        }
        let owner = session.owner();
        let is_due = now.saturating_sub(session.used_ms) >= duration_millis(USE_INTERVAL);
        session.used_ms = now.max(session.used_ms);
        if is_due {
            // The session is valid in any case; a failure shortens it after a restart.
            let _ = self.store(&sessions);
        }
        Some(owner)
    }

    /// The owner of a session if it is valid, without extending it.
    pub(crate) fn live_owner(&self, token: &str) -> Option<SessionOwner> {
        self.lock()
            .get(&hash_of(token))
            .filter(|session| session.is_valid(now_ms()))
            .map(StoredSession::owner)
    }

    /// Ends a session.
    pub(crate) fn end(&self, token: &str) -> io::Result<()> {
        let mut sessions = self.lock();
        match sessions.remove(&hash_of(token)) {
            Some(_) => self.store(&sessions),
            None => Ok(()),
        }
    }

    fn store(&self, sessions: &HashMap<String, StoredSession>) -> io::Result<()> {
        create_private_dir(&self.folder)?;
        let text = serde_json::to_vec(sessions)?;
        replace_private(&self.folder.join(SESSIONS_FILE), &text, SyncMode::None)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, StoredSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that a new one replaces, if there are too many. A person makes room with sessions of its own first, and never with
/// one of the local user: otherwise it could log others out.
pub(crate) fn superseded_session(
    sessions: &HashMap<String, StoredSession>,
    person: Option<&Person>,
) -> Option<String> {
    let is_own = |session: &StoredSession| match (&session.person, person) {
        (Some(one), Some(other)) => one.issuer == other.issuer && one.subject == other.subject,
        (one, other) => one.is_none() && other.is_none(),
    };
    let own = sessions.values().filter(|session| is_own(session)).count();
    let is_full = sessions.len() >= MAX_SESSIONS;
    let is_candidate = |session: &&StoredSession| match (own >= MAX_OWN_SESSIONS, person) {
        (true, _) => is_own(session),
        (false, _) => is_full && session.person.is_some(),
    };
    let candidates = sessions.iter().filter(|(_, session)| is_candidate(session));
    candidates.min_by_key(|(_, session)| session.used_ms).map(|(hash, _)| hash.clone())
}

/// The host name of the console of a data folder: a random name below `localhost`, which browsers resolve to this machine.
/// Cookies do not distinguish ports, so that every program that listens on another port of `127.0.0.1` or `localhost` could
/// receive the cookie of a session there.
pub(crate) fn console_host(data_dir: &Path) -> io::Result<String> {
    let file = data_dir.join(CONSOLE_FOLDER).join(HOST_FILE);
    let is_host = |text: &str| {
        let name = text.strip_prefix("console-").and_then(|rest| rest.strip_suffix(".localhost"));
        name.is_some_and(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if let Some(known) = fs::read_to_string(&file).ok().filter(|text| is_host(text)) {
        return Ok(known);
    }
    create_private_dir(&data_dir.join(CONSOLE_FOLDER))?;
    let name = random_token().ok_or_else(|| io::Error::other("the system has no random numbers to give"))?;
    let host = format!("console-{name}.localhost");
    // Another process may have been faster; a damaged file is replaced.
    if create_private(&file, host.as_bytes(), SyncMode::None).is_err()
        && !fs::read_to_string(&file).is_ok_and(|text| is_host(&text))
    {
        replace_private(&file, host.as_bytes(), SyncMode::None)?;
    }
    fs::read_to_string(&file)
}

/// Creates a one-time ticket in a data folder. Removes tickets that were never used.
pub(crate) fn new_ticket(data_dir: &Path) -> io::Result<Secret> {
    let folder = data_dir.join(CONSOLE_FOLDER).join(TICKETS_FOLDER);
    create_private_dir(&data_dir.join(CONSOLE_FOLDER))?;
    create_private_dir(&folder)?;
    for entry in fs::read_dir(&folder)?.flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= TICKET_LIFETIME));
        if is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
    let ticket = new_token()?;
    let file = folder.join(hash_of(ticket.expose()));
    open_private_file(&file, fs::File::options().write(true).create_new(true))?;
    Ok(ticket)
}

pub(crate) fn new_token() -> io::Result<Secret> {
    let parts = random_token().zip(random_token());
    let (one, other) = parts.ok_or_else(|| io::Error::other("the system has no random numbers to give"))?;
    Ok(Secret::new(one + &other))
}

/// The token that a page sends with requests that change something. It depends on the session, and does not reveal its token.
pub(crate) fn csrf_token(session: &str) -> String {
    hash_of(&format!("toolhub csrf {session}"))
}

pub(crate) fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn now_ms() -> u64 {
    unix_millis(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_opens_one_session() {
        let data_dir = tempfile::tempdir().unwrap();
        let sessions = FolderSessions::open(data_dir.path());
        let ticket = new_ticket(data_dir.path()).unwrap();
        let token = sessions.redeem(ticket.expose()).unwrap().unwrap();
        assert!(sessions.redeem(ticket.expose()).unwrap().is_none());
        assert_eq!(sessions.owner(token.expose()), Some(SessionOwner::Local));
        assert_eq!(sessions.owner(ticket.expose()), None);
        assert_ne!(csrf_token(token.expose()), *token.expose());
    }

    #[test]
    fn sessions_survive_a_restart_and_are_stored_as_hashes() {
        let data_dir = tempfile::tempdir().unwrap();
        let ticket = new_ticket(data_dir.path()).unwrap();
        let stored_ticket =
            fs::read_dir(data_dir.path().join("console/tickets")).unwrap().next().unwrap().unwrap();
        assert_ne!(stored_ticket.file_name().to_str().unwrap(), ticket.expose());
        let token = FolderSessions::open(data_dir.path()).redeem(ticket.expose()).unwrap().unwrap();
        let stored = fs::read_to_string(data_dir.path().join("console/sessions.json")).unwrap();
        assert!(!stored.contains(token.expose()), "{stored}");
        let sessions = FolderSessions::open(data_dir.path());
        assert_eq!(sessions.owner(token.expose()), Some(SessionOwner::Local));
        sessions.end(token.expose()).unwrap();
        assert_eq!(sessions.owner(token.expose()), None);
        assert_eq!(FolderSessions::open(data_dir.path()).owner(token.expose()), None);
    }

    #[test]
    fn host_is_random_and_stays() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let host = console_host(one.path()).unwrap();
        assert_eq!(console_host(one.path()).unwrap(), host);
        assert_ne!(console_host(other.path()).unwrap(), host);
        fs::write(one.path().join("console/host"), "evil.example").unwrap();
        assert!(console_host(one.path()).unwrap().ends_with(".localhost"));
    }

    #[test]
    fn old_tickets_and_other_names_open_nothing() {
        let data_dir = tempfile::tempdir().unwrap();
        let sessions = FolderSessions::open(data_dir.path());
        let ticket = new_ticket(data_dir.path()).unwrap();
        let file = data_dir.path().join("console/tickets").join(hash_of(ticket.expose()));
        let past = SystemTime::now() - TICKET_LIFETIME;
        fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
        assert!(sessions.redeem(ticket.expose()).unwrap().is_none());
        assert!(!file.exists());
        for name in ["", "..", "../sessions.json", &"0".repeat(64), &"é".repeat(32)] {
            assert!(sessions.redeem(name).unwrap().is_none(), "{name}");
        }
    }

    #[test]
    fn people_log_only_themselves_out() {
        let data_dir = tempfile::tempdir().unwrap();
        let sessions = FolderSessions::open(data_dir.path());
        let person = |subject: usize| Person {
            issuer: "https://idp.example".to_owned(),
            subject: subject.to_string(),
            display: String::new(),
            groups: Vec::new(),
        };
        let local = sessions.create(None).unwrap();
        let ann = sessions.create(Some(person(0))).unwrap();
        let first = sessions.create(Some(person(1))).unwrap();
        for _ in 0..MAX_OWN_SESSIONS {
            sessions.create(Some(person(1))).unwrap();
        }
        assert_eq!(sessions.owner(first.expose()), None);
        assert!(sessions.owner(ann.expose()).is_some());
        for subject in 2..MAX_SESSIONS {
            sessions.create(Some(person(subject))).unwrap();
        }
        assert_eq!(sessions.owner(local.expose()), Some(SessionOwner::Local));
        assert!(sessions.lock().len() <= MAX_SESSIONS);
    }

    #[test]
    fn sessions_end_when_idle_or_old_also_if_the_clock_is_set_back() {
        let (now, hour) = (1_000 * 3_600_000, 3_600_000);
        let session =
            |created: u64, used: u64| StoredSession { created_ms: created, used_ms: used, person: None };
        assert!(session(now, now).is_valid(now));
        assert!(session(now - 24 * hour, now - hour).is_valid(now));
        assert!(!session(now - 24 * hour, now - 12 * hour).is_valid(now));
        assert!(!session(now - 8 * 24 * hour, now).is_valid(now));
        assert!(!session(now + 8 * 24 * hour, now + 8 * 24 * hour).is_valid(now));
    }
}
