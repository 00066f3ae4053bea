//! Replacement of files that users name: links are followed, devices are written in place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::atomic::{SyncMode, persist, temporary_beside};

/// The permissions of a file that replaces another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Mode 0600, also if the existing file has another one.
    Private,
    /// The permissions of the existing file; mode 0600 for a new one.
    Existing,
}

/// The new content of a file that the user has named. It is written to a temporary file, and [`UserFile::commit`] replaces the
/// file; without a commit the file stays as it is. A symbolic link is followed, not replaced. Special files (a device, a pipe) are
/// opened and written in place.
#[derive(Debug)]
pub struct UserFile(Destination);

#[derive(Debug)]
enum Destination {
    Replaced { new: NamedTempFile, target: PathBuf, mode: FileMode },
    InPlace(File),
}

impl UserFile {
    /// Starts to write a file, which need not exist. Its folder must exist.
    pub fn open(file: &Path, mode: FileMode) -> io::Result<Self> {
        if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            let open = File::options().write(true).open(file)?;
            return Ok(Self(Destination::InPlace(open)));
        }
        let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let new = temporary_beside(&target)?;
        Ok(Self(Destination::Replaced { new, target, mode }))
    }

    /// Replaces the file by what was written.
    pub fn commit(self, sync: SyncMode) -> io::Result<()> {
        match self.0 {
            Destination::InPlace(_) => Ok(()),
            Destination::Replaced { new, target, mode } => {
                if mode == FileMode::Existing
                    && let Ok(metadata) = fs::metadata(&target)
                {
                    new.as_file().set_permissions(metadata.permissions())?;
                }
                persist(new, &target, sync)
            }
        }
    }
}

impl Write for UserFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Destination::Replaced { new, .. } => new.write(bytes),
            Destination::InPlace(open) => open.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Destination::Replaced { new, .. } => new.flush(),
            Destination::InPlace(open) => open.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path, text: &str, mode: FileMode) -> io::Result<()> {
        let mut new = UserFile::open(file, mode)?;
        new.write_all(text.as_bytes())?;
        new.commit(SyncMode::File)
    }

    #[test]
    fn file_is_unchanged_without_commit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write(&file, "first", FileMode::Existing).unwrap();
        let mut new = UserFile::open(&file, FileMode::Existing).unwrap();
        new.write_all(b"second").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        drop(new);
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn keeps_the_mode_of_an_existing_file_if_requested() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
        write(&file, "new", FileMode::Existing).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        write(&file, "kept", FileMode::Existing).unwrap();
        assert_eq!((mode(), fs::read_to_string(&file).unwrap().as_str()), (0o640, "kept"));
        write(&file, "private", FileMode::Private).unwrap();
        assert_eq!((mode(), fs::read_to_string(&file).unwrap().as_str()), (0o600, "private"));
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_and_keeps_special_files() {
        use std::os::unix::fs::{FileTypeExt as _, symlink};
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("inner")).unwrap();
        fs::write(path("inner/file"), "first").unwrap();
        symlink("inner/file", path("link")).unwrap();
        write(&path("link"), "second", FileMode::Existing).unwrap();
        assert!(path("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(path("inner/file")).unwrap(), "second");
        let _listener = UnixListener::bind(path("socket")).unwrap();
        assert!(write(&path("socket"), "text", FileMode::Existing).is_err());
        assert!(path("socket").symlink_metadata().unwrap().file_type().is_socket());
        assert!(write(&path("inner"), "text", FileMode::Existing).is_err());
        assert_eq!(fs::read_dir(path("inner")).unwrap().count(), 1);
    }
}
