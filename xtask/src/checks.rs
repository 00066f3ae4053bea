//! Which steps make up `cargo xtask test` and `cargo xtask lint`.
use anyhow::Result;

use crate::{
    bubblewrap,
    commands::{only_flag, unknown},
    deny, faketime,
    faults::{self, Passed},
    ignored_tests, package, peers, postgres,
    run::{self, cargo},
    steps::{Step, run_all},
    tidy,
    workspace::Workspace,
};

/// Where tests look for the peers.
const PEERS_VARIABLE: &str = "TOOLHUB_PEERS";

pub(crate) fn test(workspace: &Workspace, args: &[String]) -> Result<()> {
    let extra = match args.split_first() {
        None => &[],
        Some((dashes, extra)) if dashes == "--" => extra,
        Some((stranger, _)) => return Err(unknown("argument", stranger, ["--"])),
    };
    let mut steps = lint_steps(workspace, Mode::Check);
    steps.push(Step::new("package", "cargo xtask package", || package::check(workspace)));
    steps.push(Step::new("peers", "cargo xtask peers", || peers::set_up(workspace)));
    steps.push(Step::new("postgres", "cargo xtask postgres", postgres::set_up));
    steps.push(Step::new("faketime", "cargo xtask faketime", || faketime::set_up(workspace)));
    steps.push(Step::new("bubblewrap", "cargo xtask bubblewrap", bubblewrap::set_up));
    let mut tests = cargo(&workspace.root);
    tests.args(["test", "--workspace"]).args(extra);
    tests.env(PEERS_VARIABLE, peers::folder(workspace));
    let alone = format!("{PEERS_VARIABLE}={} cargo test --workspace", peers::folder(workspace).display());
    let whole = extra.is_empty();
    if whole {
        // One run names everything that fails.
        tests.arg("--no-fail-fast");
    }
    #[cfg(unix)]
    if whole {
        steps.push(Step::new("many", "cargo xtask peers --many --few", || peers::many::check_few(workspace)));
    }
    steps.push(Step::new("tests", &alone, move || {
        let mut passed = Passed::default();
        run::overheard(&mut tests, |line| passed.hear(line))?;
        if whole { faults::publish(workspace, &passed) } else { Ok(()) }
    }));
    if whole {
        steps.push(Step::new("ignored tests", "cargo test -- --ignored", || {
            ignored_tests::run_possible(workspace)
        }));
    }
    run_all(steps)
}

pub(crate) fn lint(workspace: &Workspace, args: &[String]) -> Result<()> {
    let mode = if only_flag(args, "--fix")? { Mode::Fix } else { Mode::Check };
    run_all(lint_steps(workspace, mode))
}

#[derive(Clone, Copy)]
enum Mode {
    Check,
    Fix,
}

fn lint_steps(workspace: &Workspace, mode: Mode) -> Vec<Step<'_>> {
    let cargo_step = |name, args: &[&str]| {
        let mut command = cargo(&workspace.root);
        command.args(args);
        Step::cargo(name, command)
    };
    let mut steps = match mode {
        Mode::Check => vec![cargo_step("fmt", &["fmt", "--all", "--check"])],
        // What clippy rewrites is not formatted yet.
        Mode::Fix => vec![
            cargo_step("clippy fix", &["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty"]),
            cargo_step("fmt fix", &["fmt", "--all"]),
        ],
    };
    steps.push(cargo_step("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    steps.push(Step::new("tidy", "cargo xtask tidy", || tidy::check(workspace)));
    steps.push(Step::new("deny", "cargo xtask deny", || deny::check(workspace)));
    steps
}
