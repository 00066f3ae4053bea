//! The guard: a process beside the program that confines others. Should the program be killed, with no time to end
//! anything, the guard outlives it and ends all that it had confined.
//!
//! The kernel's own signal at a parent's death is no use here: it comes at the death of the thread that started a child,
//! and what that child has started never gets it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::calls;
use super::mark::Family;

/// What the guard is called in lists of processes. Whoever kills the program by its name does not hit the guard.
const NAME: &str = "sandbox-guard";
/// This very program, also where its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Whether this program can be its own guard.
static CAN_STAND: AtomicBool = AtomicBool::new(false);
/// The guard that stands. Its standard input ends when this program does, however it does.
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// To be called first in `main`: whether this process was started as the guard of another, and has done its work. From
/// then on a guard stands beside a program that confines others; without this, what was confined outlives a program
/// that is killed.
pub fn run_reaper_if_requested() -> bool {
    let mut words = std::env::args();
    if words.next().as_deref() != Some(NAME) {
        CAN_STAND.store(true, Ordering::Relaxed);
        return false;
    }
    if let Some(family) = words.next().and_then(|word| Family::read(&word)) {
        let _ = calls::name_process(c"sandbox-guard");
        // Nobody writes: it ends with the program.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        family.end_all();
    }
    true
}

/// Sees to it that a guard stands, where there can be one.
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

/// To be called last in `main`: lets the guard go, and waits for its end, so that nothing is left for others to collect.
pub fn dismiss_guard() {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut guard) = guard {
        // Its input ends with that.
        let _ = guard.wait();
    }
}

fn start() -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.arg0(NAME).arg(Family::own()?.to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // What is sent to the program's group or terminal is not for the guard.
    calls::in_child(&mut command, calls::setsid);
    command.spawn()
}
