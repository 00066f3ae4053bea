//! The file system made read-only for one process alone, but for the folders that it may write.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::calls::{self, MountAttributes};
use super::opened::Opened;
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
    writable: Vec<Writable>,
    folder: CString,
    users: Vec<u8>,
    groups: Vec<u8>,
}

/// A path that stays writable. A descriptor from before the fork belongs to the mounts from before, so the path is
/// opened again, and used only if it still means the same object.
#[derive(Debug)]
struct Writable {
    path: CString,
    identity: (u64, u64),
}

impl Writable {
    fn new(opened: &Opened) -> Result<Self, SandboxError> {
        Ok(Self { path: c_string(opened.path())?, identity: opened.identity() })
    }

    /// Puts a writable mount of the object over it.
    fn open_up(&self) -> io::Result<()> {
        let opened = calls::open_path_itself(&self.path)?;
        if calls::identity(opened.as_fd())? != self.identity {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        let copy = calls::copy_tree(opened.as_fd())?;
        let writable = MountAttributes { clear: READ_ONLY, ..MountAttributes::default() };
        calls::mount_setattr_of(copy.as_fd(), &writable)?;
        calls::move_mount(copy.as_fd(), opened.as_fd())
    }
}

impl Mounts {
    /// `folder` is where the process is to be.
    pub(super) fn new<'a>(
        way: Way,
        writable: impl Iterator<Item = &'a Opened>,
        folder: &Path,
    ) -> Result<Self, SandboxError> {
        let (user, group) = calls::effective_ids();
        let mut paths = writable.map(Writable::new).collect::<Result<Vec<_>, _>>()?;
        // What cannot be written outside is not made so inside.
        paths.retain(|one| !calls::is_read_only(&one.path));
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
        calls::set_propagation(c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        let close = MountAttributes { set: READ_ONLY, ..MountAttributes::default() };
        calls::mount_setattr(c"/", &close)?;
        for one in &self.writable {
            one.open_up()?;
        }
        // The folder as it was before is on a mount that is read-only now.
        calls::change_folder(&self.folder)
    }
}
