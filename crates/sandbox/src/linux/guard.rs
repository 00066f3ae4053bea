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

use super::calls;
use super::mark::Family;

/// Process name of the guard, different from that of the program, so that `pkill` of the program does not kill the
/// guard.
const NAME: &str = "sandbox-guard";
/// The running executable, even if its file has been replaced.
const PROGRAM: &str = "/proc/self/exe";

/// Whether this program can act as its own guard.
static CAN_STAND: AtomicBool = AtomicBool::new(false);
/// The running guard. Its stdin reaches EOF when this program exits, for whatever reason.
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Call this first in `main`. Returns `true` if this process was started as a guard and has finished its work. Programs
/// that do not call it get no guard: if they are killed, confined processes survive.
pub fn run_reaper_if_requested() -> bool {
    let mut words = std::env::args();
    if words.next().as_deref() != Some(NAME) {
        CAN_STAND.store(true, Ordering::Relaxed);
        return false;
    }
    if let Some(family) = words.next().and_then(|word| Family::read(&word)) {
        let _ = calls::name_process(c"sandbox-guard");
        // Nothing is ever written; EOF means that the program has exited.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        family.end_all();
    }
    true
}

/// Starts a guard if possible and none is running.
pub(super) fn stand() -> io::Result<()> {
    if !CAN_STAND.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let stands = guard.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
    if !stands {
        *guard = Some(start()?);
    }
    Ok(())
}

/// Call this last in `main`: ends the guard and waits for it, so that no zombie is left.
pub fn dismiss_guard() {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut guard) = guard {
        // `wait` closes its stdin.
        let _ = guard.wait();
    }
}

fn start() -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.arg0(NAME).arg(Family::own()?.to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Signals to the program's process group or terminal must not reach the guard.
    calls::in_child(&mut command, calls::setsid);
    command.spawn()
}
