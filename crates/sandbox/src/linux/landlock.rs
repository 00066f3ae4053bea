//! The Landlock ruleset of a policy: files, TCP ports and signals.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use super::grants::Grants;
use super::path_handle::PathHandle;
use super::syscalls::{self, RulesetAttributes};
use crate::error::SandboxError;
use crate::policy::Network;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const CHANGE: u64 = WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE;
/// Access rights that apply to files other than folders.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const TCP: u64 = 0b11;
const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 1 << 1;

/// The ABI version since which truncation is a separate right, so that read-only files cannot be truncated.
pub(super) const TRUNCATE_ABI: u32 = 3;
/// The ABI version since which signals to other processes can be denied.
pub(super) const SIGNAL_SCOPE_ABI: u32 = 6;

/// The ABI version of the kernel; 0 without Landlock.
pub(super) fn abi_version() -> u32 {
    syscalls::landlock_abi_version().ok().and_then(|version| u32::try_from(version).ok()).unwrap_or(0)
}

/// A ruleset, and the rights that it handles.
#[derive(Debug)]
pub(super) struct Ruleset {
    pub(super) file: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// Creates the rules for the grants, system files and devices.
    pub(super) fn new(network: Network, grants: &Grants) -> Result<Self, SandboxError> {
        let mut ruleset = Self::empty(network)?;
        // Paths that do not exist on this system need no rule.
        for path in super::system_files::readable() {
            if let Ok(path_handle) = PathHandle::follow(&path) {
                let _ = ruleset.allow(&path_handle, READ);
            }
        }
        for device in super::system_files::DEVICES {
            if let Ok(path_handle) = PathHandle::follow(Path::new(device)) {
                let _ = ruleset.allow(&path_handle, READ_FILE | WRITE_FILE);
            }
        }
        for (some, access) in [(&grants.read, READ), (&grants.write, READ | CHANGE)] {
            for grant in some {
                let path = || grant.named.clone();
                let failed = |source| SandboxError::Grant { path: path(), source };
                ruleset.allow(&grant.path_handle, access).map_err(failed)?;
            }
        }
        Ok(ruleset)
    }

    fn empty(network: Network) -> Result<Self, SandboxError> {
        let abi_version = abi_version();
        // The kernel rejects rights that its ABI version does not define.
        let newer = [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)];
        let unknown = newer.iter().filter(|(since, _)| abi_version < *since);
        let unknown = unknown.fold(0, |sum, (_, right)| sum | right);
        let handled = (READ | CHANGE | MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV) & !unknown;
        let attributes = RulesetAttributes {
            files: handled,
            network: if network == Network::None && abi_version >= 4 { TCP } else { 0 },
            scopes: if abi_version >= SIGNAL_SCOPE_ABI { SIGNALS | ABSTRACT_SOCKETS } else { 0 },
        };
        let size = match abi_version {
            0..=3 => 8,
            4..=5 => 16,
            _ => 24,
        };
        let file = syscalls::landlock_ruleset(&attributes, size)
            .map_err(|source| SandboxError::Prepare { step: "a Landlock ruleset", source })?;
        Ok(Self { file, handled })
    }

    fn allow(&mut self, path_handle: &PathHandle, access: u64) -> io::Result<()> {
        let access = access & self.handled & if path_handle.is_folder() { u64::MAX } else { OF_FILES };
        syscalls::landlock_allow(self.file.as_fd(), path_handle.fd(), access)
    }

    /// Enforces the rules on the caller. Adds `/proc/self` first, since its PID is known only now.
    pub(super) fn enter(&self) -> io::Result<()> {
        // Fails if `/proc` is not mounted; then no rule is needed.
        if let Ok(own) = syscalls::open_path(c"/proc/self") {
            syscalls::landlock_allow(self.file.as_fd(), own.as_fd(), (READ_FILE | READ_DIR) & self.handled)?;
        }
        syscalls::landlock_enter(self.file.as_fd())
    }
}
