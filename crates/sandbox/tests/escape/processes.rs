//! Inspecting, signalling and tracing other processes, and outliving the sandbox.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::IntoRawFd as _;
use std::process::Stdio;

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

/// Creates System V objects and a message queue, prints their names, and after a line of input whether they are unchanged.
const IPC_OWNER: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
memory, messages, semaphores = libc.shmget(0, 4096, 0o666), libc.msgget(0, 0o666), libc.semget(0, 1, 0o666)
queue = f"/toolhub-test-{os.getpid()}"
opened = libc.mq_open(queue.encode(), 0o102, 0o666, None)
buffer = ctypes.create_string_buffer(512)
def intact():
    return [libc.shmctl(memory, 2, buffer), libc.msgctl(messages, 2, buffer), libc.semctl(semaphores, 0, 12),
        libc.mq_unlink(queue.encode()), libc.msgrcv(messages, buffer, 64, 0, 0o4000)] == [0, 0, 0, 0, -1]
print(memory, messages, semaphores, queue, flush=True)
try:
    sys.stdin.readline()
    print("intact" if min(memory, messages, semaphores, opened) >= 0 and intact() else "changed")
finally:
    libc.shmctl(memory, 0, None), libc.msgctl(messages, 0, None), libc.semctl(semaphores, 0, 0), libc.mq_unlink(queue.encode())
"#;

#[test]
fn denies_system_v_objects_and_queues_of_other_processes() {
    let code = r#"
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
memory, messages, semaphores = map(int, sys.argv[1:4])
queue = sys.argv[4].encode()
def attempt(how, step):
    print("tried", how)
    if step() != -1: print("escaped by", how)
buffer = ctypes.create_string_buffer(512)
operation = ctypes.create_string_buffer(b"\x00\x00\x01\x00\x00\x08")
libc.shmat.restype = ctypes.c_long
attempt("shmat", lambda: libc.shmat(memory, None, 0))
attempt("shmctl", lambda: libc.shmctl(memory, 2, buffer))
attempt("msgsnd", lambda: libc.msgsnd(messages, b"\x01" + bytes(15), 8, 0o4000))
attempt("msgrcv", lambda: libc.msgrcv(messages, buffer, 64, 0, 0o4000))
attempt("semop", lambda: libc.semop(semaphores, operation, 1))
attempt("SETVAL", lambda: libc.semctl(semaphores, 0, 16, 7))
attempt("mq_open", lambda: libc.mq_open(queue, 2))
attempt("mq_unlink", lambda: libc.mq_unlink(queue))
attempt("removal of messages", lambda: libc.msgctl(messages, 0, None))
attempt("removal of semaphores", lambda: libc.semctl(semaphores, 0, 0))
attempt("removal of memory", lambda: libc.shmctl(memory, 0, None))
"#;
    for isolation in ISOLATIONS {
        let mut owner = python(IPC_OWNER, &[]);
        let mut owner = owner.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(owner.stdout.take().unwrap());
        let mut names = String::new();
        output.read_line(&mut names).unwrap();
        let names: Vec<&str> = names.split_whitespace().collect();
        run(&policy(isolation), python(code, &names)).assert_no_escape();
        owner.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut end = String::new();
        output.read_line(&mut end).unwrap();
        assert_eq!((end.trim(), owner.wait().unwrap().success()), ("intact", true), "{isolation:?}");
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
