//! The life of a store as others see it: a locked file, which the system unlocks when the program ends, however it does.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::owner::OwnerId;
use crate::private;

/// The folder of the locked files, beside the database.
const FOLDER: &str = "running";
/// How old a lock file is at least when it is removed as left behind.
const MIN_AGE: Duration = Duration::from_secs(60);

fn path(folder: &Path, owner: OwnerId) -> PathBuf {
    folder.join(FOLDER).join(format!("{:016x}.lock", owner.0))
}

/// A file of the journal of that store.
pub(super) fn journal(folder: &Path, owner: OwnerId, count: u32) -> PathBuf {
    folder.join(FOLDER).join(format!("{:016x}.{count}.journal", owner.0))
}

/// Every file of a journal that is there: whose, the how manieth, and where.
pub(super) fn journals(folder: &Path) -> Vec<(OwnerId, u32, PathBuf)> {
    let Ok(files) = std::fs::read_dir(folder.join(FOLDER)) else { return Vec::new() };
    let of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".journal")?;
        let (owner, count) = name.split_once('.')?;
        let owner = OwnerId(u64::from_str_radix(owner, 16).ok()?.cast_signed());
        Some((owner, count.parse().ok()?, path))
    };
    files.filter_map(|file| of(file.ok()?.path())).collect()
}

/// The file that says that this store lives; made with its first call that may change something.
#[derive(Debug)]
pub(super) struct Life {
    path: PathBuf,
    file: Option<File>,
}

impl Life {
    pub(super) fn new(folder: &Path, owner: OwnerId) -> Self {
        Self { path: path(folder, owner), file: None }
    }

    /// Makes sure that others can see that this store lives.
    pub(super) fn show(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            private::create_dir(folder)?;
        }
        let file = private::open_file(&self.path, File::options().write(true).create(true).truncate(true))?;
        file.try_lock()?;
        self.file = Some(file);
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // What is left is taken for the file of a dead owner, which is what it is then.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether the store of that id lives no more.
pub(super) fn is_dead(folder: &Path, owner: OwnerId) -> bool {
    let Ok(file) = File::open(path(folder, owner)) else { return true };
    // Shared, so that two who look at once do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Removes the files of stores whose program ended without removing them. Files younger than `MIN_AGE` are left: their
/// owners may be about to lock them.
pub(super) fn sweep(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder.join(FOLDER)) else { return };
    for file in files.filter_map(Result::ok) {
        let path = file.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let age = file.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_lock || age.is_none_or(|age| age < MIN_AGE) {
            continue;
        }
        // A journal is read before the lock of its owner goes: without the file its owner counts as dead just the same.
        if File::open(&path).is_ok_and(|open| open.try_lock().is_ok()) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Removes the file of a dead store.
pub(super) fn forget(folder: &Path, owner: OwnerId) {
    let _ = std::fs::remove_file(path(folder, owner));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_lock_files_of_dead_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let lock_of = |number: i64| path(folder.path(), OwnerId(number));
        let mut alive = Life::new(folder.path(), OwnerId(1));
        alive.show().unwrap();
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
