//! Reading and writing files that are not granted, directly and through links, renames, `/proc` and child processes.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;
use toolhub_sandbox::{SandboxPolicy, StopReason};

use crate::harness::{ISOLATIONS, Outside, SECRET, policy, python, run};

/// Tries each way to read the secret, prints `escaped` for each that succeeds, and ends with an uncaught `OSError`.
const READ: &str = r#"
import os, sys, subprocess
secret = sys.argv[1]
last = None
def attempt(how, step):
    global last
    print("tried", how)
    try:
        if "must-stay" in str(step()): print("escaped by", how)
    except Exception as error:
        last = error
def link():
    os.symlink(secret, "link"); return open("link").read()
def folder_link():
    os.symlink(os.path.dirname(secret), "folder"); return open("folder/secret.txt").read()
def hard_link():
    os.link(secret, "hard"); return open("hard").read()
def moved():
    os.rename(secret, "moved"); return open("moved").read()
attempt("name", lambda: open(secret).read())
attempt("dots", lambda: open(os.path.join(os.getcwd(), "..", os.path.relpath(secret, os.path.dirname(os.getcwd())))).read())
attempt("link", link)
attempt("folder link", folder_link)
attempt("hard link", hard_link)
attempt("rename", moved)
attempt("/proc/self/root", lambda: open("/proc/self/root" + secret).read())
attempt("/proc/self/cwd", lambda: open("/proc/self/cwd/../" + os.path.relpath(secret, os.path.dirname(os.getcwd()))).read())
attempt("listing", lambda: "must-stay" if "secret.txt" in os.listdir(os.path.dirname(secret)) else "")
attempt("a child", lambda: subprocess.run(["cat", secret], capture_output=True, text=True).stdout)
attempt("a shell", lambda: subprocess.run(["sh", "-c", 'cat < "$1"', "sh", secret], capture_output=True, text=True).stdout)
open(secret)
"#;

#[test]
fn denies_reading_outside_grants() {
    for isolation in ISOLATIONS {
        let outside = Outside::new();
        let result = run(&policy(isolation), python(READ, &[outside.secret.to_str().unwrap()]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::File(Some(outside.secret.clone())));
        outside.assert_untouched();
    }
}

#[test]
fn symlinks_in_granted_folder_do_not_lead_out() {
    for isolation in ISOLATIONS {
        let outside = Outside::new();
        let granted = TempDir::new().unwrap();
        symlink(&outside.secret, granted.path().join("link")).unwrap();
        symlink(outside.folder.path(), granted.path().join("folder")).unwrap();
        let policy = SandboxPolicy { read: vec![granted.path().into()], ..policy(isolation) };
        for name in ["link", "folder/secret.txt"] {
            let path = granted.path().join(name);
            let result = run(
                &policy,
                python("import sys\nprint(open(sys.argv[1]).read())", &[path.to_str().unwrap()]),
            );
            assert!(!result.status.success() && !result.stdout.contains(SECRET), "{result:#?}");
            assert_eq!(result.stop, Some(StopReason::File(Some(outside.secret.clone()))), "{result:#?}");
        }
    }
}

const WRITE: &str = r#"
import os, sys, shutil
folder = sys.argv[1]
secret = os.path.join(folder, "secret.txt")
def attempt(how, step):
    print("tried", how)
    try:
        step(); print("escaped by", how)
    except OSError:
        pass
new = os.path.join(folder, "new")
attempt("a new file", lambda: open(new, "w"))
attempt("appending", lambda: open(secret, "a"))
attempt("emptying while opening", lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC))
attempt("truncating", lambda: os.truncate(secret, 0))
attempt("removing", lambda: os.unlink(secret))
attempt("renaming", lambda: os.rename(secret, new))
attempt("replacing", lambda: (open("own", "w").close(), os.replace("own", secret)))
attempt("a folder", lambda: os.mkdir(new))
attempt("a link", lambda: os.symlink("x", new))
attempt("a hard link", lambda: (open("own2", "w").close(), os.link("own2", new)))
attempt("a pipe", lambda: os.mkfifo(new))
attempt("a mode", lambda: os.chmod(secret, 0o777))
attempt("an owner", lambda: os.chown(secret, 12345, 12345))
attempt("a time", lambda: os.utime(secret, (1, 1)))
attempt("an attribute", lambda: os.setxattr(secret, "user.x", b"1"))
attempt("the folder's mode", lambda: os.chmod(folder, 0o777))
attempt("the system's programs", lambda: os.chmod("/usr/bin/env", 0o755))
for setting in ["sys/kernel/core_pattern", "sys/vm/drop_caches", "sysrq-trigger", "irq/default_smp_affinity", "sys/user/max_user_namespaces"]:
    attempt("the kernel's " + setting, lambda: os.open("/proc/" + setting, os.O_WRONLY))
for name in ["kernel/mm/transparent_hugepage/enabled", "power/state", "fs/cgroup/cgroup.procs", "fs/cgroup/pids/cgroup.procs"]:
    attempt("the kernel's " + name, lambda: os.open("/sys/" + name, os.O_WRONLY))
open(new, "w")
"#;

#[test]
fn denies_writing_outside_grants() {
    for isolation in ISOLATIONS {
        let outside = Outside::new();
        let result = run(&policy(isolation), python(WRITE, &[outside.path()]));
        result.assert_no_escape();
        assert!(
            matches!(result.stop, Some(StopReason::File(Some(_)) | StopReason::ReadOnly(Some(_)))),
            "{result:#?}"
        );
        outside.assert_untouched();
    }
}

#[test]
fn denies_writing_to_read_grants() {
    for isolation in ISOLATIONS {
        let granted = Outside::new();
        let policy = SandboxPolicy { read: vec![granted.folder.path().into()], ..policy(isolation) };
        let result = run(&policy, python(WRITE, &[granted.path()]));
        result.assert_no_escape();
        result.assert_stopped_by(&StopReason::ReadOnly(Some(granted.folder.path().join("new"))));
        granted.assert_untouched();
    }
}

#[test]
fn denies_root_files_and_home() {
    let code = "import os, sys\nfor path in ['/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/var/log', sys.argv[1]]:\n  print('tried', path)\n  try: (os.listdir if os.path.isdir(path) else open)(path); print('escaped', path)\n  except OSError: pass\n";
    let home = std::env::home_dir().unwrap();
    for isolation in ISOLATIONS {
        run(&policy(isolation), python(code, &[home.to_str().unwrap()])).assert_no_escape();
    }
}

#[test]
fn private_folder_is_private_and_removed() {
    for isolation in ISOLATIONS {
        let code = "import os\nopen('x', 'w').write('y')\nprint(os.getcwd())";
        let result = run(&policy(isolation), python(code, &[]));
        assert!(result.status.success(), "{result:#?}");
        assert!(!fs::exists(result.stdout.trim()).unwrap(), "{result:#?}");
    }
}

/// Tries each way to make a file that runs with the rights of its owner, prints `escaped` for each that succeeds.
const SPECIAL_MODES: &str = r#"
import ctypes, os, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
def attempt(how, name, step):
    print("tried", how)
    try: step()
    except OSError: pass
    try: mode = os.stat(name).st_mode
    except OSError: return
    if mode & 0o6000: print("escaped by", how)
open("own", "w").close()
for bits in [0o4755, 0o2755, 0o6755]:
    attempt("chmod", "own", lambda: os.chmod("own", bits))
    attempt("fchmod", "own", lambda: os.fchmod(os.open("own", os.O_RDONLY), bits))
    attempt("fchmodat", "own", lambda: os.chmod("own", bits, dir_fd=os.open(".", os.O_RDONLY)))
    attempt("fchmodat2", "own", lambda: libc.syscall(452, -100, b"own", bits, 0))
    attempt("creating", f"c{bits}", lambda: os.open(f"c{bits}", os.O_CREAT | os.O_WRONLY, bits))
    attempt("a node", f"n{bits}", lambda: os.mknod(f"n{bits}", stat.S_IFREG | bits))
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, bits, 0))
    attempt("openat2", f"o{bits}", lambda: libc.syscall(437, -100, f"o{bits}".encode(), how, 24))
    def unnamed():
        file = os.open(".", os.O_TMPFILE | os.O_WRONLY, bits)
        os.link(f"/proc/self/fd/{file}", f"t{bits}", follow_symlinks=True)
    attempt("an unnamed file", f"t{bits}", unnamed)
# Control: ordinary modes work, and flags that ask for no mode are not taken for one.
os.chmod("own", 0o750); assert os.stat("own").st_mode & 0o7777 == 0o750
os.close(os.open("plain", os.O_CREAT | os.O_WRONLY, 0o640)); os.mkdir("folder", 0o700)
assert os.stat("plain").st_mode & 0o7777 == 0o640 and open("plain").read() == ""
assert os.uname().machine != "x86_64" or libc.syscall(257, -100, b"plain", os.O_RDONLY, 0o6755) >= 0
print("works")
"#;

#[test]
fn denies_files_that_run_with_the_rights_of_their_owner() {
    for isolation in ISOLATIONS {
        let result = run(&policy(isolation), python(SPECIAL_MODES, &[]));
        result.assert_no_escape();
        assert!(result.stdout.contains("works"), "{result:#?}");
    }
}
