//! The life of a store as others see it: a locked file, which the system unlocks when the program ends, however it does.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::owner::OwnerId;
use crate::private;

/// The folder of the locked files, beside the database.
const FOLDER: &str = "running";

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

/// Removes the file of a dead store.
pub(super) fn forget(folder: &Path, owner: OwnerId) {
    let _ = std::fs::remove_file(path(folder, owner));
}
