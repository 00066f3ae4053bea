//! The escape suite: real programs that try to get out of the sandbox, or to use up the machine. Every bomb is bounded,
//! so that nothing happens to the machine where the sandbox fails.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod attacks_interpreters;
mod attacks_links;
mod degraded;
mod exhaustion;
mod fence;
mod files;
mod killed;
mod memory;
mod network;
mod ordinary_user;
mod processes;
mod system_calls;
mod useful;
