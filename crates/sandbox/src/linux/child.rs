//! The steps of the child between fork and exec. Everything is prepared before the fork: only system calls are made
//! here.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use libc::{c_ulong, sock_filter};

use super::cgroup::CgroupEntry;
use super::fork_notify::ForkFilter;
use super::landlock::Ruleset;
use super::mounts::Mounts;
use super::process_tag::ProcessTag;
use super::syscalls::{self, LimitNumber};
use crate::protection::Protection;

/// A resource limit: resource, soft and hard limit.
pub(super) type Limit = (LimitNumber, u64, u64);

/// The protections that the child sets up. `None` means that the protection is not used or was allowed to be missing.
#[derive(Debug)]
pub(super) struct ChildPlan {
    pub(super) process_tag: ProcessTag,
    pub(super) mounts: Option<Mounts>,
    pub(super) limits: Vec<Limit>,
    pub(super) ruleset: Option<Ruleset>,
    pub(super) forks: Option<ForkFilter>,
    pub(super) cgroup_entry: Option<CgroupEntry>,
    pub(super) filter: Option<Vec<sock_filter>>,
    /// Descriptors that stay open across exec, for Bubblewrap.
    pub(super) inherited_files: Vec<OwnedFd>,
    /// Missing protections that the policy allows to be missing.
    pub(super) without: Vec<Protection>,
}

impl ChildPlan {
    /// Confines the caller. An error ends the child before exec.
    pub(super) fn enter(&self) -> io::Result<()> {
        // `setsid` fails for a process group leader, which needs no new group.
        if let Err(error) = syscalls::setsid()
            && !syscalls::leads_group()
        {
            return Err(error);
        }
        // Before the mounts, which make the cgroup files read-only.
        if let Some(cgroup_entry) = &self.cgroup_entry {
            cgroup_entry.enter()?;
        }
        if let Some(mounts) = &self.mounts {
            mounts.enter()?;
        }
        // After entering the user namespace, so that `RLIMIT_NPROC` counts only its processes.
        for (resource, soft, hard) in &self.limits {
            syscalls::set_limit(*resource, *soft, *hard)?;
        }
        self.process_tag.apply()?;
        self.unless_missing(Protection::NoNewPrivileges, || {
            syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)
        })?;
        if let Some(ruleset) = &self.ruleset {
            ruleset.enter()?;
        }
        self.unless_missing(Protection::Capabilities, drop_capabilities)?;
        syscalls::close_on_exec(3)?;
        for file in &self.inherited_files {
            syscalls::keep_on_exec(file.as_fd())?;
        }
        if let Some(forks) = &self.forks {
            forks.enter()?;
        }
        match &self.filter {
            Some(filter) => syscalls::seccomp_enter(filter),
            None => Ok(()),
        }
    }

    fn unless_missing(&self, protection: Protection, step: impl Fn() -> io::Result<()>) -> io::Result<()> {
        if self.without.contains(&protection) { Ok(()) } else { step() }
    }
}

/// Drops all capabilities, including the ambient and the bounding set.
fn drop_capabilities() -> io::Result<()> {
    let clear_all = libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong;
    syscalls::prctl(libc::PR_CAP_AMBIENT, clear_all, 0)?;
    // Without `CAP_SETPCAP` the bounding set cannot be reduced; `no_new_privs` makes that unnecessary.
    for capability in 0..64 {
        if syscalls::prctl(libc::PR_CAPBSET_DROP, capability, 0).is_err() {
            break;
        }
    }
    syscalls::drop_capabilities()
}
