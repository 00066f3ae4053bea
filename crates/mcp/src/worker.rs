//! Workers: threads with a runtime of their own that serve some of the connections each, so that what one request needs
//! stays with one processor. Whatever is to outlive a request runs at home, in the runtime that the workers belong to.

use std::cell::OnceCell;

use tokio::runtime::Handle;
use toolhub_core::worker;

thread_local! {
    static HOME: OnceCell<Handle> = const { OnceCell::new() };
}

/// Makes this thread a worker of the runtime `home`; the first one's number is 1.
pub fn begin(number: usize, home: Handle) {
    worker::begin(number);
    // A thread that is a worker already stays at home where it was.
    HOME.with(|known| drop(known.set(home)));
}

/// Where to run what outlives a request.
pub(crate) fn home() -> Handle {
    HOME.with(|home| home.get().cloned()).unwrap_or_else(Handle::current)
}
