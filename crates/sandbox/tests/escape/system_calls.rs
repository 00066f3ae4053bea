//! System calls that could bypass the other restrictions.

use std::os::unix::process::ExitStatusExt as _;

use toolhub_sandbox::StopReason;

use crate::harness::{ISOLATIONS, policy, python, run};

/// System calls whose numbers are the same on every architecture. Each must fail with `EPERM` or `ENOSYS`.
const MODERN: &str = r#"
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, number in [("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427), ("open_tree", 428),
        ("move_mount", 429), ("fsopen", 430), ("clone3", 435), ("pidfd_getfd", 438), ("process_madvise", 440),
        ("mount_setattr", 442), ("memfd_secret", 447), ("unknown", 470), ("far away", 5000)]:
    print("tried", name)
    ctypes.set_errno(0)
    answer = libc.syscall(number, 1, 0, 0, 0, 0, 0)
    if answer != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): print("escaped by", name, answer, ctypes.get_errno())
"#;

#[test]
fn denies_recent_system_calls() {
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(MODERN, &[])).assert_no_escape();
    }
}

#[test]
fn denies_namespaces_mounts_and_kernel_modules() {
    let code = r#"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(how, step):
    print("tried", how)
    ctypes.set_errno(0)
    if step() != -1 or ctypes.get_errno() != errno.EPERM: print("escaped by", how, ctypes.get_errno())
for flag in [0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000]:
    attempt("unshare", lambda: libc.unshare(flag))
attempt("mount", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
attempt("umount", lambda: libc.umount2(b"/proc", 2))
attempt("chroot", lambda: libc.chroot(b"."))
attempt("setns", lambda: libc.setns(0, 0))
attempt("ptrace", lambda: libc.ptrace(0, 0, 0, 0))
attempt("personality", lambda: libc.personality(0x0040000))
attempt("shmget", lambda: libc.shmget(1, 4096, 0o1777))
attempt("hiding", lambda: libc.prctl(4, 0, 0, 0, 0))
attempt("typing", lambda: libc.ioctl(0, 0x5412, b"x"))
"#;
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(code, &[])).assert_no_escape();
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn denies_foreign_calling_conventions() {
    // mov eax, 20 (getpid of the 32-bit convention); int 0x80; ret
    let old = r#"
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
print("tried", flush=True)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print("escaped", call())
"#;
    let x32 = r#"
import ctypes
print("tried", flush=True)
print("escaped", ctypes.CDLL(None).syscall(0x40000000 + 39))
"#;
    for isolation in ISOLATIONS {
        for code in [old, x32] {
            let result = run(&policy(isolation), python(code, &[]));
            result.assert_no_escape();
            result.assert_stopped_by(&StopReason::Call);
            let killed = result.status.signal() == Some(libc::SIGSYS);
            assert!(killed || result.status.code() == Some(128 + libc::SIGSYS), "{result:#?}");
        }
    }
}
