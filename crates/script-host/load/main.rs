//! The script host as a program of its own, for the tests of this crate, and hosts that do what a script might make of one.
//!
//! `script-host` is the host. `forge LINE…` sends these lines instead of running the script. `attack FILE PORT PID` tries
//! to use the system after it has given up its permissions, and reports what it could do. `hub JOURNAL CODE` is a hub that runs
//! a script.

#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod forge;
#[cfg(target_os = "linux")]
mod hub;

use std::process::ExitCode;

fn main() -> ExitCode {
    if toolhub_sandbox::run_guard_if_requested() || toolhub_script_host::run_if_requested() {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run_command(&words)
}

#[cfg(target_os = "linux")]
fn run_command(words: &[&str]) -> ExitCode {
    match words {
        ["forge", lines @ ..] => forge::run(lines),
        ["attack", targets @ ..] => attack::run(targets),
        ["hub", journal, code] if hub::run(journal, code).is_ok() => {}
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// The tests run on Linux alone.
#[cfg(not(target_os = "linux"))]
fn run_command(_words: &[&str]) -> ExitCode {
    ExitCode::FAILURE
}
