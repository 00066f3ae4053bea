//! Makes the file system read-only for one process, except for its writable folders.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::path_handle::PathHandle;
use super::syscalls::{self, MountAttributes};
use super::text::c_string;
use crate::error::SandboxError;

const READ_ONLY: u64 = 1;

/// How a process gets its own mount namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountPrivilege {
    /// Root may create one.
    Administrator,
    /// Other users need a user namespace, in which their ids are mapped to themselves.
    UserNamespace,
}

/// The plan, prepared before the fork.
#[derive(Debug)]
pub(super) struct Mounts {
    privilege: MountPrivilege,
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
    fn new(path_handle: &PathHandle) -> Result<Self, SandboxError> {
        Ok(Self { path: c_string(path_handle.path())?, identity: path_handle.identity() })
    }

    /// Mounts a writable copy over the object.
    fn remount(&self) -> io::Result<()> {
        let path_handle = syscalls::open_path_itself(&self.path)?;
        if syscalls::identity(path_handle.as_fd())? != self.identity {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        let copy = syscalls::copy_tree(path_handle.as_fd())?;
        let writable = MountAttributes { clear: READ_ONLY, ..MountAttributes::default() };
        syscalls::mount_setattr_of(copy.as_fd(), &writable)?;
        syscalls::move_mount(copy.as_fd(), path_handle.as_fd())
    }
}

impl Mounts {
    /// `folder` is the working directory of the process.
    pub(super) fn new<'a>(
        privilege: MountPrivilege,
        writable: impl Iterator<Item = &'a PathHandle>,
        folder: &Path,
    ) -> Result<Self, SandboxError> {
        let (user, group) = syscalls::effective_ids();
        let mut paths = writable.map(Writable::new).collect::<Result<Vec<_>, _>>()?;
        // A read-only path is not made writable.
        paths.retain(|one| !syscalls::is_read_only(&one.path));
        Ok(Self {
            privilege,
            writable: paths,
            folder: c_string(folder)?,
            users: format!("{user} {user} 1").into_bytes(),
            groups: format!("{group} {group} 1").into_bytes(),
        })
    }

    /// Gives the caller its own mounts.
    pub(super) fn enter(&self) -> io::Result<()> {
        match self.privilege {
            MountPrivilege::Administrator => syscalls::unshare(libc::CLONE_NEWNS)?,
            MountPrivilege::UserNamespace => {
                syscalls::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
                syscalls::write_file(c"/proc/self/setgroups", b"deny")?;
                syscalls::write_file(c"/proc/self/uid_map", &self.users)?;
                syscalls::write_file(c"/proc/self/gid_map", &self.groups)?;
            }
        }
        // First makes the mounts private, so that later changes do not propagate.
        syscalls::set_propagation(c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        let close = MountAttributes { set: READ_ONLY, ..MountAttributes::default() };
        syscalls::mount_setattr(c"/", &close)?;
        for one in &self.writable {
            one.remount()?;
        }
        // The old working directory refers to the old mount, which is read-only now.
        syscalls::change_folder(&self.folder)
    }
}
