//! The same sandbox for an unprivileged user: tests that run as root start it with another UID.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{Outside, SECRET, interpreter, processes_with, token};

/// UID and GID of the unprivileged account that every system has.
const NOBODY: u32 = 65534;

/// A folder with a world-readable copy of `sandbox-load`, and a temporary folder of the unprivileged user.
pub(crate) struct UnprivilegedUser {
    pub(crate) folder: TempDir,
}

impl UnprivilegedUser {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&folder, all.clone()).unwrap();
        let program = folder.path().join("sandbox-load");
        // Copied by `cp`: a descriptor open for writing in this process, or in a child forked by another test, causes `ETXTBSY`.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_sandbox-load")).arg(&program).status().unwrap();
        assert!(copied.success());
        fs::set_permissions(program, all).unwrap();
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        if is_root() {
            chown(temporary, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn program(&self) -> std::path::PathBuf {
        self.folder.path().join("sandbox-load")
    }

    /// The command that starts `sandbox-load` as an unprivileged user, with a Python program in the sandbox.
    pub(crate) fn command(&self, isolation: &str, code: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command
            .arg("run")
            .arg(isolation)
            .arg(interpreter("python3"))
            .args(["-I", "-c", code])
            .args(arguments);
        command.env("TMPDIR", self.folder.path().join("tmp")).current_dir(self.folder.path());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs the command and returns its stdout.
    pub(crate) fn run(&self, isolation: &str, code: &str, arguments: &[&str]) -> String {
        let output = self.command(isolation, code, arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("verdict: "), "{printed}{}", String::from_utf8_lossy(&output.stderr));
        printed
    }
}

fn is_root() -> bool {
    let metadata = fs::metadata("/proc/self").unwrap();
    std::os::linux::fs::MetadataExt::st_uid(&metadata) == 0
}

fn check(isolation: &str) {
    let setting = UnprivilegedUser::new();
    // World-readable, so that only the sandbox denies access.
    let outside = Outside::new();
    fs::set_permissions(&outside.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let secret = outside.secret.to_str().unwrap();
    let printed = setting.run(isolation, "import sys\nprint(open(sys.argv[1]).read())", &[secret]);
    assert!(printed.contains("was not granted") && !printed.contains(SECRET), "{printed}");
    let new = outside.folder.path().join("new");
    let printed = setting.run(isolation, "import sys\nopen(sys.argv[1], 'w')", &[new.to_str().unwrap()]);
    assert!(printed.contains("verdict: the sandbox kept it from") && !Path::new(&new).exists(), "{printed}");
    let printed = setting.run(isolation, "import socket\nsocket.create_connection(('127.0.0.1', 9))", &[]);
    assert!(printed.contains("kept it from the network"), "{printed}");
    let token = token();
    let bomb = "import os, time\nfor _ in range(400):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)";
    let printed = setting.run(isolation, bomb, &[&token]);
    assert!(printed.contains("more processes and threads than the 128"), "{printed}");
    assert_eq!(processes_with(&token), [""; 0]);
    let printed = setting.run(isolation, "import os\nopen('x', 'w').write('y')\nprint(os.getuid())", &[]);
    assert!(printed.contains("verdict: none"), "{printed}");
    outside.assert_untouched();
}

#[test]
fn builtin() {
    check("builtin");
}

#[test]
fn bubblewrap() {
    check("bubblewrap");
}
