//! A program around the sandbox: runs another in it, for tests as another user, and measures what it costs.
#![expect(clippy::print_stdout, reason = "the program prints its measurements")]

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use toolhub_sandbox::{Isolation, SandboxPolicy, confine, run_guard_if_requested, support};

fn main() -> ExitCode {
    if run_guard_if_requested() {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run_command(&words).unwrap_or_else(|error| {
        println!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run_command(words: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    match words {
        ["run", isolation, program, rest @ ..] => run(by_name(isolation)?, program, rest),
        ["overhead", rounds] => overhead(rounds.parse()?).map(|()| ExitCode::SUCCESS),
        _ => Err("usage: sandbox-load run builtin|bubblewrap|auto PROGRAM … | overhead ROUNDS".into()),
    }
}

fn by_name(name: &str) -> Result<Isolation, String> {
    match name {
        "builtin" => Ok(Isolation::Builtin),
        "bubblewrap" => Ok(Isolation::Bubblewrap),
        "auto" => Ok(Isolation::Auto),
        other => Err(format!("no isolation is called `{other}`")),
    }
}

/// Runs a program with nothing granted; the last line is the verdict.
fn run(isolation: Isolation, program: &str, arguments: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    let policy = SandboxPolicy { isolation, ..SandboxPolicy::default() };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut confinement = confine(&policy, &mut command)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::piped()).spawn()?;
    confinement.started(child.id());
    let status = child.wait()?;
    confinement.end_rest();
    let words = child.stderr.take().map(std::io::read_to_string).transpose()?.unwrap_or_default();
    let stop = confinement.verdict(status, &words);
    confinement.finish();
    println!("{words}support: {:?}", support());
    println!("verdict: {}", stop.map_or_else(|| "none".to_owned(), |stop| stop.to_string()));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From asking for the process to its end, in turn, so that a busy moment of the machine falls on all.
fn overhead(rounds: usize) -> Result<(), Box<dyn Error>> {
    let support = support();
    let works = |isolation| support.missing(isolation).is_empty();
    let mut subjects: Vec<(&str, Option<Isolation>)> = vec![("no sandbox", None)];
    if works(Isolation::Builtin) {
        subjects.push(("sandbox", Some(Isolation::Builtin)));
    }
    if works(Isolation::Bubblewrap) {
        subjects.push(("sandbox, Bubblewrap", Some(Isolation::Bubblewrap)));
    }
    let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
    // The first round only warms the caches.
    for round in 0..=rounds {
        for ((_, isolation), samples) in subjects.iter().zip(&mut samples) {
            let took = time(*isolation)?;
            if round > 0 {
                samples.push(took);
            }
        }
    }
    println!("/bin/true, {rounds} runs each, in turn\n{:<22}{:>9}{:>9}{:>9}", "", "p50 ms", "p90 ms", "+ ms");
    let mut base = None;
    for ((name, _), samples) in subjects.iter().zip(&mut samples) {
        samples.sort_unstable();
        let at = |percent: usize| samples.get(samples.len() * percent / 100).copied().unwrap_or_default();
        let median = at(50);
        let more = median.saturating_sub(*base.get_or_insert(median));
        let cells = [median, at(90), more].map(|time| format!("{:>9.2}", time.as_secs_f64() * 1e3));
        println!("{name:<22}{}", cells.concat());
    }
    Ok(())
}

fn time(isolation: Option<Isolation>) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    let mut command = Command::new("/bin/true");
    let confinement = match isolation {
        Some(isolation) => {
            let policy = SandboxPolicy { isolation, ..SandboxPolicy::default() };
            Some(confine(&policy, &mut command)?)
        }
        None => None,
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn()?.wait_with_output()?;
    // With it goes what may be left of the process.
    drop(confinement);
    let took = started.elapsed();
    if output.status.success() { Ok(took) } else { Err(format!("it failed: {output:?}").into()) }
}
