//! Atomic creation and replacement of private files through a temporary file in the same folder.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::private::parent;

/// The start of the names of temporary files. A killed process leaves such a file behind, with mode 0600.
pub const TEMPORARY_PREFIX: &str = ".toolhub-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// What is on the disk when a write returns. A crash of the program alone never leaves a partial file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// Nothing: after a power failure the file may be empty. For content that can be lost or created again.
    None,
    /// The content: after a power failure the file has its old or its new content.
    File,
    /// The content and, on Unix, the name of the file: a power failure does not undo the write.
    FileAndFolder,
}

/// Replaces a file by one with mode 0600 and this content, whatever the mode of the existing one; creates it if it does not exist.
/// A symbolic link is replaced, not followed. The folder must exist.
pub fn replace_private(file: &Path, content: &[u8], sync: SyncMode) -> io::Result<()> {
    let mut new = temporary_beside(file)?;
    new.write_all(content)?;
    persist(new, file, sync)
}

/// Creates a file with mode 0600 and this content. Fails with [`io::ErrorKind::AlreadyExists`] if the path exists, also as a
/// symbolic link; of several processes that create the same file, one succeeds. The folder must exist.
pub fn create_private(file: &Path, content: &[u8], sync: SyncMode) -> io::Result<()> {
    let mut new = temporary_beside(file)?;
    new.write_all(content)?;
    sync_content(&new, sync)?;
    new.persist_noclobber(file).map_err(|error| error.error)?;
    sync_folder(file, sync)
}

/// Creates an empty file with mode 0600 in the folder of `file`. Dropping it removes it.
pub(crate) fn temporary_beside(file: &Path) -> io::Result<NamedTempFile> {
    // On Unix, the default mode of `tempfile` is 0600.
    tempfile::Builder::new().prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX).tempfile_in(parent(file))
}

/// Renames a temporary file, which keeps its mode.
pub(crate) fn persist(new: NamedTempFile, file: &Path, sync: SyncMode) -> io::Result<()> {
    sync_content(&new, sync)?;
    new.persist(file).map_err(|error| error.error)?;
    sync_folder(file, sync)
}

fn sync_content(new: &NamedTempFile, sync: SyncMode) -> io::Result<()> {
    match sync {
        SyncMode::None => Ok(()),
        SyncMode::File | SyncMode::FileAndFolder => new.as_file().sync_all(),
    }
}

/// Waits until the name of a file is on the disk. Other systems than Unix cannot open a folder for this.
fn sync_folder(file: &Path, sync: SyncMode) -> io::Result<()> {
    if cfg!(unix) && sync == SyncMode::FileAndFolder {
        return std::fs::File::open(parent(file))?.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const SYNC_MODES: [SyncMode; 3] = [SyncMode::None, SyncMode::File, SyncMode::FileAndFolder];

    fn entries(folder: &Path) -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    }

    #[test]
    fn replaces_whole_content_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let long = vec![b'x'; 1 << 20];
        for sync in SYNC_MODES {
            for content in [&long[..], b"short", b""] {
                replace_private(&file, content, sync).unwrap();
                assert_eq!(std::fs::read(&file).unwrap(), content, "{sync:?}");
                assert_eq!(entries(folder.path()), [file.as_path()]);
            }
        }
    }

    #[test]
    fn creates_a_file_once() {
        for sync in SYNC_MODES {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("file");
            create_private(&file, b"first", sync).unwrap();
            let error = create_private(&file, b"second", sync).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(std::fs::read(&file).unwrap(), b"first");
            assert_eq!(entries(folder.path()), [file.as_path()]);
        }
    }

    #[test]
    fn one_of_several_threads_creates_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let created = std::thread::scope(|scope| {
            let create = || create_private(&file, b"content", SyncMode::None).is_ok();
            let threads = [(); 8].map(|()| scope.spawn(create));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(created.iter().filter(|is_created| **is_created).count(), 1);
        assert_eq!(entries(folder.path()), [file.as_path()]);
    }

    #[test]
    fn failed_write_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert!(replace_private(&inner, b"content", SyncMode::File).is_err());
        assert!(create_private(&inner, b"content", SyncMode::File).is_err());
        assert!(replace_private(&folder.path().join("none/file"), b"content", SyncMode::File).is_err());
        assert_eq!(entries(folder.path()), [inner.as_path()]);
        assert_eq!(entries(&inner).len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn written_files_have_mode_0600_and_links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        create_private(&file, b"first", SyncMode::None).unwrap();
        assert_eq!(mode(&file), 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace_private(&file, b"second", SyncMode::None).unwrap();
        assert_eq!(mode(&file), 0o600);
        symlink(&file, &other).unwrap();
        let error = create_private(&other, b"third", SyncMode::None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        replace_private(&other, b"third", SyncMode::None).unwrap();
        assert!(other.symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read(&file).unwrap(), b"second");
        assert_eq!((std::fs::read(&other).unwrap(), mode(&other)), (b"third".to_vec(), 0o600));
    }
}
