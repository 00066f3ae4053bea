//! Atomic file replacement, and the lock for editing a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toolhub_core::hex;
use toolhub_private_files::{FileMode, SyncMode, UserFile, create_private_parent};

use crate::error::ConfigError;

/// Holds an advisory lock; removes the lock file on drop.
#[derive(Debug)]
pub struct FileLock {
    file: std::fs::File,
    path: PathBuf,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while the lock is held: a waiting process detects that the path no longer refers to its open file, and opens
        // the path again. Other systems than Unix cannot detect this, so the file stays there.
        if cfg!(unix) && refers_to(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` still refers to the open file.
fn refers_to(file: &std::fs::File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |found: std::fs::Metadata| (found.dev(), found.ino());
        file.metadata().ok().map(id).is_some_and(|open| std::fs::metadata(path).ok().map(id) == Some(open))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Locks a file against other hubs while it is read, edited and written, until the guard is dropped.
pub fn lock_file(file: &Path) -> Result<FileLock, ConfigError> {
    let target = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let digest = Sha256::digest(target.as_os_str().as_encoded_bytes());
    let name = hex::encode(&digest[..8]);
    let folder = lock_folder()?;
    let path = folder.join(format!("toolhub-{name}.lock"));
    loop {
        let open = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let locked = open.and_then(|file| file.lock().map(|()| file));
        let file = locked.map_err(|error| ConfigError::io(&path, &error))?;
        if refers_to(&file, &path) {
            return Ok(FileLock { file, path });
        }
    }
}

/// The folder of lock files, which belongs to this user alone: another one could otherwise create a lock first and keep it.
#[cfg(unix)]
fn lock_folder() -> Result<PathBuf, ConfigError> {
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("toolhub-{user}"));
    private_folder(&folder, user).map_err(|error| ConfigError::io(&folder, &error))?;
    Ok(folder)
}

/// The system's temporary folder is the user's own.
#[cfg(not(unix))]
fn lock_folder() -> Result<PathBuf, ConfigError> {
    Ok(std::env::temp_dir())
}

/// Creates a folder for one user, or checks that the existing one is theirs.
#[cfg(unix)]
fn private_folder(folder: &Path, user: u32) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why =
        "it belongs to another user or is open to others: remove it, or set `TMPDIR` to a folder of your own";
    Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, why))
}

/// Replaces a file's content atomically; a crash leaves the old or the new one. Permissions are preserved; a new file is
/// readable by the owner only, since it may hold secrets. A symbolic link is followed, not replaced; special files (a device, a
/// pipe) are written to directly. A missing folder is created with mode 0700: write access to it decides which programs run.
pub fn write_atomically(file: &Path, text: &str) -> Result<(), ConfigError> {
    let write = || {
        create_private_parent(file)?;
        let mut new = UserFile::open(file, FileMode::Existing)?;
        new.write_all(text.as_bytes())?;
        new.commit(SyncMode::File)
    };
    write().map_err(|error| ConfigError::io(file, &error))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn locks_are_exclusive_and_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("mcp.json");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let guard = lock_file(&config).unwrap();
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(guard);
                    }
                });
            }
        });
        let guard = lock_file(&config).unwrap();
        let path = guard.path.clone();
        assert!(path.exists());
        drop(guard);
        assert!(!path.exists(), "{}", path.display());
    }

    #[cfg(unix)]
    #[test]
    fn rejects_lock_folder_writable_by_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let (own, link, open) =
            (folder.path().join("own"), folder.path().join("link"), folder.path().join("open"));
        assert!(private_folder(&own, user).is_ok() && private_folder(&own, user).is_ok());
        assert!(private_folder(&own, user + 1).is_err(), "it belongs to another user");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(private_folder(&link, user).is_err(), "a symbolic link");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private_folder(&open, user).is_err(), "open to others");
    }

    #[test]
    fn does_not_replace_special_files() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(write_atomically(&socket, "{}").is_err());
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
        assert!(write_atomically(folder.path(), "{}").is_err());
    }
}
