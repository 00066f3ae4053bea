//! The private folder of a confinement, and the removal of folders left by killed programs.

use std::fs::{self, File};
use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::syscalls;

const FOLDER_PREFIX: &str = "toolhub-sandbox-";
/// Minimum age of a folder before removal: a newer one may not be locked yet by its creator.
const MIN_UNUSED_AGE: Duration = Duration::from_secs(60);

/// A folder that is locked while in use and removed on drop. It contains the home of the process, and its `/tmp` under
/// Bubblewrap.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    folder: TempDir,
    home: PathBuf,
    tmp: PathBuf,
    _lock: File,
}

impl PrivateFolder {
    /// Creates a folder in `parent`. The first call of a program also removes abandoned ones.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        static CLEARED: OnceLock<()> = OnceLock::new();
        CLEARED.get_or_init(|| clear(parent, MIN_UNUSED_AGE));
        let private = fs::Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix(FOLDER_PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = File::open(&folder)?;
        lock.lock()?;
        let [home, tmp] = ["home", "tmp"].map(|name| folder.path().join(name));
        for inside in [&home, &tmp] {
            fs::DirBuilder::new().mode(0o700).create(inside)?;
        }
        Ok(Self { folder, home, tmp, _lock: lock })
    }

    /// Contains everything that the process can write without a grant.
    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The home and working directory of the process.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The folder that is mounted as `/tmp`.
    pub(super) fn tmp(&self) -> &Path {
        &self.tmp
    }
}

/// Removes unlocked folders of this user with our prefix.
fn clear(parent: &Path, settled: Duration) {
    let (user, _) = syscalls::effective_ids();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_own = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        // Does not follow a symbolic link.
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if !is_own || !metadata.is_dir() || metadata.st_uid() != user || age.is_none_or(|age| age < settled) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_unused_private_folders() {
        let parent = tempfile::tempdir().unwrap();
        let used = PrivateFolder::new(parent.path()).unwrap();
        let leftover = parent.path().join("toolhub-sandbox-left");
        fs::create_dir_all(leftover.join("inside")).unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        clear(parent.path(), MIN_UNUSED_AGE);
        for folder in [used.root(), used.home(), used.tmp()] {
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(leftover.exists(), "it may have been made just now");
        clear(parent.path(), Duration::ZERO);
        assert!(!leftover.exists() && used.root().exists() && other.exists());
        let path = used.root().to_path_buf();
        drop(used);
        assert!(!path.exists());
    }
}
