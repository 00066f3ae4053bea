//! The escape suite: real programs that try to break out of the sandbox or to exhaust the resources of the machine. Every
//! bomb is bounded, so that it does no harm if the sandbox fails.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod allowed_uses;
mod attacks_interpreters;
mod attacks_links;
mod degraded;
mod exhaustion;
mod files;
mod harness;
mod killed;
mod memory;
mod network;
mod ordinary_user;
mod processes;
mod system_calls;
