//! Test support for the whole workspace: scripted peers that misbehave on purpose, and checks for leftover processes.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a failed expectation must fail the test"
)]

mod authority;
pub mod browser;
pub mod conformance;
pub mod fake;
#[cfg(target_os = "linux")]
mod faketime;
#[cfg(unix)]
pub mod haproxy;
pub mod identity_provider;
pub mod model;
#[cfg(unix)]
pub mod nats;
pub mod network;
pub mod oauth;
pub mod peers;
#[cfg(unix)]
pub mod postgres;
#[cfg(target_os = "linux")]
pub mod processes;
mod program;
mod recorded_call;
pub mod scripted;
mod test_hub;

pub use authority::TestAuthority;
pub use fake::{FakeHost, Recorder};
#[cfg(target_os = "linux")]
pub use faketime::faketime;
pub use program::program;
pub use recorded_call::recorded_call;
pub use test_hub::{CommandLine, CommandOutput, TestHub};
