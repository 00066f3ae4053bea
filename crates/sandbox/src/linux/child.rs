//! What the child does to itself between fork and exec. All of it is prepared before: here are system calls alone.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use libc::{c_ulong, sock_filter};

use super::calls::{self, Resource};
use super::fork_notify::Asking;
use super::group::Entrance;
use super::landlock::Ruleset;
use super::mark::Mark;
use super::mounts::Mounts;
use crate::protection::Protection;

/// A limit, soft and hard.
pub(super) type Limit = (Resource, u64, u64);

/// The fence as the child puts it up. What is not there was allowed to be missing.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) mark: Mark,
    pub(super) mounts: Option<Mounts>,
    pub(super) limits: Vec<Limit>,
    pub(super) ruleset: Option<Ruleset>,
    pub(super) births: Option<Asking>,
    pub(super) entrance: Option<Entrance>,
    pub(super) filter: Option<Vec<sock_filter>>,
    /// Descriptors that the program in front is to find open.
    pub(super) keep: Vec<OwnedFd>,
    /// Protections that were allowed to be missing, and are.
    pub(super) without: Vec<Protection>,
}

impl Plan {
    /// Puts the fence up around the caller. An error ends the child before it runs anything.
    pub(super) fn enter(&self) -> io::Result<()> {
        // A group that was begun before is as good.
        if let Err(error) = calls::setsid()
            && !calls::leads_group()
        {
            return Err(error);
        }
        // Before the mounts, behind which it could not be written any more.
        if let Some(entrance) = &self.entrance {
            entrance.enter()?;
        }
        if let Some(mounts) = &self.mounts {
            mounts.enter()?;
        }
        // After the user namespace, so that processes are counted in it alone.
        for (resource, soft, hard) in &self.limits {
            calls::set_limit(*resource, *soft, *hard)?;
        }
        self.mark.bear()?;
        self.unless_missing(Protection::NoNewPrivileges, || {
            calls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)
        })?;
        if let Some(ruleset) = &self.ruleset {
            ruleset.enter()?;
        }
        self.unless_missing(Protection::Capabilities, drop_capabilities)?;
        calls::close_on_exec(3)?;
        for file in &self.keep {
            calls::keep_on_exec(file.as_fd())?;
        }
        if let Some(births) = &self.births {
            births.enter()?;
        }
        match &self.filter {
            Some(filter) => calls::seccomp_enter(filter),
            None => Ok(()),
        }
    }

    fn unless_missing(&self, protection: Protection, step: impl Fn() -> io::Result<()>) -> io::Result<()> {
        if self.without.contains(&protection) { Ok(()) } else { step() }
    }
}

/// Gives up all capabilities, and the ways to come by them again.
fn drop_capabilities() -> io::Result<()> {
    let clear_all = libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong;
    calls::prctl(libc::PR_CAP_AMBIENT, clear_all, 0)?;
    // An ordinary user may not narrow what programs can gain, and need not: there are no new privileges.
    for capability in 0..64 {
        if calls::prctl(libc::PR_CAPBSET_DROP, capability, 0).is_err() {
            break;
        }
    }
    calls::drop_capabilities()
}
