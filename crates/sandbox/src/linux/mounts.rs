//! Makes the file system read-only for one process, except for its writable folders.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::calls::{self, MountAttributes};
use super::opened::Opened;
use super::text::c_string;
use crate::error::SandboxError;

const READ_ONLY: u64 = 1;

/// How a process gets its own mount namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Root may create one.
    Administrator,
    /// Other users need a user namespace, in which their ids are mapped to themselves.
    UserNamespace,
}

/// The plan, prepared before the fork.
#[derive(Debug)]
pub(super) struct Mounts {
    way: Way,
    writable: Vec<Writable>,
    folder: CString,
    users: Vec<u8>,
    groups: Vec<u8>,
}

/// A path that stays writable. A descriptor from before the fork belongs to the old mount namespace, so the path is
/// opened again, and used only if device and inode are unchanged.
#[derive(Debug)]
struct Writable {
    path: CString,
    identity: (u64, u64),
}

impl Writable {
    fn new(opened: &Opened) -> Result<Self, SandboxError> {
        Ok(Self { path: c_string(opened.path())?, identity: opened.identity() })
    }

    /// Mounts a writable copy over the object.
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
    /// `folder` is the working directory of the process.
    pub(super) fn new<'a>(
        way: Way,
        writable: impl Iterator<Item = &'a Opened>,
        folder: &Path,
    ) -> Result<Self, SandboxError> {
        let (user, group) = calls::effective_ids();
        let mut paths = writable.map(Writable::new).collect::<Result<Vec<_>, _>>()?;
        // A read-only path is not made writable.
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
        // First makes the mounts private, so that later changes do not propagate.
        calls::set_propagation(c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        let close = MountAttributes { set: READ_ONLY, ..MountAttributes::default() };
        calls::mount_setattr(c"/", &close)?;
        for one in &self.writable {
            one.open_up()?;
        }
        // The old working directory refers to the old mount, which is read-only now.
        calls::change_folder(&self.folder)
    }
}
