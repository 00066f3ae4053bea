//! Drives the program `scripted-mcp` over raw pipes and sockets, and checks that it is correct and faulty exactly as its script
//! states.
#![expect(clippy::expect_used, clippy::panic, reason = "a failed expectation must fail the test")]
#![expect(clippy::needless_pass_by_value, reason = "tests pass `json!` values directly")]

mod http_client;
mod http_faults;
mod http_legacy;
mod http_modern;
mod library;
mod stdio_client;
mod stdio_faults;
mod stdio_legacy;
mod stdio_modern;
#[cfg(target_os = "linux")]
mod stdio_process;
