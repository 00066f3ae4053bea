//! The folder of journals and liveness locks beside a database. A store that has written a journal holds a locked
//! file there, which the operating system unlocks when the process ends. The journals of a store without a lock are
//! replayed by the next store that opens the folder.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolhub_private_files::{create_private_parent, open_private_file};

use crate::owner::OwnerId;

/// The folder of the lock files, beside the database.
const FOLDER: &str = "running";
/// Minimum age of an abandoned lock file before it is removed.
const MIN_AGE: Duration = Duration::from_secs(60);

fn path(folder: &Path, owner: OwnerId) -> PathBuf {
    folder.join(FOLDER).join(format!("{:016x}.lock", owner.0))
}

/// The contents of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalKind {
    /// Starts and ends of calls that may change state, as lines.
    Intents,
    /// Finished calls, as frames.
    Calls,
}

impl JournalKind {
    fn extension(self) -> &'static str {
        match self {
            Self::Intents => "journal",
            Self::Calls => "calls",
        }
    }
}

/// A journal file of any store.
#[derive(Debug)]
pub(crate) struct JournalFile {
    pub(crate) owner: OwnerId,
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
}

/// The journal files of dead stores, oldest first for each store.
pub(crate) fn journals_of_dead_stores(folder: &Path, own_id: OwnerId, kind: JournalKind) -> Vec<JournalFile> {
    let Ok(files) = std::fs::read_dir(folder.join(FOLDER)) else { return Vec::new() };
    let parse = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(kind.extension())?.strip_suffix('.')?;
        let (owner, number) = name.split_once('.')?;
        let owner = OwnerId(u64::from_str_radix(owner, 16).ok()?.cast_signed());
        Some(JournalFile { owner, number: number.parse().ok()?, path })
    };
    let mut journals: Vec<_> = files.filter_map(|file| parse(file.ok()?.path())).collect();
    journals.retain(|file| file.owner != own_id && is_dead(folder, file.owner));
    journals.sort_by_key(|file| (file.owner.0, file.number));
    journals
}

/// The journals of one store, and its liveness lock.
#[derive(Debug)]
pub(crate) struct JournalFolder {
    folder: PathBuf,
    owner: OwnerId,
    lock: Mutex<Option<File>>,
    next: AtomicU32,
}

impl JournalFolder {
    /// The journals of the store `owner` beside the database in `folder`. Creates nothing yet.
    pub(crate) fn new(folder: &Path, owner: OwnerId) -> Self {
        Self { folder: folder.to_owned(), owner, lock: Mutex::default(), next: AtomicU32::new(0) }
    }

    /// An unused journal path of this store, and its number. Locks the liveness file first, so that no other store
    /// treats the new file as one of a dead store.
    pub(crate) fn next_file(&self, kind: JournalKind) -> io::Result<(PathBuf, u32)> {
        self.show_alive()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:016x}.{number}.{}", self.owner.0, kind.extension());
        Ok((self.folder.join(FOLDER).join(name), number))
    }

    /// Locks the liveness file, so that no other store treats this one as dead.
    pub(crate) fn show_alive(&self) -> io::Result<()> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        let path = path(&self.folder, self.owner);
        create_private_parent(&path)?;
        let file = open_private_file(&path, File::options().write(true).create(true).truncate(true))?;
        file.try_lock()?;
        *lock = Some(file);
        Ok(())
    }
}

impl Drop for JournalFolder {
    fn drop(&mut self) {
        let lock = self.lock.get_mut().unwrap_or_else(PoisonError::into_inner);
        if lock.take().is_some() {
            // A remaining lock file is harmless: the store counts as dead, which is correct.
            let _ = std::fs::remove_file(path(&self.folder, self.owner));
        }
    }
}

/// Whether the store with this id is dead.
pub(crate) fn is_dead(folder: &Path, owner: OwnerId) -> bool {
    let Ok(file) = File::open(path(folder, owner)) else { return true };
    // A shared lock, so that two processes that check at the same time do not treat each other as the owner.
    match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Removes the lock files of stores whose process ended without removing them. Files younger than `MIN_AGE` are kept:
/// their owners may be about to lock them.
pub(crate) fn sweep(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder.join(FOLDER)) else { return };
    for file in files.filter_map(Result::ok) {
        let path = file.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let age =
            file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_lock || age.is_none_or(|age| age < MIN_AGE) {
            continue;
        }
        // Removing a lock does not affect its journals: without a lock file, the owner counts as dead as well.
        if File::open(&path).is_ok_and(|open| open.try_lock().is_ok()) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Removes the lock file of a dead store.
pub(crate) fn forget(folder: &Path, owner: OwnerId) {
    let _ = std::fs::remove_file(path(folder, owner));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_lock_files_of_dead_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let lock_of = |number: i64| path(folder.path(), OwnerId(number));
        let alive = JournalFolder::new(folder.path(), OwnerId(1));
        alive.next_file(JournalKind::Calls).unwrap();
        let old = std::time::SystemTime::now() - 2 * MIN_AGE;
        for number in [2, 3] {
            File::create(lock_of(number)).unwrap();
        }
        for number in [1, 2] {
            File::options().write(true).open(lock_of(number)).unwrap().set_modified(old).unwrap();
        }
        sweep(folder.path());
        assert!(lock_of(1).exists(), "its owner lives");
        assert!(!lock_of(2).exists(), "its owner is dead");
        assert!(lock_of(3).exists(), "too young to tell");
        drop(alive);
        assert!(!lock_of(1).exists(), "removed by its owner");
    }
}
