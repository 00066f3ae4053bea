//! Runs named steps in sequence, measures their time, and stops at the first failure.
use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{run, table::Table};

pub(crate) struct Step<'a> {
    name: &'static str,
    /// The command line that runs only this step.
    alone: String,
    run: Box<dyn FnOnce() -> Result<Outcome> + 'a>,
}

/// The result of a step that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// All or part of it was skipped, with the reason.
    Skipped(String),
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        name: &'static str,
        alone: impl Into<String>,
        run: impl FnOnce() -> Result<()> + 'a,
    ) -> Self {
        Self::skippable(name, alone, move || run().map(|()| Outcome::Passed))
    }

    /// A step that may skip work, and returns the reason in this case.
    pub(crate) fn skippable(
        name: &'static str,
        alone: impl Into<String>,
        run: impl FnOnce() -> Result<Outcome> + 'a,
    ) -> Self {
        Self { name, alone: alone.into(), run: Box::new(run) }
    }

    pub(crate) fn cargo(name: &'static str, mut command: Command) -> Self {
        // `get_envs` also yields removed variables, without a value.
        let set = command.get_envs().filter_map(|(key, value)| Some((key, value?)));
        let mut words: Vec<String> = set
            .map(|(key, value)| format!("{}={}", key.to_string_lossy(), value.to_string_lossy()))
            .collect();
        words.push("cargo".to_owned());
        words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
        Self::new(name, words.join(" "), move || run::check(&mut command))
    }
}

pub(crate) fn run_all(steps: Vec<Step<'_>>) -> Result<()> {
    let count = steps.len();
    let started = Instant::now();
    let mut summary = Table::default();
    let mut result = Ok(());
    for (index, step) in steps.into_iter().enumerate() {
        println!("\n━━ {}/{count} {}: {}", index + 1, step.name, step.alone);
        let step_started = Instant::now();
        let done = (step.run)();
        let verdict = match &done {
            Ok(Outcome::Passed) => "ok".to_owned(),
            Ok(Outcome::Skipped(reason)) => format!("SKIPPED: {reason}"),
            Err(_) => "FAILED".to_owned(),
        };
        summary.row([step.name.to_owned(), seconds(step_started.elapsed()), verdict]);
        if let Err(error) = done {
            let hint = format!("step `{}` failed; run it alone with `{}`", step.name, step.alone);
            result = Err(error.context(hint));
            break;
        }
    }
    summary.row(["total".to_owned(), seconds(started.elapsed()), String::new()]);
    println!("\n━━ summary\n{summary}");
    result
}

fn seconds(duration: Duration) -> String {
    format!("{:>7.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;

    use super::*;

    #[test]
    fn stops_at_the_first_failure_and_names_it() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str, good: bool| {
            let ran = &ran;
            Step::new(name, format!("cargo xtask {name}"), move || {
                ran.borrow_mut().push(name);
                if good { Ok(()) } else { bail!("broken") }
            })
        };
        let error = run_all(vec![step("a", true), step("b", false), step("c", true)]).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `b` failed; run it alone with `cargo xtask b`: broken");
        assert_eq!(*ran.borrow(), ["a", "b"]);
    }
}
