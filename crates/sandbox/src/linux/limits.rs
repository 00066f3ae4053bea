//! The limits of a policy as the kernel takes them, for each process; what concerns all together is watched.

use super::SLACK;
use super::calls::{self, Resource};
use super::child::Limit;
use super::mounts::Way;
use crate::policy::Limits;

/// All that the kernel holds. `way` is how the process comes to a namespace of its own, if it does.
pub(super) fn of(limits: &Limits, way: Option<Way>) -> Vec<Limit> {
    let seconds = limits.cpu.as_secs().max(1);
    let mut all = vec![
        limit(libc::RLIMIT_CORE as Resource, 0),
        // Address space would count what interpreters reserve and never use; this counts what can be written.
        limit(libc::RLIMIT_DATA as Resource, limits.memory),
        limit(libc::RLIMIT_FSIZE as Resource, limits.file_size),
        limit(libc::RLIMIT_NOFILE as Resource, limits.open_files),
        limit(libc::RLIMIT_MEMLOCK as Resource, 8 << 20),
        limit(libc::RLIMIT_MSGQUEUE as Resource, 0),
    ];
    // The first ends it with a signal that says why, the second for certain.
    let (cpu, hard, _) = limit(libc::RLIMIT_CPU as Resource, seconds.saturating_add(1));
    all.push((cpu, seconds.min(hard), hard));
    // In a user namespace its processes are counted apart from the user's others. The kernel never refuses the
    // administrator a process.
    if way == Some(Way::UserNamespace) {
        all.push(limit(libc::RLIMIT_NPROC as Resource, limits.processes.saturating_add(SLACK)));
    }
    all
}

/// A limit that is not above the one that holds already.
fn limit(resource: Resource, value: u64) -> Limit {
    let (_, hard) = calls::limit_of(0, resource).unwrap_or((u64::MAX, u64::MAX));
    let value = value.min(hard);
    (resource, value, value)
}
