//! Worker threads, each with a runtime that serves some of the connections, so that the state of a request stays on one CPU.
//! Tasks that outlive a request run in the home runtime that the workers belong to.

use std::cell::OnceCell;

use tokio::runtime::Handle;
use toolhub_core::worker;

thread_local! {
    static HOME: OnceCell<Handle> = const { OnceCell::new() };
}

/// Makes this thread a worker of the runtime `home`. Numbers start at 1.
pub fn register_thread(number: usize, home: Handle) {
    worker::register_thread(number);
    // A thread that is already a worker keeps its home runtime.
    HOME.with(|known| drop(known.set(home)));
}

/// The runtime for tasks that outlive a request.
pub fn home() -> Handle {
    HOME.with(|home| home.get().cloned()).unwrap_or_else(Handle::current)
}
