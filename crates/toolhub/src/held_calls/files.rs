//! Held calls as files in the data folder: the call is one, a decision another, and the use of an approval a third. A file is
//! created whole or not at all and never replaced. Any command of the same user can decide; a running hub looks for the file.
//!
//! A call of a script has a lock file beside it, which the hub keeps locked while the script waits. The system releases the
//! lock when the hub is killed, so that a call that no script waits for cannot be approved.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolhub_core::Principal;
use toolhub_core::millis::{duration_millis, unix_millis};
use toolhub_private_files::{SyncMode, create_private, create_private_dir};

use super::{
    HeldCall, HeldState, MAX_HELD, MAX_STORED_BYTES, NewHeldCall, RETENTION, StoredDecision, ended_to_remove,
    principal_prefix,
};

/// The folder of held calls in the data folder.
const FOLDER: &str = "held";
/// The file that is locked while a call is looked for and created.
const LOCK_FILE: &str = "lock";
/// One of this many new calls removes the files of calls that expired long ago.
const CLEANUP_INTERVAL: u32 = 256;

/// The held calls in a folder.
#[derive(Debug, Clone)]
pub(super) struct HeldCallFiles {
    folder: PathBuf,
}

/// The lock of a hub whose script waits for a decision. Dropping it withdraws the call.
#[derive(Debug)]
pub struct HolderLock {
    path: PathBuf,
    _locked: fs::File,
}

impl Drop for HolderLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The ids of calls, by the names of their files.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) calls: BTreeSet<String>,
    decided: BTreeSet<String>,
}

impl HeldCallFiles {
    /// The held calls in a data folder.
    pub(super) fn in_folder(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Holds a call. Returns the existing entry if the same call is held already and was not used yet. Reads the names of the
    /// files, and only those files whose name belongs to this call.
    pub(super) fn hold(&self, new: &NewHeldCall<'_>) -> io::Result<HeldCall> {
        create_private_dir(&self.folder)?;
        // Equal calls at the same moment, also of several processes, must find each other.
        let _lock = self.lock()?;
        let (prefix, entries) = (new.prefix(), self.entries_of(&new.principal_prefix())?);
        for id in entries.calls.iter().filter(|id| id.starts_with(&prefix)) {
            let Some(held_call) = self.get(id)? else { continue };
            if held_call.is_open() && new.is_decided_by(&held_call) {
                return Ok(held_call);
            }
        }
        self.check_held_count(new.principal, &entries)?;
        self.make_room(new, &entries)?;
        if fastrand::u32(..CLEANUP_INTERVAL) == 0 {
            // Looking at an expired call removes it. A file that cannot be read is not reported to another caller.
            let _ = self.list(None);
        }
        let mut call = new.to_held_call();
        if call.script.is_some() {
            // Before the call exists: without a locked file it is withdrawn.
            call.holder = Some(Arc::new(self.lock_as_holder(&call.id)?));
        }
        self.create(&format!("{}.json", call.id), &serde_json::to_vec(&call)?)?;
        Ok(call)
    }

    /// Locks the folder for other calls of [`HeldCallFiles::hold`] until the file is dropped.
    fn lock(&self) -> io::Result<fs::File> {
        let file =
            fs::File::options().write(true).create(true).truncate(false).open(self.folder.join(LOCK_FILE))?;
        file.lock()?;
        Ok(file)
    }

    fn lock_as_holder(&self, id: &str) -> io::Result<HolderLock> {
        let path = self.file(id, "holder");
        let file = fs::File::options().write(true).create_new(true).open(&path)?;
        file.lock()?;
        Ok(HolderLock { path, _locked: file })
    }

    /// Whether the script that made a call still waits for it.
    fn is_held(&self, id: &str) -> io::Result<bool> {
        match fs::File::open(self.file(id, "holder")) {
            // Others may look at the same time, so that this lock is a shared one.
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Ok(false),
                Err(fs::TryLockError::WouldBlock) => Ok(true),
                Err(fs::TryLockError::Error(error)) => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names of files whose ids begin with a prefix.
    pub(super) fn entries_of(&self, prefix: &str) -> io::Result<Entries> {
        let mut entries = Entries::default();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some((id, extension)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
            if id.starts_with(prefix) {
                match extension {
                    "json" => drop(entries.calls.insert(id.to_owned())),
                    "decision" => drop(entries.decided.insert(id.to_owned())),
                    _ => {}
                }
            }
        }
        Ok(entries)
    }

    /// Checks that another call of the principal may wait. The files are read only if there are many of them; those of expired
    /// calls are removed then.
    fn check_held_count(&self, principal: &Principal, entries: &Entries) -> io::Result<()> {
        let undecided: Vec<&String> = entries.calls.difference(&entries.decided).collect();
        if undecided.len() < MAX_HELD {
            return Ok(());
        }
        let mut held = 0;
        for id in undecided {
            match self.get(id)? {
                Some(call) if call.state == HeldState::Expired => self.remove(id),
                // Those of ended scripts count until they expire: a script that is repeated must not fill the folder.
                Some(call) => held += usize::from(call.principal == **principal.id()),
                None => {}
            }
        }
        if held >= MAX_HELD {
            return Err(io::Error::other("too many calls of this principal wait for approval"));
        }
        Ok(())
    }

    /// Removes ended calls of the principal if all together would be too long. Reads the files only if they may be.
    fn make_room(&self, new: &NewHeldCall<'_>, entries: &Entries) -> io::Result<()> {
        let length = new.arguments.get().len();
        let mut bytes = length;
        for id in &entries.calls {
            bytes += fs::metadata(self.file(id, "json"))
                .map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX));
        }
        if bytes <= MAX_STORED_BYTES {
            return Ok(());
        }
        let mut stored = Vec::new();
        for id in &entries.calls {
            stored.extend(self.get(id)?.filter(|call| call.principal == **new.principal.id()));
        }
        for call in ended_to_remove(stored, length)? {
            self.remove(&call.id);
        }
        Ok(())
    }

    /// All held calls, or those of a principal. Removes the files of calls that expired long ago.
    pub(super) fn list(&self, principal: Option<&str>) -> io::Result<Vec<HeldCall>> {
        let prefix = principal.map(principal_prefix).unwrap_or_default();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut calls = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            if !id.starts_with(&prefix) {
                continue;
            }
            let Some(call) = self.get(id)? else { continue };
            // The prefix is short: another principal may have the same one.
            if principal.is_some_and(|principal| call.principal != principal) {
                continue;
            }
            let kept_until = call.expires_ms.saturating_add(duration_millis(RETENTION));
            if kept_until < unix_millis(SystemTime::now()) {
                self.remove(id);
                continue;
            }
            calls.push(call);
        }
        Ok(calls)
    }

    /// A held call by its reference, which is hexadecimal.
    pub(super) fn get(&self, id: &str) -> io::Result<Option<HeldCall>> {
        let Some(bytes) = read_if_exists(&self.file(id, "json"))? else { return Ok(None) };
        let mut call: HeldCall = serde_json::from_slice(&bytes)?;
        let decision = read_if_exists(&self.file(id, "decision"))?;
        let decision = decision.map(|bytes| serde_json::from_slice::<StoredDecision>(&bytes)).transpose()?;
        call.state = call.state_after(decision, self.file(id, "used").exists());
        if call.depends_on_script() && (self.file(id, "withdrawn").exists() || !self.is_held(id)?) {
            call.state = HeldState::Withdrawn;
        }
        Ok(Some(call))
    }

    /// Stores a decision. Returns false if there is another one.
    pub(super) fn store_decision(&self, id: &str, decision: &StoredDecision) -> io::Result<bool> {
        match self.create(&format!("{id}.decision"), &serde_json::to_vec(decision)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uses an approval. Returns whether this call may run: true exactly once.
    pub(super) fn consume(&self, id: &str) -> io::Result<bool> {
        if !self.get(id)?.is_some_and(|call| matches!(call.state, HeldState::Approved { .. })) {
            return Ok(false);
        }
        match self.create(&format!("{id}.used"), b"") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a call that its caller withdrew, unless it was decided.
    pub(super) fn withdraw(&self, id: &str) -> io::Result<()> {
        if self.get(id)?.is_some_and(|call| call.state == HeldState::Held) {
            self.remove(id);
        }
        Ok(())
    }

    /// Withdraws a call of a script that has ended. Returns whether it was open until now.
    pub(super) fn withdraw_of_script(&self, id: &str) -> io::Result<bool> {
        if self.file(id, "withdrawn").exists() {
            return Ok(false);
        }
        let is_open = self.get(id)?.is_some_and(|call| {
            call.script.is_some() && (call.depends_on_script() || call.state == HeldState::Withdrawn)
        });
        if !is_open {
            return Ok(false);
        }
        match self.create(&format!("{id}.withdrawn"), b"") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the calls of a principal whose key was revoked, unless they were denied or have run.
    pub(super) fn withdraw_all(&self, principal: &str) -> io::Result<()> {
        for call in self.list(Some(principal))? {
            if matches!(call.state, HeldState::Held | HeldState::Approved { .. }) {
                self.remove(&call.id);
            }
        }
        Ok(())
    }

    pub(super) fn file(&self, id: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{id}.{extension}"))
    }

    pub(super) fn remove(&self, id: &str) {
        for extension in ["json", "decision", "used", "withdrawn", "holder"] {
            let _ = fs::remove_file(self.file(id, extension));
        }
    }

    /// Creates a file with this content, durable and whole. Fails if it exists.
    pub(super) fn create(&self, name: &str, content: &[u8]) -> io::Result<()> {
        create_private(&self.folder.join(name), content, SyncMode::FileAndFolder)
    }
}

fn read_if_exists(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
