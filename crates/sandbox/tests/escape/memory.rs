//! Memory that is in no process's resident set: tmpfs files, shared mappings, memory held by file descriptors only.

use toolhub_sandbox::{Isolation, SandboxLimits, SandboxPolicy, StopReason};

use crate::harness::{ISOLATIONS, policy, python, run};
use crate::ordinary_user::UnprivilegedUser;

const MEMORY: u64 = 128 << 20;

fn limited(isolation: Isolation, memory: u64) -> SandboxPolicy {
    let limits = SandboxLimits { memory, disk: 16 << 20, ..SandboxLimits::default() };
    SandboxPolicy { limits, ..policy(isolation) }
}

/// Four children, each with its own shared mapping. The argument is the size in MiB.
const SHARED_EACH: &str = r#"
import mmap, os, sys, time
size = int(sys.argv[1]) << 20
for _ in range(4):
    if os.fork() == 0:
        m = mmap.mmap(-1, size)
        for page in range(0, size, 4096): m[page] = 1
        time.sleep(30); os._exit(0)
time.sleep(30)
"#;

/// The main thread exits and another thread allocates: the kernel then reports no memory in `/proc/PID` of the process.
const FIRST_THREAD_GONE: &str = r#"
import ctypes, mmap, platform, sys, threading, time
size = int(sys.argv[1]) << 20
def allocate():
    time.sleep(0.2)
    m = mmap.mmap(-1, size)
    for page in range(0, size, 4096): m[page] = 1
    time.sleep(30)
threading.Thread(target=allocate).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"#;

#[test]
fn counts_shared_mappings_of_all_processes() {
    for isolation in ISOLATIONS {
        for code in [SHARED_EACH, FIRST_THREAD_GONE] {
            let size = if code == SHARED_EACH { "60" } else { "240" };
            run(&limited(isolation, MEMORY), python(code, &[size]))
                .assert_stopped_by(&StopReason::Memory(MEMORY));
        }
    }
}

/// An unprivileged user cannot create a control group in most sessions, so that only the watcher counts memory.
#[test]
fn counts_shared_mappings_without_a_control_group() {
    let setting = UnprivilegedUser::new();
    for isolation in ["builtin", "bubblewrap"] {
        for (code, size) in [(SHARED_EACH, "300"), (FIRST_THREAD_GONE, "1200")] {
            let printed = setting.run(isolation, code, &[size]);
            assert!(
                printed.contains("verdict: it used more memory than the 1024 MiB"),
                "{isolation}: {printed}"
            );
        }
    }
}

/// Pages mapped by several processes are counted once, whether they are shared or copy-on-write.
#[test]
fn counts_shared_pages_once() {
    let code = r#"
import mmap, os, time
size = 80 << 20
m = mmap.mmap(-1, size)
for page in range(0, size, 4096): m[page] = 1
x = bytearray(b'x') * (20 << 20)
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        assert sum(m[page] for page in range(0, size, 4096)) == size // 4096
        time.sleep(1); os._exit(0)
    children.append(pid)
for pid in children: assert os.waitpid(pid, 0)[1] == 0
print('done')
"#;
    for isolation in ISOLATIONS {
        run(&limited(isolation, 160 << 20), python(code, &[])).printed("done");
    }
}

/// Fills every writable folder of an in-memory file system, except the private folder and `/tmp`, which count as disk.
#[test]
fn bounds_files_in_memory() {
    let code = r#"
import os
total = 0
folders = {'/', '/dev', '/dev/shm', '/dev/pts', '/dev/mqueue', '/run', '/var', '/var/tmp', '/etc', '/home', '/proc', '/sys', '/mnt'}
for known in [os.getcwd(), '/usr/bin', '/etc/ssl/certs']:
    while known != '/':
        known = os.path.dirname(known)
        folders.add(known)
for folder in sorted(folders - {'/tmp', os.path.dirname(os.getcwd())}):
    try:
        if folder not in ('/', '/dev', '/dev/shm'): os.makedirs(folder, exist_ok=True)
        for n in range(40):
            with open(f'{folder}/bomb-{n}', 'wb') as file: total += file.write(bytes(8 << 20))
    except OSError: pass
print('tried')
if total > 32 << 20: print('escaped with', total >> 20, 'MiB')
"#;
    for isolation in ISOLATIONS {
        run(&limited(isolation, MEMORY), python(code, &[])).assert_no_escape();
    }
}

#[test]
fn counts_tmp_as_disk() {
    let many =
        "import time\nfor n in range(64): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(30)";
    let removed = "import os, time\nkept = []\nfor n in range(64):\n  f = open('/tmp/x', 'wb'); f.write(bytes(1 << 20)); f.flush(); os.unlink('/tmp/x'); kept.append(f)\ntime.sleep(30)";
    let policy = limited(Isolation::Bubblewrap, MEMORY);
    for bomb in [many, removed] {
        run(&policy, python(bomb, &[])).assert_stopped_by(&StopReason::Disk(16 << 20));
    }
    let few = "open('/tmp/x', 'wb').write(bytes(8 << 20))\nprint(len(open('/tmp/x', 'rb').read()) >> 20)";
    run(&policy, python(few, &[])).printed("8");
}

/// Files in `/dev/shm` count as memory, whether or not they are mapped or unlinked.
#[test]
fn counts_shared_memory_files() {
    let code = r#"
import os, sys, time
x = bytearray(b'x') * (int(sys.argv[1]) << 20)
with open('/dev/shm/x', 'wb') as file:
    if sys.argv[2] == 'removed': os.unlink('/dev/shm/x')
    for _ in range(30): file.write(bytes(1 << 20))
    file.flush(); time.sleep(1)
print('done')
"#;
    let policy = limited(Isolation::Bubblewrap, MEMORY);
    for kind in ["kept", "removed"] {
        run(&policy, python(code, &["100", kind])).assert_stopped_by(&StopReason::Memory(MEMORY));
        run(&policy, python(code, &["60", kind])).printed("done");
    }
}

#[test]
fn multiprocessing_works_with_shared_memory() {
    let code = r#"
import multiprocessing, tempfile
from multiprocessing import shared_memory
context = multiprocessing.get_context('fork')
def work(name, lock):
    block = shared_memory.SharedMemory(name=name)
    with lock: block.buf[0] += 1
    block.close()
block = shared_memory.SharedMemory(create=True, size=8 << 20)
lock = context.Lock()
some = [context.Process(target=work, args=(block.name, lock)) for _ in range(4)]
for one in some: one.start()
for one in some: one.join()
print(block.buf[0])
block.close(); block.unlink()
open('/tmp/usual', 'w').write('x'); open('/dev/null', 'w').write('x')
"#;
    run(&policy(Isolation::Bubblewrap), python(code, &[])).printed("4");
}

/// Memory that is neither mapped nor in a bounded file system cannot be counted, so that allocating it is denied.
#[test]
fn refuses_memory_that_only_descriptors_hold() {
    let code = r#"
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
try: os.memfd_create('x'); print('escaped by memfd_create')
except OSError: print('tried memfd_create')
read, write = os.pipe()
page = ctypes.create_string_buffer(4096)
class Part(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
part = Part(ctypes.addressof(page), 4096)
print('tried vmsplice')
if libc.vmsplice(write, ctypes.byref(part), 1, 0) != -1: print('escaped by vmsplice')
# A thread with descriptors of its own, which the process does not show.
CLONE_VM, CLONE_SIGHAND, CLONE_THREAD = 0x100, 0x800, 0x10000
clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
print('tried clone', flush=True)
if libc.syscall(clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
    os.write(1, b'escaped by clone')
"#;
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(code, &[])).assert_no_escape();
    }
}

/// Kernel buffers and unmapped shared pages are reported for no process. Only the memory controller of a control group
/// counts them.
#[test]
fn memory_controller_counts_unattributed_memory() {
    if !has_memory_controller() {
        return;
    }
    let unmapped = r#"
import mmap, time
kept = []
for _ in range(40):
    m = mmap.mmap(-1, 8 << 20)
    for page in range(0, 8 << 20, 4096): m[page] = 1
    m.madvise(mmap.MADV_DONTNEED)
    kept.append(m)
time.sleep(30)
"#;
    let buffers = r#"
import os, socket, time
for _ in range(4):
    if os.fork() == 0:
        kept = []
        try:
            while True:
                pair = socket.socketpair(); kept.append(pair)
                for end in pair:
                    end.setblocking(False)
                    try:
                        while True: end.send(bytes(32768))
                    except BlockingIOError: pass
        except OSError: time.sleep(30)
time.sleep(30)
"#;
    for isolation in ISOLATIONS {
        for code in [buffers, unmapped] {
            run(&limited(isolation, MEMORY), python(code, &[]))
                .assert_stopped_by(&StopReason::Memory(MEMORY));
        }
    }
}

/// Whether this user can create a control group with a memory limit below the group of this process.
fn has_memory_controller() -> bool {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    own.lines().any(|line| {
        let Some((_, (counts, path))) =
            line.split_once(':').and_then(|(id, rest)| Some((id, rest.split_once(':')?)))
        else {
            return false;
        };
        let folder = std::path::Path::new("/sys/fs/cgroup").join(counts).join(path.trim_start_matches('/'));
        let new = folder.join(format!("escape-{:x}", fastrand::u64(..)));
        let made = std::fs::create_dir(&new).is_ok();
        let counts_memory =
            ["memory.max", "memory.limit_in_bytes"].iter().any(|name| new.join(name).exists());
        made && std::fs::remove_dir(&new).is_ok() && counts_memory
    })
}
