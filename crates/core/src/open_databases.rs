//! The SQLite databases that are open in this process. No other code may open their files: closing a descriptor releases all POSIX
//! locks of the process on the file, those of SQLite's connections too. Another process would then consider itself the last one,
//! and delete the write-ahead log with everything that was written since.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What SQLite appends to the name of a database for its other files.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds a database, before it is opened.
pub fn add(file: &Path) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !open.iter().any(|database| database == file) {
        open.push(file.to_owned());
    }
}

/// Whether a path leads to a file of such a database.
pub fn contains(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| identity(&metadata).is_some_and(is_open))
}

/// A file of this machine, by whatever name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The device of the file system.
    pub device: u64,
    /// The inode in the file system.
    pub inode: u64,
}

/// `None` on systems without POSIX locks.
fn identity(metadata: &std::fs::Metadata) -> Option<FileIdentity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some(FileIdentity { device: metadata.dev(), inode: metadata.ino() })
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// Whether a file is one of such a database.
pub fn is_open(file: FileIdentity) -> bool {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let with_suffix = |database: &PathBuf, suffix: &str| {
        let mut name: OsString = database.clone().into_os_string();
        name.push(suffix);
        std::fs::metadata(name).ok().and_then(|metadata| identity(&metadata))
    };
    open.iter().any(|database| SUFFIXES.iter().any(|suffix| with_suffix(database, suffix) == Some(file)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn knows_the_files_of_open_databases_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["hub.db", "hub.db-wal", "hub.db-shm", "other.db"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink(path("hub.db"), path("link")).unwrap();
        std::fs::hard_link(path("hub.db"), path("same")).unwrap();
        assert!(!contains(&path("hub.db")));
        add(&path("hub.db"));
        for name in ["hub.db", "hub.db-wal", "hub.db-shm", "link", "same"] {
            assert!(contains(&path(name)), "{name}");
        }
        for name in ["other.db", "hub.db-journal", "missing"] {
            assert!(!contains(&path(name)), "{name}");
        }
    }
}
