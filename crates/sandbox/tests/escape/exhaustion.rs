//! Resource exhaustion: processes, memory, disk, CPU time, file descriptors.

use std::time::Duration;

use toolhub_sandbox::{Isolation, SandboxLimits, SandboxPolicy, StopReason};

use crate::harness::{ISOLATIONS, policy, processes_with, python, run, token};

fn limited(isolation: Isolation, limits: SandboxLimits) -> SandboxPolicy {
    SandboxPolicy { limits, ..policy(isolation) }
}

#[test]
fn fork_bombs_are_stopped() {
    // Wide: 400 children of one process. Deep: nine generations, each of which doubles the number of processes.
    let wide = "import os, time\nfor _ in range(400):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)";
    let deep = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(30)";
    let threads = "import threading, time\nfor _ in range(400): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\ntime.sleep(30)";
    for isolation in ISOLATIONS {
        let limits = SandboxLimits { processes: 48, ..SandboxLimits::default() };
        for bomb in [wide, deep, threads] {
            let token = token();
            let result = run(&limited(isolation, limits), python(bomb, &[&token]));
            result.assert_stopped_by(&StopReason::Processes(48));
            assert_eq!(processes_with(&token), [""; 0]);
        }
    }
}

/// The kernel does not enforce `RLIMIT_NPROC` for root, and polling alone is too slow: thousands of processes start between
/// two polls.
#[test]
fn fork_bomb_stays_within_process_limit() {
    let bomb = "import mmap, os, sys, time\nfile = open(sys.argv[1], 'r+b')\nborn = mmap.mmap(file.fileno(), 4096)\nwhile int.from_bytes(born[:4], 'little') < 4000:\n  born[:4] = (int.from_bytes(born[:4], 'little') + 1).to_bytes(4, 'little')\n  os.fork()\ntime.sleep(30)";
    for isolation in ISOLATIONS {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("born");
        std::fs::write(&file, [0; 4096]).unwrap();
        let limits = SandboxLimits { processes: 48, ..SandboxLimits::default() };
        let policy = SandboxPolicy { write: vec![folder.path().into()], ..limited(isolation, limits) };
        run(&policy, python(bomb, &[file.to_str().unwrap()])).assert_stopped_by(&StopReason::Processes(48));
        let born = std::fs::read(&file).unwrap();
        let born = u32::from_le_bytes([born[0], born[1], born[2], born[3]]);
        assert!(born < 48 * 10, "{born} were born");
    }
}

#[test]
fn memory_is_bounded() {
    let one = "x = []\nfor _ in range(1024): x.append(bytearray(b'x') * (1 << 20))\nprint('escaped')";
    let shared = "import mmap, time\nfor _ in range(1):\n  m = mmap.mmap(-1, 1 << 30)\n  for page in range(0, 1 << 30, 4096): m[page] = 1\nprint('escaped')\ntime.sleep(30)";
    let many = "import os, time\nfor _ in range(12):\n  if os.fork() == 0: x = bytearray(b'x') * (40 << 20); time.sleep(30); os._exit(0)\ntime.sleep(30)";
    for isolation in ISOLATIONS {
        let limits = SandboxLimits { memory: 128 << 20, ..SandboxLimits::default() };
        for bomb in [one, shared, many] {
            let result = run(&limited(isolation, limits), python(bomb, &[]));
            result.assert_stopped_by(&StopReason::Memory(128 << 20));
        }
    }
}

#[test]
fn disk_is_bounded() {
    let limits = SandboxLimits { disk: 16 << 20, file_size: 8 << 20, ..SandboxLimits::default() };
    let one = "open('x', 'wb').write(bytes(64 << 20))";
    let many = "import time\nfor n in range(64): open(str(n), 'wb').write(bytes(1 << 20))\ntime.sleep(30)";
    let removed = "import os, time\nkept = []\nfor n in range(64):\n  f = open('x', 'wb'); f.write(bytes(1 << 20)); f.flush(); os.unlink('x'); kept.append(f)\ntime.sleep(30)";
    // Empty files count as well, because directory entries use disk space.
    let names = "import os, time\nfor n in range(6000): open(str(n), 'w').close()\ntime.sleep(30)";
    for isolation in ISOLATIONS {
        let policy = limited(isolation, limits);
        run(&policy, python(one, &[])).assert_stopped_by(&StopReason::FileSize(8 << 20));
        for bomb in [many, removed] {
            run(&policy, python(bomb, &[])).assert_stopped_by(&StopReason::Disk(16 << 20));
        }
        let policy = limited(isolation, SandboxLimits { disk: 1 << 20, ..limits });
        run(&policy, python(names, &[])).assert_stopped_by(&StopReason::Disk(1 << 20));
    }
}

#[test]
fn processor_time_is_bounded() {
    let one = "import time\nend = time.time() + 60\nwhile time.time() < end: pass";
    // No single process reaches the limit of one second.
    let many = "import os, time\nend = time.time() + 60\nwhile time.time() < end:\n  if os.fork() == 0:\n    stop = time.process_time() + 0.4\n    while time.process_time() < stop: pass\n    os._exit(0)\n  os.wait()";
    for isolation in ISOLATIONS {
        let limits = SandboxLimits { cpu: Duration::from_secs(1), ..SandboxLimits::default() };
        for bomb in [one, many] {
            let result = run(&limited(isolation, limits), python(bomb, &[]));
            result.assert_stopped_by(&StopReason::Cpu(Duration::from_secs(1)));
        }
    }
}

#[test]
fn open_files_are_bounded() {
    let code = "x = [open('/dev/null') for _ in range(5000)]";
    for isolation in ISOLATIONS {
        let limits = SandboxLimits { open_files: 64, ..SandboxLimits::default() };
        run(&limited(isolation, limits), python(code, &[])).assert_stopped_by(&StopReason::OpenFiles(64));
    }
}
