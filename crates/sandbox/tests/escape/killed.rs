//! If the process that owns a sandbox is killed by SIGKILL, all processes in the sandbox end, including daemons.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{interpreter, processes_with, token};
use crate::ordinary_user::UnprivilegedUser;

/// Starts a daemon in a new session, then sleeps. The daemon prints `sleeps` itself, after `execve`: before that its
/// command line does not identify it.
const CODE: &str = r#"
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sleeps = "import time\nprint('sleeps', flush=True)\ntime.sleep(60)"
        os.execve(sys.executable, [sys.executable, "-I", "-c", sleeps, sys.argv[1]], {})
    os._exit(0)
os.wait()
time.sleep(60)
"#;

/// Starts `command` and returns when the daemon in the sandbox is running.
fn started(mut command: Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "sleeps\n");
    child
}

fn check(command: Command, token: &str) {
    let mut child = started(command);
    assert!(processes_with(token).len() > 2, "{:?}", processes_with(token));
    child.kill().unwrap();
    child.wait().unwrap();
    let kill_started = Instant::now();
    while !processes_with(token).is_empty() {
        assert!(kill_started.elapsed() < Duration::from_secs(10), "{:?}", processes_with(token));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn children_do_not_outlive_killed_hub() {
    for isolation in ["builtin", "bubblewrap"] {
        let token = token();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandbox-load"));
        command.args(["run", isolation]).arg(interpreter("python3")).args(["-I", "-c", CODE, &token]);
        check(command, &token);
    }
}

#[test]
fn children_of_unprivileged_user_do_not_outlive_killed_hub() {
    for isolation in ["builtin", "bubblewrap"] {
        let (setting, token) = (UnprivilegedUser::new(), token());
        check(setting.command(isolation, CODE, &[&token]), &token);
    }
}
