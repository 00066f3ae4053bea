//! The seccomp filters: denied system calls, and the error for each.

use libc::{EACCES, ENETUNREACH, ENOSYS, EPERM, c_long, sock_filter};

use super::bpf::{Filter, FilterAction, Test};
use crate::policy::{NetworkAccess, SandboxPolicy};

/// `which` of `ioprio_set` for one process; libc has no name for it.
const IOPRIO_WHO_PROCESS: u32 = 1;
/// The number of this architecture (`AUDIT_ARCH_…` of linux/audit.h); `None` if the filters do not know it.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// The first call number that was unassigned when this list was written; newer calls cannot be on it.
const FIRST_UNKNOWN: u32 = 470;
/// Call numbers of the x32 ABI (x86-64 only) have this bit set.
const X32: u32 = 0x4000_0000;

/// Calls that inspect other processes, change the system, or bypass other rules.
const FORBIDDEN: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Keys, which outlive the process.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Mounts, and file access that bypasses paths.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Other namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Shared memory and messages, which are visible to other processes and not accounted.
    // Ids of System V objects are small numbers: what another process has created can be used without asking for its id.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
];

/// Calls that fail with `ENOSYS`, so that programs use alternatives: io_uring bypasses this filter, a filter cannot see
/// the arguments of `clone3` and `openat2`, and files in memory and pages held only by a pipe are not accounted.
const UNKNOWN: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_vmsplice,
];

/// Calls that create a process or a thread.
const FORK_CALLS: &[c_long] = &[
    libc::SYS_clone,
    libc::SYS_clone3,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Calls that change a file without opening it for writing, which Landlock does not cover.
const CHANGES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

// Call numbers from 424 on are the same on every architecture.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

/// Calls whose first argument is a PID; 0 is the caller.
const ONLY_SELF: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Terminal input injection (`TIOCSTI`, `TIOCLINUX`), and file flags (`FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`).
const IOCTLS: [u32; 4] = [0x5412, 0x541c, 0x4008_6602, 0x401c_5820];

/// Whether filters are supported on this architecture.
pub(super) const KNOWN_ARCHITECTURE: bool = ARCHITECTURE.is_some();

/// Whether the filter must prevent changes of file metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Not needed: read-only mounts prevent them.
    HeldByMounts,
    /// Denies all changes of modes, owners and times.
    Refused,
}

/// The filter that causes a notification for each new process or thread. It is installed in addition to the other
/// filter, whose denials take precedence.
pub(super) fn forks() -> Vec<sock_filter> {
    let mut filter = Filter::default();
    if let Some(architecture) = ARCHITECTURE {
        filter.only_architecture(architecture);
    }
    for call in FORK_CALLS {
        filter.call(*call, FilterAction::Notify);
    }
    filter.finish()
}

/// Kills the process on calls with the convention of another architecture.
pub(super) fn only_own_architecture(filter: &mut Filter) {
    if let Some(architecture) = ARCHITECTURE {
        filter.only_architecture(architecture);
    }
    if cfg!(target_arch = "x86_64") {
        filter.numbers_from(X32, FilterAction::Kill);
    }
}

/// The filter of a policy.
pub(super) fn filter(policy: &SandboxPolicy, changes: Changes) -> Vec<sock_filter> {
    let mut filter = Filter::default();
    only_own_architecture(&mut filter);
    filter.numbers_from(FIRST_UNKNOWN, FilterAction::Fail(ENOSYS));
    for call in FORBIDDEN {
        filter.call(*call, FilterAction::Fail(EPERM));
    }
    for call in UNKNOWN {
        filter.call(*call, FilterAction::Fail(ENOSYS));
    }
    if changes == Changes::Refused {
        for call in CHANGES {
            filter.call(*call, FilterAction::Fail(EPERM));
        }
    }
    special_modes(&mut filter);
    filter.call_if(libc::SYS_clone, &[Test::HasAny(0, NEW_NAMESPACES)], FilterAction::Fail(EPERM));
    // `/proc/PID/fd` shows only one descriptor table per process, so threads must share it.
    let thread = (libc::CLONE_THREAD | libc::CLONE_FILES) as u32;
    let own_files = Test::Masked(0, thread, libc::CLONE_THREAD as u32);
    filter.call_if(libc::SYS_clone, &[own_files], FilterAction::Fail(EPERM));
    for call in ONLY_SELF {
        filter.call_if(*call, &[Test::IsNot(0, 0)], FilterAction::Fail(EPERM));
    }
    // Only the calling process: 0 with other values of `which` means its process group or all processes of the user.
    for (call, process) in
        [(libc::SYS_setpriority, libc::PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)]
    {
        filter.call_if(call, &[Test::IsNot(0, process)], FilterAction::Fail(EPERM));
        filter.call_if(call, &[Test::IsNot(1, 0)], FilterAction::Fail(EPERM));
    }
    // Protects the mark that identifies the processes of a confinement.
    filter.call_if(
        libc::SYS_prlimit64,
        &[Test::Is(1, super::process_tag::RESOURCE)],
        FilterAction::Fail(EPERM),
    );
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    filter.call_if(
        libc::SYS_setrlimit,
        &[Test::Is(0, super::process_tag::RESOURCE)],
        FilterAction::Fail(EPERM),
    );
    // A process that is not dumpable cannot be inspected by the watcher.
    filter.call_if(libc::SYS_prctl, &[Test::Is(0, libc::PR_SET_DUMPABLE as u32)], FilterAction::Fail(EPERM));
    filter.call_if(libc::SYS_prctl, &[Test::Is(0, libc::PR_SET_MM as u32)], FilterAction::Fail(EPERM));
    filter.call_if(
        libc::SYS_personality,
        &[Test::IsNot(0, 0), Test::IsNot(0, u32::MAX)],
        FilterAction::Fail(EPERM),
    );
    for request in IOCTLS {
        filter.call_if(libc::SYS_ioctl, &[Test::Is(1, request)], FilterAction::Fail(EPERM));
    }
    sockets(&mut filter, policy);
    filter.finish()
}

/// Denies files with the set-user-ID or set-group-ID bit: one in a writable folder would give the user's rights to anyone who
/// runs it outside, also after the process has ended.
fn special_modes(filter: &mut Filter) {
    const SPECIAL: u32 = libc::S_ISUID | libc::S_ISGID;
    for (call, mode) in [
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
        (libc::SYS_mknodat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
    ] {
        filter.call_if(call, &[Test::HasAny(mode, SPECIAL)], FilterAction::Fail(EPERM));
    }
    // The mode is an argument only if a file is created; otherwise the register may hold anything.
    for (call, flags) in [
        (libc::SYS_openat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1),
    ] {
        let creates =
            Test::HasAny(flags, (libc::O_CREAT | libc::O_TMPFILE) as u32 & !(libc::O_DIRECTORY as u32));
        filter.call_if(call, &[creates, Test::HasAny(flags + 1, SPECIAL)], FilterAction::Fail(EPERM));
    }
}

fn sockets(filter: &mut Filter, policy: &SandboxPolicy) {
    let family = |family: i32| Test::Is(0, family as u32);
    let open = policy.network == NetworkAccess::All;
    for internet in [libc::AF_INET, libc::AF_INET6] {
        let action = if open { FilterAction::Allow } else { FilterAction::Fail(ENETUNREACH) };
        filter.call_if(libc::SYS_socket, &[family(internet)], action);
    }
    if open {
        // The C library reads routes when it resolves names.
        let routes = [family(libc::AF_NETLINK), Test::Is(2, libc::NETLINK_ROUTE as u32)];
        filter.call_if(libc::SYS_socket, &routes, FilterAction::Allow);
    }
    if policy.unix_sockets {
        filter.call_if(libc::SYS_socket, &[family(libc::AF_UNIX)], FilterAction::Allow);
        filter.call_if(libc::SYS_socketpair, &[family(libc::AF_UNIX)], FilterAction::Allow);
    } else {
        // Datagram sockets of a pair could send to other sockets by path, so only connection-oriented types are
        // allowed.
        for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
            let pair = [family(libc::AF_UNIX), Test::Masked(1, 0xf, kind as u32)];
            filter.call_if(libc::SYS_socketpair, &pair, FilterAction::Allow);
        }
    }
    filter.call(libc::SYS_socket, FilterAction::Fail(EACCES));
    filter.call(libc::SYS_socketpair, FilterAction::Fail(EACCES));
}
