//! Drives the program `scripted-mcp` raw, over pipes and sockets, and sees that it is as right and as wrong as told.
#![expect(clippy::expect_used, clippy::panic, reason = "a failed expectation must fail the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best where it is used")]

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
