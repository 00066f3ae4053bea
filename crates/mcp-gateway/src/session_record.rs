//! The persistent part of resumable sessions: keys, and the sessions that clients have ended. A hub alone keeps them in its data
//! folder (`sessions.key`, `sessions.ended`); hubs that share a store keep them there, so that a session is ended everywhere.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use ring::hmac::{HMAC_SHA256, Key};
use ring::rand::SystemRandom;
use tokio::sync::OnceCell;
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{EntryFilter, NewEntry, ReplicaId, SharedState, StateKind};
use toolhub_private_files::{SyncMode, create_private, open_private_file, replace_private};

use crate::ended_session::{
    EndedSession, MAX_ENDED, NONCE_BYTES, OwnerHash, RESUMABLE_FOR, SessionStamp, unix_seconds,
};
use crate::replica_seal::ReplicaSeal;
use crate::session_seal::{SealKeys, SessionKey};
use crate::shared_sessions::{bound_ended, is_stored_as_ended, stored_key};

const KEY_FILE: &str = "sessions.key";
const ENDED_FILE: &str = "sessions.ended";
const LOCK_FILE: &str = "sessions.lock";
const KEY_BYTES: usize = 32;
/// Number of superfluous lines in the file that triggers its compaction.
const MAX_EXTRA_LINES: usize = 4_096;
/// One of this many ended sessions bounds the entries of its principal in a shared store.
const TRIM_INTERVAL: u8 = 16;

/// The keys and the ended sessions, shared by all profiles of a hub.
pub struct SessionRecord {
    folder: Option<PathBuf>,
    /// Loaded or generated on first use. `None` if the system has no randomness; then no session can be resumed.
    key: OnceLock<Option<Key>>,
    ended: Mutex<EndedSessions>,
    state: Option<Arc<dyn SharedState>>,
    /// The keys of the configuration.
    session_keys: Vec<SessionKey>,
    derived_keys: OnceCell<DerivedKeys>,
}

/// The keys for each use, derived from the session keys.
struct DerivedKeys {
    ids: Arc<SealKeys>,
    requests: Arc<ReplicaSeal>,
}

impl fmt::Debug for SessionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecord").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The ended sessions of one owner.
#[derive(Debug, Default)]
struct OwnerSessions {
    /// Sessions created at this time or before count as ended.
    before: u64,
    /// Ended sessions that were created later, the oldest first.
    sessions: BTreeSet<(u64, [u8; NONCE_BYTES])>,
}

impl OwnerSessions {
    fn contains(&self, stamp: &SessionStamp) -> bool {
        stamp.created <= self.before || self.sessions.contains(&(stamp.created, stamp.nonce))
    }

    fn add(&mut self, stamp: &SessionStamp) {
        if !self.contains(stamp) {
            self.sessions.insert((stamp.created, stamp.nonce));
        }
        while self.sessions.len() > MAX_ENDED {
            if let Some((created, _)) = self.sessions.pop_first() {
                self.end_before(created);
            }
        }
    }

    fn end_before(&mut self, created: u64) {
        self.before = self.before.max(created);
        let before = self.before;
        self.sessions.retain(|(created, _)| *created > before);
    }
}

#[derive(Debug, Default)]
struct EndedSessions {
    owners: HashMap<OwnerHash, OwnerSessions>,
    /// Length and modification time of the file when this process last read or wrote it.
    file_version: Option<(u64, SystemTime)>,
    lines: usize,
}

impl EndedSessions {
    fn apply(&mut self, line: &Line) {
        match line {
            Line::Ended(EndedSession { owner, stamp }) => self.owners.entry(*owner).or_default().add(stamp),
            Line::Before(owner, created) => self.owners.entry(*owner).or_default().end_before(*created),
        }
    }

    /// Removes entries of expired ids.
    fn drop_expired(&mut self) {
        let expired = unix_seconds().saturating_sub(RESUMABLE_FOR.as_secs());
        self.owners.retain(|_, owner| {
            owner.sessions.retain(|(created, _)| *created >= expired);
            owner.before >= expired || !owner.sessions.is_empty()
        });
    }

    /// The maximum number of lines that the file needs.
    fn max_lines(&self) -> usize {
        self.owners.values().map(|owner| 1 + owner.sessions.len()).sum()
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut add = |line: Line| {
            let _ = writeln!(text, "{line}");
        };
        for (owner, owner_sessions) in &self.owners {
            if owner_sessions.before > 0 {
                add(Line::Before(*owner, owner_sessions.before));
            }
            for (created, nonce) in &owner_sessions.sessions {
                let stamp = SessionStamp { created: *created, nonce: *nonce };
                add(Line::Ended(EndedSession { owner: *owner, stamp }));
            }
        }
        text
    }
}

/// A line of the file.
enum Line {
    Ended(EndedSession),
    Before(OwnerHash, u64),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(EndedSession { owner, stamp }) => {
                write!(f, "ended {} {} {}", hex::encode(&owner.0), stamp.created, hex::encode(&stamp.nonce))
            }
            Self::Before(owner, created) => write!(f, "before {} {created}", hex::encode(&owner.0)),
        }
    }
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let (kind, owner, created) =
            (fields.next()?, OwnerHash(hex::decode(fields.next()?)?), fields.next()?.parse().ok()?);
        match (kind, fields.next()) {
            ("ended", Some(nonce)) => {
                let stamp = SessionStamp { created, nonce: hex::decode(nonce)? };
                Some(Self::Ended(EndedSession { owner, stamp }))
            }
            ("before", None) => Some(Self::Before(owner, created)),
            _ => None,
        }
    }
}

impl SessionRecord {
    /// Keeps the key and the ended sessions in this data folder. If the folder is not writable, sessions end with the
    /// process.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), ..Self::in_memory() }
    }

    /// Creates a record without a folder: sessions end with the process.
    pub fn in_memory() -> Self {
        Self {
            folder: None,
            key: OnceLock::new(),
            ended: Mutex::default(),
            state: None,
            session_keys: Vec::new(),
            derived_keys: OnceCell::new(),
        }
    }

    /// Keeps what does not fit into session ids in this store and, if other replicas share it, the keys and the ended sessions.
    #[must_use]
    pub fn with_state(self, state: Arc<dyn SharedState>) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Seals session ids with the first of these keys, and opens those of all of them.
    #[must_use]
    pub fn with_keys(self, session_keys: Vec<SessionKey>) -> Self {
        Self { session_keys, ..self }
    }

    /// The store, if there is one.
    pub(super) fn state(&self) -> Option<&Arc<dyn SharedState>> {
        self.state.as_ref()
    }

    /// The store, if other replicas share it.
    pub(super) fn shared(&self) -> Option<&Arc<dyn SharedState>> {
        self.state.as_ref().filter(|state| state.is_shared())
    }

    /// This process.
    pub(super) fn replica(&self) -> ReplicaId {
        self.shared().map_or(ReplicaId(0), |state| state.replica())
    }

    /// Returns the keys that seal session ids. `None` if the store cannot be read, or the system has no randomness.
    pub(super) async fn seal_keys(&self) -> Option<Arc<SealKeys>> {
        self.keys().await.map(|keys| Arc::clone(&keys.ids))
    }

    /// Returns what protects requests between replicas. `None` if the store cannot be read, or the system has no randomness.
    pub async fn replica_seal(&self) -> Option<Arc<ReplicaSeal>> {
        self.keys().await.map(|keys| Arc::clone(&keys.requests))
    }

    async fn keys(&self) -> Option<&DerivedKeys> {
        let load = async || {
            let keys = match (self.session_keys.as_slice(), self.shared()) {
                ([], Some(state)) => vec![stored_key(&**state).await.ok().flatten().ok_or(())?],
                ([], None) => vec![SessionKey::derive(self.key().ok_or(())?)],
                (keys, _) => keys.to_vec(),
            };
            let ids = SealKeys::new(&keys).map(Arc::new).ok_or(())?;
            let requests = ReplicaSeal::new(&keys).map(Arc::new);
            requests.map(|requests| DerivedKeys { ids, requests }).ok_or(())
        };
        self.derived_keys.get_or_try_init(load).await.ok()
    }

    /// Reads whether a session has been ended by another process. Returns false if that cannot be read.
    pub(super) async fn refresh_ended(&self, ended: &EndedSession) -> bool {
        // Sessions that were ended before the store was shared are in the file alone.
        self.refresh();
        let Some(state) = self.shared() else { return true };
        match is_stored_as_ended(&**state, ended).await {
            Ok(true) => {
                self.add(*ended);
                true
            }
            Ok(false) => true,
            Err(_) => false,
        }
    }

    /// Stores the end of a session in the store that replicas share. If that fails, it has ended in this process only.
    pub(super) async fn persist_shared(
        &self,
        state: &dyn SharedState,
        principal: &str,
        ended: &EndedSession,
    ) {
        let entry = NewEntry {
            kind: StateKind::EndedSession,
            id: ended.id(),
            scope: principal.to_owned(),
            slot: None,
            value: RawJson::from(1),
            expires_at: ended.expires_at(),
        };
        let _ = state.create_entry(entry).await;
        if ended.stamp.nonce[0].is_multiple_of(TRIM_INTERVAL) {
            let _ = bound_ended(state, principal, ended).await;
        }
    }

    /// The sessions that any replica has ended since a time.
    pub(super) async fn ended_since(&self, since: SystemTime) -> Result<Vec<EndedSession>, StoreError> {
        let Some(state) = self.shared() else { return Ok(Vec::new()) };
        let filter = EntryFilter { since, ..EntryFilter::all(StateKind::EndedSession) };
        let entries = state.entries(filter).await?;
        let ended: Vec<EndedSession> =
            entries.iter().filter_map(|entry| EndedSession::parse_id(&entry.id)).collect();
        ended.iter().for_each(|ended| self.add(*ended));
        Ok(ended)
    }

    /// Returns the key that signs session ids.
    pub(super) fn key(&self) -> Option<&Key> {
        let key = self.key.get_or_init(|| {
            let loaded = self.folder.as_deref().and_then(|folder| load_or_create_key(folder).ok());
            loaded.or_else(|| Key::generate(HMAC_SHA256, &SystemRandom::new()).ok())
        });
        key.as_ref()
    }

    fn ended(&self) -> MutexGuard<'_, EndedSessions> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn contains(&self, ended: &EndedSession) -> bool {
        self.ended().owners.get(&ended.owner).is_some_and(|owner| owner.contains(&ended.stamp))
    }

    /// Adds an ended session in memory.
    pub(super) fn add(&self, ended: EndedSession) {
        self.ended().apply(&Line::Ended(ended));
    }

    /// Reads the file if it has changed. It is small, and read only before a session is resumed.
    pub(super) fn refresh(&self) {
        let Some(file) = self.folder.as_ref().map(|folder| folder.join(ENDED_FILE)) else { return };
        let Ok(metadata) = file.metadata() else { return };
        let file_version = metadata.modified().ok().map(|at| (metadata.len(), at));
        let mut ended = self.ended();
        if file_version.is_some() && ended.file_version == file_version {
            return;
        }
        let Ok(text) = std::fs::read_to_string(&file) else { return };
        text.lines().filter_map(Line::parse).for_each(|line| ended.apply(&line));
        ended.drop_expired();
        (ended.lines, ended.file_version) = (text.lines().count(), file_version);
    }

    /// Appends an ended session to the file, without fsync: after a power failure a client may be able to resume a
    /// session that it had ended.
    pub(super) fn write(&self, ended: &EndedSession) {
        let Some(folder) = &self.folder else { return };
        // If writing fails, the session is ended in this process only.
        let _ = self.append(folder, ended);
    }

    fn append(&self, folder: &Path, session: &EndedSession) -> io::Result<()> {
        let lock = open_private_file(
            &folder.join(LOCK_FILE),
            OpenOptions::new().create(true).truncate(false).write(true),
        )?;
        lock.lock()?;
        let path = folder.join(ENDED_FILE);
        self.refresh();
        let mut ended = self.ended();
        ended.apply(&Line::Ended(*session));
        if ended.lines > ended.max_lines() + MAX_EXTRA_LINES {
            let text = ended.to_text();
            replace_private(&path, text.as_bytes(), SyncMode::None)?;
            (ended.lines, ended.file_version) = (text.lines().count(), None);
            return Ok(());
        }
        let mut file = open_private_file(&path, OpenOptions::new().create(true).append(true))?;
        file.write_all(format!("{}\n", Line::Ended(*session)).as_bytes())?;
        ended.lines += 1;
        let metadata = file.metadata()?;
        ended.file_version = metadata.modified().ok().map(|at| (metadata.len(), at));
        Ok(())
    }
}

/// Loads the key from the data folder. Generates one if there is none or it is invalid.
fn load_or_create_key(folder: &Path) -> io::Result<Key> {
    let path = folder.join(KEY_FILE);
    let read = || -> io::Result<Option<Key>> {
        let text = io::read_to_string(open_private_file(&path, OpenOptions::new().read(true))?)?;
        Ok(hex::decode::<KEY_BYTES>(text.trim_end()).map(|bytes| Key::new(HMAC_SHA256, &bytes)))
    };
    let is_invalid = match read() {
        Ok(Some(key)) => return Ok(key),
        Ok(None) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = format!("{}\n", hex::encode(&bytes));
    let write = if is_invalid { replace_private } else { create_private };
    match write(&path, text.as_bytes(), SyncMode::File) {
        Ok(()) => Ok(Key::new(HMAC_SHA256, &bytes)),
        // Another process has created the key first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read()?.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(created: u64) -> SessionStamp {
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&created.to_be_bytes());
        SessionStamp { created, nonce }
    }

    fn ended(principal: &str, created: u64) -> EndedSession {
        EndedSession::new("work", principal, &stamp(created))
    }

    #[test]
    fn key_file_is_private_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        let sign = |record: &SessionRecord| ring::hmac::sign(record.key().unwrap(), b"x").as_ref().to_vec();
        let first = sign(&SessionRecord::in_folder(folder.path()));
        assert_eq!(sign(&SessionRecord::in_folder(folder.path())), first);
        assert_ne!(sign(&SessionRecord::in_memory()), first);
        let file = folder.path().join(KEY_FILE);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            // The key is not read through a symbolic link.
            let elsewhere = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(&file, elsewhere.path().join(KEY_FILE)).unwrap();
            assert_ne!(sign(&SessionRecord::in_folder(elsewhere.path())), first);
        }
        std::fs::write(&file, "broken").unwrap();
        let second = sign(&SessionRecord::in_folder(folder.path()));
        assert_ne!(second, first);
        assert_eq!(sign(&SessionRecord::in_folder(folder.path())), second);
        // Without a folder the key lives as long as the process.
        let none = SessionRecord::in_folder(&folder.path().join("none"));
        assert_eq!(sign(&none), sign(&none));
    }

    #[test]
    fn ended_sessions_stay_ended_in_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| SessionRecord::in_folder(folder.path()));
        let first = unix_seconds();
        for (count, created) in (first..first + 3).enumerate() {
            one.add(ended("ann", created));
            one.write(&ended("ann", created));
            other.refresh();
            assert!(other.contains(&ended("ann", created)), "{count}");
        }
        other.write(&ended("bob", first));
        let third = SessionRecord::in_folder(folder.path());
        third.refresh();
        assert!(third.contains(&ended("ann", first)) && third.contains(&ended("bob", first)));
        assert!(!third.contains(&ended("bob", first + 1)) && !third.contains(&ended("eve", first)));
        // Invalid lines are skipped.
        let file = folder.path().join(ENDED_FILE);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(
            &file,
            format!("\nended x 1 2\nbefore\nended {}\n{text}before \u{e9}\n", "0".repeat(16)),
        )
        .unwrap();
        let fourth = SessionRecord::in_folder(folder.path());
        fourth.refresh();
        assert!(fourth.contains(&ended("ann", first + 2)) && !fourth.contains(&ended("ann", first + 3)));
    }

    #[test]
    fn record_is_bounded_and_forgets_no_ended_session() {
        let folder = tempfile::tempdir().unwrap();
        let record = SessionRecord::in_folder(folder.path());
        let first = unix_seconds();
        let all = u64::try_from(2 * MAX_ENDED + MAX_EXTRA_LINES).unwrap();
        record.write(&ended("bob", first + 1));
        for created in first..first + all {
            record.add(ended("ann", created));
            record.write(&ended("ann", created));
        }
        let again = SessionRecord::in_folder(folder.path());
        again.refresh();
        for record in [&record, &again] {
            assert!((first..first + all).all(|created| record.contains(&ended("ann", created))));
            assert!(!record.contains(&ended("ann", first + all)));
            // Sessions of another principal with the same creation time can still be resumed.
            assert!(record.contains(&ended("bob", first + 1)) && !record.contains(&ended("bob", first)));
            let ended = record.ended();
            assert!(ended.owners.values().all(|owner| owner.sessions.len() <= MAX_ENDED));
            assert!(ended.lines <= 2 * MAX_ENDED + MAX_EXTRA_LINES, "{}", ended.lines);
        }
    }

    #[test]
    fn expired_sessions_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let expired = unix_seconds() - RESUMABLE_FOR.as_secs() - 60;
        SessionRecord::in_folder(folder.path()).write(&ended("ann", expired));
        let record = SessionRecord::in_folder(folder.path());
        record.refresh();
        assert!(record.ended().owners.is_empty());
    }
}
