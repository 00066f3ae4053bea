//! The rlimits of a policy, which apply to each process; limits for all processes together are checked by the watcher.

use super::TASK_SLACK;
use super::child::Limit;
use super::mounts::MountPrivilege;
use super::syscalls::{self, LimitNumber};
use crate::policy::SandboxLimits;

/// Returns all rlimits. `privilege` is how the process gets its own namespace, if it does.
pub(super) fn of(limits: &SandboxLimits, privilege: Option<MountPrivilege>) -> Vec<Limit> {
    let seconds = limits.cpu.as_secs().max(1);
    let mut all = vec![
        limit(libc::RLIMIT_CORE as LimitNumber, 0),
        // `RLIMIT_AS` would count address space that interpreters reserve but never use; `RLIMIT_DATA` counts writable
        // memory.
        limit(libc::RLIMIT_DATA as LimitNumber, limits.memory),
        limit(libc::RLIMIT_FSIZE as LimitNumber, limits.file_size),
        limit(libc::RLIMIT_NOFILE as LimitNumber, limits.open_files),
        limit(libc::RLIMIT_MEMLOCK as LimitNumber, 8 << 20),
        limit(libc::RLIMIT_MSGQUEUE as LimitNumber, 0),
    ];
    // The soft limit sends `SIGXCPU`, which identifies the reason; the hard limit kills.
    let (cpu, hard, _) = limit(libc::RLIMIT_CPU as LimitNumber, seconds.saturating_add(1));
    all.push((cpu, seconds.min(hard), hard));
    // In a user namespace its processes are counted separately from the user's others. The kernel does not apply this
    // limit to root.
    if privilege == Some(MountPrivilege::UserNamespace) {
        all.push(limit(libc::RLIMIT_NPROC as LimitNumber, limits.processes.saturating_add(TASK_SLACK)));
    }
    all
}

/// Caps the value at the current hard limit.
fn limit(resource: LimitNumber, value: u64) -> Limit {
    let (_, hard) = syscalls::limit_of(0, resource).unwrap_or((u64::MAX, u64::MAX));
    let value = value.min(hard);
    (resource, value, value)
}
