//! The script host of code mode: a process that runs one script with QuickJS and exchanges messages with the hub.
//!
//! The process is not trusted by the hub. QuickJS is written in C and had memory errors that scripts could reach, so it
//! runs nowhere else: the hub starts this process in its sandbox, and before the process reads a script it gives up all
//! system calls except those for computing. The protocol is in `toolhub_script::protocol`.

mod bindings;
mod cpu_time;
mod engine;
mod hints;
mod position;
mod state;

use std::io::{BufReader, stdin};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use toolhub_script::protocol::COMMAND;

/// Stack of the thread that runs the script. The engine stops a script that uses more than a part of it.
const STACK_BYTES: usize = 16 << 20;
/// Interval of the checks of the CPU time.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the engine to stop the script itself, which it cannot inside of some long functions.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Call this early in `main`, and return from `main` if it returns `true`: this process was started as a script host and
/// has finished its work.
pub fn run_if_requested() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let is_requested = arguments.next().is_some_and(|first| first == COMMAND) && arguments.next().is_none();
    if is_requested {
        run();
    }
    is_requested
}

/// Runs one script, with messages on stdin and stdout. Returns when the script has ended or has used up its CPU time; its
/// thread may still run then.
fn run() {
    let (started, deadline) = sync_channel(1);
    let thread = Builder::new().name(COMMAND.to_owned()).stack_size(STACK_BYTES);
    let serve = move || engine::serve(BufReader::new(stdin()), &started);
    // The hub sees the end of stdout, whatever the reason.
    let Ok(_thread) = thread.spawn(serve) else { return };
    let Ok(deadline_time) = deadline.recv() else { return };
    loop {
        match deadline.recv_timeout(CHECK_INTERVAL) {
            Err(RecvTimeoutError::Timeout) if cpu_time::used() > deadline_time.saturating_add(STOP_GRACE) => {
                return state::send_out_of_time();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
