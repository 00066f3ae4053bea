//! The life of a store as others see it: a locked file, which the system unlocks when the program ends, however it does.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::owner::OwnerId;

/// The folder of the locked files, beside the database.
const FOLDER: &str = "running";

fn path(folder: &Path, owner: OwnerId) -> PathBuf {
    folder.join(FOLDER).join(format!("{:016x}.lock", owner.0))
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
            std::fs::create_dir_all(folder)?;
        }
        let file = File::create(&self.path)?;
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

/// Removes the file of a dead store.
pub(super) fn forget(folder: &Path, owner: OwnerId) {
    let _ = std::fs::remove_file(path(folder, owner));
}
