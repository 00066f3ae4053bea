//! The strictest filter, which a process installs for itself: computing, and reading and writing what is open already.

use std::io;

use libc::{EPERM, c_long, sock_filter};

use super::bpf::{Filter, FilterAction, Test};
use super::{seccomp, syscalls};

/// Calls that computing needs: memory, locks of threads, clocks, random numbers, open descriptors, and ending.
const ALLOWED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];
/// Calls that map memory; allowed without `PROT_EXEC`, which is a flag of their third argument.
const MAPPINGS: &[c_long] = &[libc::SYS_mmap, libc::SYS_mprotect];
const PROTECTION_ARGUMENT: u8 = 2;

/// Denies all system calls except those for computing, to all threads of this process and for good: no files, sockets,
/// processes, signals or executable memory, not even those that its sandbox grants. Returns an error if the system does
/// not support it; nothing has changed then.
pub fn restrict_to_computation() -> io::Result<()> {
    if !seccomp::KNOWN_ARCHITECTURE {
        return Err(io::ErrorKind::Unsupported.into());
    }
    syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    syscalls::seccomp_enter_all_threads(&filter())
}

fn filter() -> Vec<sock_filter> {
    let mut filter = Filter::default();
    seccomp::only_own_architecture(&mut filter);
    for call in ALLOWED {
        filter.call(*call, FilterAction::Allow);
    }
    for call in MAPPINGS {
        let executable = [Test::HasAny(PROTECTION_ARGUMENT, libc::PROT_EXEC as u32)];
        filter.call_if(*call, &executable, FilterAction::Fail(EPERM));
        filter.call(*call, FilterAction::Allow);
    }
    // `abort` sends a signal to its own process.
    let to_itself = [Test::Is(0, std::process::id()), Test::Is(2, libc::SIGABRT as u32)];
    filter.call_if(libc::SYS_tgkill, &to_itself, FilterAction::Allow);
    filter.finish_with(FilterAction::Fail(EPERM))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::bpf::tests::run;
    use super::*;

    /// The action for a call; `protection` and `signal` are its third argument.
    fn action(number: c_long, first: u32, third: u32) -> u32 {
        let x86_64 = 0xc000_003e;
        run(&filter(), &[number as u32, x86_64, 0, 0, first, 0, 0, 0, third, 0])
    }

    #[test]
    fn allows_only_calls_for_computing() {
        let (allow, deny) = (FilterAction::Allow.code(), FilterAction::Fail(EPERM).code());
        for number in 0..600 {
            let is_allowed = ALLOWED.contains(&number) || MAPPINGS.contains(&number);
            assert_eq!(action(number, 0, 0), if is_allowed { allow } else { deny }, "{number}");
        }
        for call in MAPPINGS {
            let protection = |flags: i32| action(*call, 0, flags as u32);
            assert_eq!(protection(libc::PROT_READ | libc::PROT_WRITE), allow);
            assert_eq!(protection(libc::PROT_READ | libc::PROT_EXEC), deny);
        }
        let (own, abort) = (std::process::id(), libc::SIGABRT as u32);
        assert_eq!(action(libc::SYS_tgkill, own, abort), allow);
        assert_eq!(action(libc::SYS_tgkill, own, libc::SIGKILL as u32), deny);
        assert_eq!(action(libc::SYS_tgkill, own + 1, abort), deny);
    }

    #[test]
    fn kills_callers_with_another_convention() {
        let kill = FilterAction::Kill.code();
        let i386 = 0x4000_0003;
        assert_eq!(run(&filter(), &[3, i386, 0, 0, 0, 0, 0, 0, 0, 0]), kill);
        assert_eq!(action(0x4000_0000, 0, 0), kill, "x32");
    }
}
