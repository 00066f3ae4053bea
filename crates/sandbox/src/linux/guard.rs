//! The guard: a helper process of the program that confines others. If the program is killed, the guard outlives it and
//! kills everything that it had confined.
//!
//! `PR_SET_PDEATHSIG` cannot replace it: that signal is sent when the parent thread exits, not the process, and
//! descendants of the child do not get it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::process_tag::TagRange;
use super::syscalls;

/// Process name of the guard, different from that of the program, so that `pkill` of the program does not kill the
/// guard.
const GUARD_NAME: &str = "sandbox-guard";
/// The running executable, even if its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";

/// Whether this program can act as its own guard.
static IS_AVAILABLE: AtomicBool = AtomicBool::new(false);
/// The running guard. Its stdin reaches EOF when this program exits, for whatever reason.
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Call this first in `main`. Returns `true` if this process was started as a guard and has finished its work. Programs
/// that do not call it get no guard: if they are killed, confined processes survive.
pub fn run_guard_if_requested() -> bool {
    let mut words = std::env::args();
    if words.next().as_deref() != Some(GUARD_NAME) {
        IS_AVAILABLE.store(true, Ordering::Relaxed);
        return false;
    }
    if let Some(tag_range) = words.next().and_then(|word| TagRange::read(&word)) {
        let _ = syscalls::name_process(c"sandbox-guard");
        // Nothing is ever written; EOF means that the program has exited.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tag_range.kill_all();
    }
    true
}

/// Starts a guard if possible and none is running.
pub(super) fn ensure_running() -> io::Result<()> {
    if !IS_AVAILABLE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_running = guard.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
    if !is_running {
        *guard = Some(start()?);
    }
    Ok(())
}

/// Call this last in `main`: ends the guard and waits for it, so that no zombie is left.
pub fn stop_guard() {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut guard) = guard {
        // `wait` closes its stdin.
        let _ = guard.wait();
    }
}

fn start() -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.arg0(GUARD_NAME).arg(TagRange::own()?.to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Signals to the program's process group or terminal must not reach the guard.
    syscalls::in_child(&mut command, syscalls::setsid);
    command.spawn()
}
