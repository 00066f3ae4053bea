//! Folders with mode 0700, and opened files with mode 0600.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents with mode 0700, whatever permissions the umask leaves to other users. An existing
/// folder is not changed.
pub fn create_private_dir(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates the folder of a file like [`create_private_dir`].
pub fn create_private_parent(file: &Path) -> io::Result<()> {
    create_private_dir(parent(file))
}

/// The folder of a file; the current folder if the path is a name alone.
pub(crate) fn parent(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file with `options`; a new file gets mode 0600. Fails for a symbolic link or a file of another user.
pub fn open_private_file(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
        let not_followed = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let opened = options.mode(0o600).custom_flags(not_followed).open(file)?;
        let metadata = opened.metadata()?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("`{}` belongs to another user", file.display()),
            ));
        }
        Ok(opened)
    }
    #[cfg(not(unix))]
    options.open(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn creates_folders_with_mode_0700_and_keeps_existing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let inner = folder.path().join("a/b");
        create_private_dir(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&folder.path().join("a"))), (0o700, 0o700));
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o750)).unwrap();
        create_private_dir(&inner).unwrap();
        create_private_parent(&inner.join("file")).unwrap();
        assert_eq!(mode(&inner), 0o750);
        create_private_parent(&inner.join("c/file")).unwrap();
        assert_eq!(mode(&inner.join("c")), 0o700);
        create_private_parent(Path::new("file")).unwrap();
    }

    #[test]
    fn opens_private_files_and_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        open_private_file(&file, OpenOptions::new().write(true).create(true)).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        symlink(&file, folder.path().join("link")).unwrap();
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        for link in ["link", "dangling"] {
            let path = folder.path().join(link);
            let opened = open_private_file(&path, OpenOptions::new().write(true).create(true));
            assert!(opened.is_err(), "{link}");
        }
        assert!(!folder.path().join("nowhere").exists());
    }
}
