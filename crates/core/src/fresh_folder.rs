//! New empty folders in which programs are started. Those of a process lie in a folder of its own, which contains a locked file:
//! by the lock, other processes know that it is in use, also in other containers, where process ids say nothing.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The number of names that are tried.
const MAX_ATTEMPTS: usize = 100;
/// The locked file in the folder of a process.
const LOCK: &str = "lock";
/// The number of folders that this process has created.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The folder of this process in each parent.
static PROCESS_FOLDERS: Mutex<BTreeMap<PathBuf, Weak<ProcessFolder>>> = Mutex::new(BTreeMap::new());

/// A new folder, which is removed when this value is dropped, if it is empty. Files that a program has left are kept.
#[derive(Debug)]
pub(crate) struct FreshFolder {
    path: PathBuf,
    /// Dropped after the folder was removed.
    _process: Arc<ProcessFolder>,
}

impl FreshFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FreshFolder {
    fn drop(&mut self) {
        // Fails if it is not empty.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The folder with the folders of this process. Exists as long as one of them is in use.
#[derive(Debug)]
struct ProcessFolder {
    path: PathBuf,
    lock: Option<File>,
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        // Removed before it is unlocked: without it, other processes leave the folder alone.
        let _ = fs::remove_file(self.path.join(LOCK));
        drop(self.lock.take());
        let _ = fs::remove_dir(&self.path);
    }
}

/// Creates a folder with a new name below `parent`, which only the current user can read. Removes empty folders of processes that
/// have ended.
pub(crate) fn create(parent: &Path) -> io::Result<FreshFolder> {
    private_dirs().recursive(true).create(parent)?;
    let process = process_folder(parent)?;
    let path = process.path.join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    // Fails if the name exists, also as a symbolic link.
    private_dirs().create(&path)?;
    Ok(FreshFolder { path, _process: process })
}

fn private_dirs() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn process_folder(parent: &Path) -> io::Result<Arc<ProcessFolder>> {
    let mut folders = PROCESS_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(existing_folder) = folders.get(parent).and_then(Weak::upgrade) {
        return Ok(existing_folder);
    }
    remove_unused(parent);
    for _ in 0..MAX_ATTEMPTS {
        if let Some(created) = lock_new_folder(parent)? {
            let created = Arc::new(created);
            folders.insert(parent.to_owned(), Arc::downgrade(&created));
            return Ok(created);
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("no name is free in `{}`", parent.display())))
}

/// Creates a folder for this process; `None` if its name is taken, or if another process removed it before it was locked.
fn lock_new_folder(parent: &Path) -> io::Result<Option<ProcessFolder>> {
    let random = RandomState::new().hash_one(COUNT.load(Ordering::Relaxed));
    let path = parent.join(format!("{}-{random:016x}", std::process::id()));
    match private_dirs().create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = path.join(LOCK);
    let lock = File::options().write(true).create_new(true).open(&file)?;
    match lock.try_lock() {
        // File systems without locks: then other processes cannot lock the file either, and leave the folder alone.
        Ok(()) | Err(TryLockError::Error(_)) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
    }
    Ok(file.exists().then_some(ProcessFolder { path, lock: Some(lock) }))
}

/// Removes the empty folders of processes that have ended.
fn remove_unused(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        // Links are not followed.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::options().write(true).open(path.join(LOCK)) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        for inner in fs::read_dir(&path).into_iter().flatten().flatten() {
            // Fails if it is not an empty folder.
            let _ = fs::remove_dir(inner.path());
        }
        drop(ProcessFolder { path, lock: Some(lock) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_empty(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().next().is_none()
    }

    #[test]
    fn each_folder_is_new_empty_and_private() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("work");
        let first = create(&parent).unwrap();
        fs::write(first.path().join("json.py"), "").unwrap();
        let second = create(&parent).unwrap();
        assert_ne!(first.path(), second.path());
        assert!(second.path().symlink_metadata().unwrap().is_dir() && is_empty(second.path()));
        #[cfg(unix)]
        for folder in [second.path(), second.path().parent().unwrap(), &parent] {
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(folder).unwrap());
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn folders_are_removed_with_their_last_use_unless_a_program_has_left_files() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("work");
        let (first, second) = (create(&parent).unwrap(), create(&parent).unwrap());
        let gone = first.path().to_owned();
        drop(first);
        assert!(!gone.exists() && second.path().exists());
        drop(second);
        assert!(is_empty(&parent));
        let left = create(&parent).unwrap();
        let file = left.path().join("file");
        fs::write(&file, "").unwrap();
        drop(left);
        assert!(file.exists());
        // Later folders are created elsewhere.
        assert_ne!(create(&parent).unwrap().path().parent(), file.parent().and_then(Path::parent));
    }

    /// Process ids of another PID namespace do not exist here; the lock of its process does.
    #[test]
    fn only_folders_of_ended_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let process = |name: &str| {
            let folder = parent.join(name);
            fs::create_dir_all(folder.join("0")).unwrap();
            fs::create_dir_all(folder.join("1")).unwrap();
            File::create(folder.join(LOCK)).unwrap()
        };
        let held = process("4294967295-a");
        held.lock().unwrap();
        drop(process("4294967295-b"));
        drop(process("4294967295-c"));
        fs::write(parent.join("4294967295-c/1/file"), "").unwrap();
        // Not locked yet.
        fs::create_dir(parent.join("4294967295-d")).unwrap();
        let own = create(parent).unwrap();
        assert!(own.path().exists());
        for (path, exists) in [
            ("4294967295-a/0", true),
            ("4294967295-b", false),
            ("4294967295-c/0", false),
            ("4294967295-c/1/file", true),
            ("4294967295-d", true),
        ] {
            assert_eq!(parent.join(path).exists(), exists, "{path}");
        }
        // The own folder is locked for others.
        remove_unused(parent);
        assert!(own.path().exists());
    }
}
