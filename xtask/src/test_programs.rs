//! Runs the test programs of the workspace, several at a time: most of them wait for processes, deadlines and browsers, so that
//! one after another leaves processors idle.
use std::{
    collections::HashMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{
    run::{self, cargo, program},
    table::Table,
    workspace::Workspace,
};

/// Test programs that measure memory or load, or start many programs that wait for each other: each runs while no other one does.
const EXCLUSIVE: &[&str] =
    &["browser", "bus", "cluster", "faults", "gateway", "memory", "openai", "peers", "scripts", "soak"];

/// Exclusive test programs whose tests mostly wait: twice as many of them run at once as there are processors. With two processors
/// the tests of `gateway` take 300 s instead of 490.
const WAITING: &[&str] = &["gateway"];

/// Durations of the last run, in the target folder: the longest programs start first.
const DURATIONS: &str = "test-durations.tsv";

/// The folder with the output of each program, in the target folder.
const OUTPUTS: &str = "test-output";

/// The number of slowest programs that the summary names.
const MAX_SLOWEST: usize = 12;

/// What to run.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    /// Parts of the names of programs; without any, all programs run.
    pub(crate) names: &'a [&'a str],
    /// Packages whose tests are not run.
    pub(crate) excluded_packages: &'a [&'a str],
    /// Substrings of the names of tests that are not run.
    pub(crate) skipped_tests: &'a [&'a str],
    /// Variables of the environment for each program.
    pub(crate) environment: &'a [(&'a str, &'a Path)],
}

/// A compiled test program.
#[derive(Debug, PartialEq)]
struct TestProgram {
    /// The package and the target, such as `toolhub-cli gateway`.
    name: String,
    target: String,
    executable: PathBuf,
    manifest_folder: PathBuf,
}

/// Builds all test programs, runs them, and passes each line of their output to `listener`. All programs run even if some fail, so
/// that one run reports every failure.
pub(crate) fn run(workspace: &Workspace, selection: Selection<'_>, listener: impl FnMut(&str)) -> Result<()> {
    let mut programs = build(workspace, selection.excluded_packages)?;
    let is_selected = |test: &TestProgram| selection.names.iter().any(|name| test.name.contains(name));
    programs.retain(|test| selection.names.is_empty() || is_selected(test));
    ensure!(!programs.is_empty(), "no test program has one of these names: {}", selection.names.join(", "));
    let durations_file = workspace.target.join(DURATIONS);
    let known = read_durations(&durations_file);
    let (alone, mut together): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|test| EXCLUSIVE.contains(&test.target.as_str()));
    sort_longest_first(&mut together, &known);
    let environment = library_path()?;
    let mut report = Report { listener, durations: known, finished: Vec::new(), failed: Vec::new() };
    let outputs = workspace.target.join(OUTPUTS);
    fs::create_dir_all(&outputs)?;
    let start = |test: &TestProgram| -> Result<Output> {
        let file = outputs.join(test.name.replace(' ', "_")).with_extension("txt");
        let passed = start(test, &file, &selection, &environment)?;
        Ok(Output { text: fs::read(&file)?, passed })
    };
    run_all(together, processors(), &start, &mut report)?;
    run_all(alone, 1, &start, &mut report)?;
    write_durations(&durations_file, &report.durations)?;
    println!("\nthe slowest of {} test programs\n{}", report.finished.len(), slowest(report.finished));
    ensure!(
        report.failed.is_empty(),
        "{} test programs failed: {}",
        report.failed.len(),
        report.failed.join(", ")
    );
    Ok(())
}

impl TestProgram {
    fn package(&self) -> &str {
        self.name.split(' ').next().unwrap_or(&self.name)
    }
}

struct Output {
    /// Both streams, in the order of the writes.
    text: Vec<u8>,
    passed: bool,
}

/// The end of one program.
struct Finished {
    test: TestProgram,
    output: Result<Output>,
    duration: Duration,
}

struct Report<L> {
    listener: L,
    durations: HashMap<String, Duration>,
    finished: Vec<(String, Duration)>,
    failed: Vec<String>,
}

impl<L: FnMut(&str)> Report<L> {
    fn add(&mut self, end: Finished) -> Result<()> {
        let Finished { test, output, duration } = end;
        println!("\n     Running {} ({:.1} s)", test.name, duration.as_secs_f64());
        let output = output.with_context(|| format!("`{}` did not run", test.name))?;
        std::io::stdout().write_all(&output.text)?;
        String::from_utf8_lossy(&output.text).lines().for_each(&mut self.listener);
        if !output.passed {
            self.failed.push(test.name.clone());
        }
        self.durations.insert(test.name.clone(), duration);
        self.finished.push((test.name, duration));
        Ok(())
    }
}

/// Runs programs in the given order, at most `slots` at a time, and reports each at its end.
fn run_all<L: FnMut(&str)>(
    tests: Vec<TestProgram>,
    slots: usize,
    start: &(impl Fn(&TestProgram) -> Result<Output> + Sync),
    report: &mut Report<L>,
) -> Result<()> {
    let waiting = Mutex::new(tests.into_iter());
    let (sender, ends) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..slots {
            let (waiting, sender) = (&waiting, sender.clone());
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(test) = next else { break };
                    let started = Instant::now();
                    let output = start(&test);
                    let end = Finished { test, output, duration: started.elapsed() };
                    if sender.send(end).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        ends.into_iter().try_for_each(|end| report.add(end))
    })
}

/// Runs one program to its end, with its output in a file: a pipe would stay open as long as any process that it leaves behind.
fn start(
    test: &TestProgram,
    output_file: &Path,
    selection: &Selection<'_>,
    environment: &[(&str, String)],
) -> Result<bool> {
    let output = fs::File::create(output_file).with_context(|| output_file.display().to_string())?;
    let mut command = program(&test.executable);
    command
        .current_dir(&test.manifest_folder)
        .env("CARGO_MANIFEST_DIR", &test.manifest_folder)
        .env("CARGO_PKG_NAME", test.package())
        .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
        .envs(selection.environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    if WAITING.contains(&test.target.as_str()) {
        command.arg(format!("--test-threads={}", 2 * processors()));
    }
    for part in selection.skipped_tests {
        command.args(["--skip", part]);
    }
    let status = command.status().with_context(|| test.executable.display().to_string())?;
    Ok(status.success())
}

fn processors() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Builds the test programs; the errors of the compiler go to the terminal.
fn build(workspace: &Workspace, excluded_packages: &[&str]) -> Result<Vec<TestProgram>> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    for package in excluded_packages {
        command.args(["--exclude", package]);
    }
    let messages = run::read(command.stderr(Stdio::inherit()))?;
    let tests: Vec<TestProgram> = messages.lines().filter_map(read_message).collect();
    if tests.is_empty() {
        bail!("cargo built no test program");
    }
    Ok(tests)
}

/// The test program in a message of cargo, if it is about one.
fn read_message(line: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest_folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = package_name(message["package_id"].as_str()?);
    let target = message["target"]["name"].as_str()?;
    Some(TestProgram {
        name: format!("{package} {target}"),
        target: target.to_owned(),
        executable: message["executable"].as_str()?.into(),
        manifest_folder,
    })
}

/// The name in `path+file:///…/crates/cli#toolhub-cli@0.1.0`, or in `path+file:///…/crates/toolhub#0.1.0`.
fn package_name(id: &str) -> &str {
    let (path, fragment) = id.split_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

/// Test programs of procedural macros are linked with the shared libraries of the compiler.
fn library_path() -> Result<Vec<(&'static str, String)>> {
    let sysroot = run::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    let folder = format!("{}/lib", sysroot.trim());
    let variable = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let mut folders = vec![PathBuf::from(folder)];
    folders.extend(std::env::var_os(variable).iter().flat_map(std::env::split_paths));
    let joined = std::env::join_paths(folders)?.into_string().ok().context("a path is not UTF-8")?;
    let compiler = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    Ok(vec![(variable, joined), ("CARGO", compiler)])
}

/// Programs of unknown duration come first, in the order in which cargo named them.
fn sort_longest_first(tests: &mut [TestProgram], known: &HashMap<String, Duration>) {
    tests.sort_by_key(|test| std::cmp::Reverse(known.get(&test.name).copied().unwrap_or(Duration::MAX)));
}

fn read_durations(file: &Path) -> HashMap<String, Duration> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    rows.filter_map(|(name, millis)| Some((name.to_owned(), Duration::from_millis(millis.parse().ok()?))))
        .collect()
}

fn write_durations(file: &Path, durations: &HashMap<String, Duration>) -> Result<()> {
    let mut rows: Vec<String> =
        durations.iter().map(|(name, duration)| format!("{name}\t{}\n", duration.as_millis())).collect();
    rows.sort();
    fs::write(file, rows.concat()).with_context(|| file.display().to_string())
}

fn slowest(mut finished: Vec<(String, Duration)>) -> Table {
    finished.sort_by_key(|(_, duration)| std::cmp::Reverse(*duration));
    let mut table = Table::default();
    for (name, duration) in finished.into_iter().take(MAX_SLOWEST) {
        table.row([name, format!("{:>7.1} s", duration.as_secs_f64())]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_program(name: &str) -> TestProgram {
        let target = name.to_owned();
        TestProgram { name: name.to_owned(), target, executable: "x".into(), manifest_folder: "/".into() }
    }

    #[test]
    fn reads_test_programs_from_messages_of_cargo() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/cli#toolhub-cli@0.1.0","manifest_path":"/w/crates/cli/Cargo.toml","target":{"name":"gateway"},"profile":{"test":true},"executable":"/w/target/debug/deps/gateway-1"}"#;
        let test = read_message(line).unwrap();
        assert_eq!((test.name.as_str(), test.target.as_str()), ("toolhub-cli gateway", "gateway"));
        assert_eq!(test.manifest_folder, Path::new("/w/crates/cli"));
        assert!(read_message(&line.replace("\"test\":true", "\"test\":false")).is_none());
        assert_eq!(package_name("path+file:///w/crates/toolhub#0.1.0"), "toolhub");
    }

    #[test]
    fn starts_programs_of_unknown_duration_and_then_the_longest() {
        let mut tests = ["short", "new", "long"].map(test_program);
        let known =
            [("short", 1), ("long", 9)].map(|(name, secs)| (name.to_owned(), Duration::from_secs(secs)));
        sort_longest_first(&mut tests, &known.into());
        assert_eq!(tests.map(|test| test.name), ["new", "long", "short"]);
    }

    #[test]
    fn runs_every_program_and_names_those_that_fail() {
        let tests = ["good", "bad", "better"].map(test_program).into();
        let mut lines = Vec::new();
        let mut report = Report {
            listener: |line: &str| lines.push(line.to_owned()),
            durations: HashMap::new(),
            finished: Vec::new(),
            failed: Vec::new(),
        };
        let start = |test: &TestProgram| {
            let text = format!("test {} ... ok\n", test.name).into_bytes();
            Ok(Output { text, passed: test.name != "bad" })
        };
        run_all(tests, 2, &start, &mut report).unwrap();
        assert_eq!(report.failed, ["bad"]);
        lines.sort();
        assert_eq!(lines, ["test bad ... ok", "test better ... ok", "test good ... ok"]);
    }

    #[test]
    fn keeps_durations_for_the_next_run() {
        let file = std::env::temp_dir().join(format!("xtask-durations-{}", std::process::id()));
        let durations = HashMap::from([("a b".to_owned(), Duration::from_millis(1_500))]);
        write_durations(&file, &durations).unwrap();
        assert_eq!(read_durations(&file), durations);
        fs::remove_file(&file).unwrap();
        assert!(read_durations(&file).is_empty());
    }
}
