//! The entry point of `cargo xtask`: runs the selected command and converts its result into an exit code.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "xtask reports on the terminal")]

mod bench;
mod bubblewrap;
mod cargo_tools;
mod chaos;
mod checks;
mod chromium;
mod commands;
mod debian;
mod deny;
mod dist_assets;
mod e2e_model;
mod faketime;
mod faults;
mod features;
mod fuzz;
mod haproxy;
mod ignored_tests;
mod mutants;
mod nats;
mod nearest;
mod package;
mod packaging;
mod peers;
mod postgres;
mod requirements;
mod run;
mod screenshots;
mod soak;
mod steps;
mod table;
mod test_programs;
mod tidy;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Err(error) = commands::dispatch(&args) else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    if error.is::<commands::UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
