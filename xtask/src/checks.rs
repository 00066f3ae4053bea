//! The steps of `cargo xtask test` and `cargo xtask lint`.
use std::cell::RefCell;

use anyhow::Result;

use crate::{
    commands::{only_flag, unknown},
    deny, e2e_model,
    faults::{self, Passed},
    features, ignored_tests, package, peers,
    requirements::{REQUIREMENTS, Requirement, may_install},
    run::{self, cargo},
    steps::{Outcome, Step, run_all},
    test_programs::{self, Selection},
    tidy,
    workspace::Workspace,
};

/// The parsed arguments of `cargo xtask test`.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// Run only formatting, tidy and unit tests, for the edit-compile loop.
    quick: bool,
    /// Whether system packages may be installed.
    install: bool,
    /// Write documents that are generated from test results instead of only comparing them.
    write_docs: bool,
    /// Arguments for `cargo test --workspace`.
    extra: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for (index, arg) in args.iter().enumerate() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--install" => options.install = true,
                "--write-docs" => options.write_docs = true,
                "--" => {
                    options.extra = args[index + 1..].to_vec();
                    break;
                }
                other => {
                    return Err(unknown("argument", other, ["--quick", "--install", "--write-docs", "--"]));
                }
            }
        }
        Ok(options)
    }
}

pub(crate) fn test(workspace: &Workspace, args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    if options.quick { quick(workspace, &options) } else { full(workspace, &options) }
}

/// Finds most mistakes within a minute, without network, other programs or peers.
fn quick(workspace: &Workspace, options: &Options) -> Result<()> {
    let mut tests = cargo(&workspace.root);
    tests.args(["test", "--quiet", "--workspace", "--lib", "--bins"]).args(&options.extra);
    run_all(vec![
        cargo_step(workspace, "fmt", &["fmt", "--all", "--check"]),
        tidy_step(workspace),
        Step::cargo("unit tests", tests),
    ])
}

fn full(workspace: &Workspace, options: &Options) -> Result<()> {
    let allowed = may_install(options.install);
    let missing: RefCell<Vec<&Requirement>> = RefCell::default();
    let mut steps = lint_steps(workspace, Mode::Check);
    steps.push(Step::new("package", "cargo xtask package", || package::check(workspace)));
    steps.push(Step::new("peers", "cargo xtask peers", || peers::set_up(workspace)));
    for requirement in &REQUIREMENTS {
        let missing = &missing;
        let alone = format!("cargo xtask {}", requirement.name);
        steps.push(Step::skippable(requirement.name, alone, move || {
            let outcome = requirement.provide(workspace, allowed)?;
            if matches!(outcome, Outcome::Skipped(_)) {
                missing.borrow_mut().push(requirement);
            }
            Ok(outcome)
        }));
    }
    let everything = options.extra.is_empty();
    #[cfg(unix)]
    if everything {
        steps.push(Step::new("many", "cargo xtask peers --many --few", || peers::many::check_few(workspace)));
    }
    let alone = format!("{}={} cargo test --workspace", peers::VARIABLE, peers::folder(workspace).display());
    steps.push(Step::skippable("tests", alone, || run_tests(workspace, options, &missing.borrow())));
    if everything {
        steps.push(Step::new("ignored tests", "cargo test --workspace -- --ignored", || {
            ignored_tests::run_possible(workspace)
        }));
    }
    if everything {
        steps.push(Step::skippable("small model", "cargo xtask e2e-model --small", || {
            e2e_model::check_client_libraries(workspace)
        }));
    }
    if everything && allowed {
        steps.push(Step::new("features", "cargo xtask features", || features::check(workspace)));
    }
    run_all(steps)
}

/// Runs the test programs whose names contain one of the arguments; all of them without arguments.
pub(crate) fn tests(workspace: &Workspace, args: &[String]) -> Result<()> {
    let names: Vec<&str> = args.iter().map(String::as_str).collect();
    let selection = Selection {
        names: &names,
        excluded_packages: &[],
        skipped_tests: &[],
        environment: &[(peers::VARIABLE, &peers::folder(workspace))],
    };
    test_programs::run(workspace, selection, |_| {})
}

/// Runs all tests except those whose requirements are missing.
fn run_tests(workspace: &Workspace, options: &Options, missing: &[&Requirement]) -> Result<Outcome> {
    if !options.extra.is_empty() {
        let mut tests = cargo(&workspace.root);
        tests.args(["test", "--workspace"]).args(&options.extra);
        run::check(tests.env(peers::VARIABLE, peers::folder(workspace)))?;
        return Ok(Outcome::Passed);
    }
    let mut passed = Passed::default();
    let packages: Vec<&str> = missing.iter().flat_map(|requirement| requirement.packages).copied().collect();
    for package in &packages {
        let mut units = cargo(&workspace.root);
        units.args(["test", "--package", package, "--lib"]);
        run::run_with_listener(&mut units, |line| passed.parse_line(line))?;
    }
    let skipped: Vec<&str> = missing.iter().flat_map(|requirement| requirement.tests).copied().collect();
    let selection = Selection {
        names: &[],
        excluded_packages: &packages,
        skipped_tests: &skipped,
        environment: &[(peers::VARIABLE, &peers::folder(workspace))],
    };
    test_programs::run(workspace, selection, |line| passed.parse_line(line))?;
    run::check(cargo(&workspace.root).args(["test", "--quiet", "--workspace", "--doc"]))?;
    if missing.is_empty() {
        faults::check(workspace, &passed, options.write_docs)?;
        return Ok(Outcome::Passed);
    }
    let names: Vec<&str> = missing.iter().map(|requirement| requirement.name).collect();
    Ok(Outcome::Skipped(format!("the tests that need {}", names.join(", "))))
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
    let step = |name, args: &[&str]| cargo_step(workspace, name, args);
    let mut steps = match mode {
        Mode::Check => vec![step("fmt", &["fmt", "--all", "--check"])],
        // The output of `clippy --fix` may need formatting.
        Mode::Fix => vec![
            step("clippy fix", &["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty"]),
            step("fmt fix", &["fmt", "--all"]),
        ],
    };
    steps.push(step("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    steps.push(tidy_step(workspace));
    steps.push(Step::new("deny", "cargo xtask deny", || deny::check(workspace)));
    steps
}

fn tidy_step(workspace: &Workspace) -> Step<'_> {
    Step::new("tidy", "cargo xtask tidy", || tidy::check(workspace))
}

fn cargo_step<'a>(workspace: &Workspace, name: &'static str, args: &[&str]) -> Step<'a> {
    let mut command = cargo(&workspace.root);
    command.args(args);
    Step::cargo(name, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_arguments_after_double_dash_to_cargo() {
        let parsed = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words)
        };
        assert_eq!(parsed("").unwrap(), Options::default());
        let options = parsed("--quick -- --lib --install").unwrap();
        assert!(options.quick && !options.install, "{options:?}");
        assert_eq!(options.extra, ["--lib", "--install"]);
        assert!(parsed("--install --write-docs").is_ok_and(|options| options.install && options.write_docs));
        assert_eq!(
            parsed("--qick").unwrap_err().to_string(),
            "unknown argument `--qick`; did you mean `--quick`?"
        );
    }
}
