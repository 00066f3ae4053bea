//! Inspecting, signalling and tracing other processes, and outliving the sandbox.

use std::os::fd::IntoRawFd as _;

use crate::harness::{
    ISOLATIONS, Outside, SECRET, Victim, policy, processes_with, python, run, run_and_keep, token,
};

#[test]
fn denies_reading_other_processes() {
    let code = r#"
import os, sys
for pid in sys.argv[1:]:
    for name in ["environ", "cmdline", "mem", "maps", "fd", "fd/0", "fd/1", "cwd", "root", "exe", "auxv", "status", "task"]:
        path = f"/proc/{pid}/{name}"
        print("tried", path)
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(16)
            print("escaped", path)
        except OSError: pass
"#;
    for isolation in ISOLATIONS {
        let victim = Victim::new();
        let own = std::process::id().to_string();
        let result = run(&policy(isolation), python(code, &[&own, &victim.pid()]));
        result.assert_no_escape();
    }
}

#[test]
fn environment_contains_no_secrets() {
    // Cargo sets `CARGO_*` variables for every test, which must not be inherited.
    assert!(std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("CARGO")));
    let code = "import os\nprint(sorted(set(os.environ) - {'LC_CTYPE', 'PWD'}))\nprint(os.environ['HOME'] == os.getcwd())";
    for isolation in ISOLATIONS {
        let result = run(&policy(isolation), python(code, &[]));
        result.printed("['HOME', 'LANG', 'PATH', 'TEMP', 'TMP', 'TMPDIR']\nTrue");
    }
}

#[test]
fn denies_signals_and_ptrace() {
    let code = r#"
import ctypes, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(how, step):
    print("tried", how)
    try:
        if step() != -1: print("escaped by", how)
    except OSError: pass
buffer = ctypes.create_string_buffer(8)
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
for pid in map(int, sys.argv[1:]):
    attempt("a signal", lambda: os.kill(pid, signal.SIGKILL))
    attempt("a signal to its group", lambda: os.killpg(pid, signal.SIGKILL))
    attempt("a signal by handle", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
    attempt("a signal to a thread", lambda: libc.syscall(200, pid, 9))
    attempt("attaching", lambda: libc.ptrace(16, pid, 0, 0))
    attempt("seizing", lambda: libc.ptrace(0x4206, pid, 0, 0))
    local, remote = Vector(ctypes.addressof(buffer), 8), Vector(0x400000, 8)
    attempt("reading memory", lambda: libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
    attempt("limits", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
    attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("the priority of all processes of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
    attempt("the priority of its group", lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
    attempt("the I/O priority of all processes of the user", lambda: libc.syscall(251, 3, 0, 3 << 13))
    attempt("its processors", lambda: os.sched_setaffinity(pid, {0}))
    attempt("its files", lambda: libc.syscall(438, os.pidfd_open(pid), 0, 0))
"#;
    for isolation in ISOLATIONS {
        let mut victim = Victim::new();
        let result = run(&policy(isolation), python(code, &[&victim.pid()]));
        result.assert_no_escape();
        victim.assert_unharmed();
    }
}

#[test]
fn daemonized_process_is_ended() {
    // A daemon: a new session, a double fork, closed streams, an empty environment and a new process image.
    let code = r#"
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        os.execve(sys.executable, [sys.executable, "-I", "-c", "import time\ntime.sleep(60)", sys.argv[1]], {})
    os._exit(0)
os.wait()
print("left")
"#;
    for isolation in ISOLATIONS {
        let token = token();
        let (result, confinement) = run_and_keep(&policy(isolation), python(code, &[&token]));
        result.printed("left");
        confinement.finish();
        assert_eq!(processes_with(&token), [""; 0]);
        // Dropping the confinement ends the daemon as well.
        let (_, confinement) = run_and_keep(&policy(isolation), python(code, &[&token]));
        drop(confinement);
        assert_eq!(processes_with(&token), [""; 0]);
    }
}

#[test]
fn process_tag_cannot_be_removed() {
    let code = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Limit(ctypes.Structure): _fields_ = [("soft", ctypes.c_ulong), ("hard", ctypes.c_ulong)]
lower = Limit(1, 1)
for how, answer in [("prlimit64", libc.syscall(302, 0, 10, ctypes.byref(lower), None)), ("setrlimit", libc.setrlimit(10, ctypes.byref(lower)))]:
    print("tried", how)
    if answer == 0: print("escaped by", how)
"#;
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(code, &[])).assert_no_escape();
    }
}

#[test]
#[expect(unsafe_code, reason = "the standard library closes what it opens when a program is started")]
fn closes_inherited_descriptors() {
    let outside = Outside::new();
    let file = std::fs::File::open(&outside.secret).unwrap();
    // SAFETY: a valid descriptor, and the copy is closed below.
    let open = unsafe { libc::dup(file.into_raw_fd()) };
    assert!(open > 2);
    let code = "import os, sys\nprint('tried')\ntry: print('escaped', os.pread(int(sys.argv[1]), 99, 0))\nexcept OSError: pass";
    for isolation in ISOLATIONS {
        let result = run(&policy(isolation), python(code, &[&open.to_string()]));
        result.assert_no_escape();
        assert!(!result.stdout.contains(SECRET));
    }
    // SAFETY: created above, and not shared.
    unsafe { libc::close(open) };
}
