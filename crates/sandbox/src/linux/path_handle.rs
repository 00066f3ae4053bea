//! An open path: a descriptor and the kernel's path of it. Grants are made from these, never from names.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file or folder opened with `O_PATH`. The descriptor refers to the same object even if its path is renamed or
/// replaced.
#[derive(Debug)]
pub(super) struct PathHandle {
    file: File,
    path: PathBuf,
    metadata: Metadata,
}

impl PathHandle {
    /// Opens a path; follows symbolic links.
    pub(super) fn follow(path: &Path) -> io::Result<Self> {
        Self::new(path, libc::O_PATH)
    }

    /// Opens a path that must be canonical: a symbolic link in it is an error.
    pub(super) fn exact(path: &Path) -> io::Result<Self> {
        let path_handle = Self::new(path, libc::O_PATH | libc::O_NOFOLLOW)?;
        // Compared as text: `a/./b` and `a//b` are equal as `Path`s.
        if path_handle.path != path || path_handle.metadata.is_symlink() {
            return Err(io::Error::other(format!(
                "it is a link and leads to `{}`",
                path_handle.path.display()
            )));
        }
        Ok(path_handle)
    }

    /// Opens an entry of this folder; does not follow symbolic links.
    pub(super) fn child(&self, name: &str) -> io::Result<Self> {
        Self::new(&self.magic_link().join(name), libc::O_PATH | libc::O_NOFOLLOW)
    }

    /// Opens the parent folder.
    pub(super) fn parent(&self) -> io::Result<Self> {
        Self::new(&self.magic_link().join(".."), libc::O_PATH)
    }

    fn new(path: &Path, flags: i32) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        let real = std::fs::read_link(magic_link(&file))?;
        if !real.is_absolute() || real.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { file, path: real, metadata })
    }

    /// The kernel's path: absolute, without links and `..`.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Duplicates the descriptor.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.file.try_clone().map(OwnedFd::from)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.metadata.is_dir()
    }

    pub(super) fn is_file(&self) -> bool {
        self.metadata.is_file()
    }

    pub(super) fn is_link(&self) -> bool {
        self.metadata.is_symlink()
    }

    pub(super) fn is_executable(&self) -> bool {
        self.metadata.mode() & 0o111 != 0
    }

    /// Device and inode number.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.metadata.dev(), self.metadata.ino())
    }

    /// Whether a user other than `user` and root can write or replace it.
    pub(super) fn is_replaceable(&self, user: u32) -> bool {
        let owner = self.metadata.uid();
        (owner != 0 && owner != user) || self.metadata.mode() & 0o002 != 0
    }

    /// The names of the entries in a folder.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.magic_link()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Whether a file starts with `bytes`.
    pub(super) fn starts_with(&self, bytes: &[u8]) -> bool {
        use std::io::Read as _;
        let mut start = vec![0; bytes.len()];
        let read = File::open(self.magic_link()).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == bytes
    }

    fn magic_link(&self) -> PathBuf {
        magic_link(&self.file)
    }
}

/// The path in `/proc` that resolves to the open object.
fn magic_link(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn keeps_object_when_path_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        symlink("a", root.join("link")).unwrap();
        assert_eq!(PathHandle::follow(&root.join("link/file")).unwrap().path(), root.join("a/file"));
        assert!(PathHandle::exact(&root.join("link")).is_err());
        assert!(PathHandle::exact(&root.join("link/file")).is_err());
        let path_handle = PathHandle::exact(&root.join("a")).unwrap();
        fs::rename(root.join("a"), root.join("b")).unwrap();
        symlink("/", root.join("a")).unwrap();
        assert!(path_handle.child("file").unwrap().is_file());
        assert_eq!(path_handle.parent().unwrap().path(), root);
        fs::remove_dir_all(root.join("b")).unwrap();
        assert!(path_handle.child("file").is_err());
    }
}
