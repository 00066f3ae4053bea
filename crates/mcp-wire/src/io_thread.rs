//! I/O threads, each with a runtime that serves some of the connections, so that the state of a request stays on one CPU.
//! Tasks that outlive a request run in the main runtime of the program.

use std::cell::OnceCell;

use tokio::runtime::Handle;
use toolhub_core::io_thread;

thread_local! {
    static MAIN_RUNTIME: OnceCell<Handle> = const { OnceCell::new() };
}

/// Makes this thread an I/O thread of a program with this main runtime. Numbers start at 1.
pub fn register_thread(number: usize, main_runtime: Handle) {
    io_thread::register_thread(number);
    // A thread that is registered already keeps its main runtime.
    MAIN_RUNTIME.with(|known| drop(known.set(main_runtime)));
}

/// The runtime for tasks that outlive a request.
pub fn main_runtime() -> Handle {
    MAIN_RUNTIME.with(|known| known.get().cloned()).unwrap_or_else(Handle::current)
}
