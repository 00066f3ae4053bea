//! The file system made read-only for one process alone, but for the folders that it may write.

use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

use super::calls::{self, MountAttributes};
use super::text::c_string;
use crate::error::SandboxError;

const READ_ONLY: u64 = 1;

/// How a process comes to mounts of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// An administrator may have them.
    Administrator,
    /// Others in a user namespace, in which they are who they were.
    UserNamespace,
}

/// What is to be done, prepared before the fork.
#[derive(Debug)]
pub(super) struct Mounts {
    way: Way,
    writable: Vec<CString>,
    folder: CString,
    users: Vec<u8>,
    groups: Vec<u8>,
}

impl Mounts {
    /// `folder` is where the process is to be.
    pub(super) fn new(way: Way, writable: &[PathBuf], folder: &Path) -> Result<Self, SandboxError> {
        let (user, group) = calls::effective_ids();
        let mut paths = writable.iter().map(|path| c_string(path)).collect::<Result<Vec<_>, _>>()?;
        // What cannot be written outside is not made so inside.
        paths.retain(|path| !calls::is_read_only(path));
        Ok(Self {
            way,
            writable: paths,
            folder: c_string(folder)?,
            users: format!("{user} {user} 1").into_bytes(),
            groups: format!("{group} {group} 1").into_bytes(),
        })
    }

    /// Gives the caller its own mounts.
    pub(super) fn enter(&self) -> io::Result<()> {
        match self.way {
            Way::Administrator => calls::unshare(libc::CLONE_NEWNS)?,
            Way::UserNamespace => {
                calls::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
                calls::write_file(c"/proc/self/setgroups", b"deny")?;
                calls::write_file(c"/proc/self/uid_map", &self.users)?;
                calls::write_file(c"/proc/self/gid_map", &self.groups)?;
            }
        }
        // First of all nothing that follows may be seen outside.
        calls::mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        for path in &self.writable {
            calls::mount(Some(path), path, libc::MS_BIND | libc::MS_REC)?;
        }
        let close = MountAttributes { set: READ_ONLY, ..MountAttributes::default() };
        calls::mount_setattr(c"/", libc::AT_RECURSIVE, &close)?;
        let open = MountAttributes { clear: READ_ONLY, ..MountAttributes::default() };
        for path in &self.writable {
            calls::mount_setattr(path, 0, &open)?;
        }
        // The folder as it was before is on a mount that is read-only now.
        calls::change_folder(&self.folder)
    }
}
