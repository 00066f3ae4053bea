//! The script host as a program of its own, for the tests of this crate, and hosts that do what a script might make of one.
//!
//! `script-host` is the host. `forge LINE…` sends these lines instead of running the script. `attack FILE PORT PID` tries
//! to use the system after it has given up its permissions, and reports what it could do.

mod attack;
mod forge;

use std::process::ExitCode;

fn main() -> ExitCode {
    if toolhub_script_host::run_if_requested() {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["forge", lines @ ..] => forge::run(lines),
        ["attack", targets @ ..] => attack::run(targets),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}
