//! Runs real scripts in the real host under the real sandbox.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod bombs;
mod errors;
mod escape_language;
mod escape_system;
mod forged;
mod harness;
mod journal;
mod language;
mod memory;
mod processes;
