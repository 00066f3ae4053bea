//! The web console in a real browser: the real `toolhub serve`, scripted servers behind it, and Chromium before it. The steps in
//! the browser are in the testkit's `scripts/console`; `cargo xtask peers` and `cargo xtask chromium` install what they need.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation fails the test with its message"
)]

mod console_deployment;
mod console_forms;
mod console_hostile_text;
mod console_journeys;
mod console_pages;
mod console_questions;
mod console_screenshots;
mod hub;
