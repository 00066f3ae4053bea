//! Runs other programs, with errors that name the program and the cause.
use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, ErrorKind},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::workspace::Workspace;

/// Prefixes of the environment variables in which `cargo run` describes xtask. If a cargo started by xtask inherited them,
/// build scripts that watch them would rerun on every switch between the two.
const FROM_OUTER_CARGO: &[&str] = &["CARGO_MANIFEST_", "CARGO_PKG_"];

pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|key| FROM_OUTER_CARGO.iter().any(|prefix| key.starts_with(prefix))) {
            command.env_remove(key);
        }
    }
    command
}

pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
    command
}

/// Runs a command to its end, with the output on this terminal.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if !status.success() {
        bail!("`{}` failed ({status})", display(command));
    }
    Ok(())
}

/// Delays before the retries of a failed download.
const BETWEEN_DOWNLOADS: &[Duration] =
    &[Duration::from_secs(5), Duration::from_secs(20), Duration::from_mins(1)];

/// Runs a command that downloads from a registry. Retries it after a failure, so that it must be idempotent.
pub(crate) fn download(command: &mut Command) -> Result<()> {
    run_with_retries(command, BETWEEN_DOWNLOADS)
}

fn run_with_retries(command: &mut Command, pauses: &[Duration]) -> Result<()> {
    for pause in pauses {
        let status = command.status().map_err(|error| not_started(command, &error))?;
        if status.success() {
            return Ok(());
        }
        eprintln!("`{}` failed ({status}); again in {} s", display(command), pause.as_secs());
        thread::sleep(*pause);
    }
    check(command)
}

/// Runs a command to its end, with the output on this terminal, and passes every line of stdout to a callback.
pub(crate) fn run_with_listener(command: &mut Command, mut listener: impl FnMut(&str)) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.context("a line of its output cannot be read")?;
        println!("{line}");
        listener(&line);
    }
    let status = child.wait().context("its end cannot be waited for")?;
    if !status.success() {
        bail!("`{}` failed ({status})", display(command));
    }
    Ok(())
}

/// Runs a command to its end and returns stdout. If it fails, the error contains stderr.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({})\n{}", display(command), output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", display(command)))
}

#[derive(Clone, Copy)]
pub(crate) enum Profile {
    Debug,
    /// The release profile with default features, as users build it.
    Release,
    /// The profile of the packages, so that benchmarks measure the distributed program.
    Dist,
}

/// Features of `toolhub-cli` in packages.
pub(crate) const PACKAGED_FEATURES: &str = "full";

/// Selects the whole workspace and an example with development dependencies, so that dependencies get the same features as in
/// `cargo test --workspace`. With other features they and all workspace crates would be compiled a second time.
const SHARED_WITH_TESTS: &[&str] = &["--workspace", "--example", "make_dictionary"];

/// Builds one program of the workspace and returns its path. Cargo reports the path, so that it is right for every cargo
/// configuration of the user.
pub(crate) fn build(workspace: &Workspace, package: &str, binary: &str, profile: Profile) -> Result<PathBuf> {
    let mut command = cargo(&workspace.root);
    command.args(["build", "--message-format=json-render-diagnostics", "--bin", binary]);
    match profile {
        Profile::Debug => command.arg("--quiet").args(SHARED_WITH_TESTS),
        Profile::Release => command.args(["--release", "--package", package]),
        Profile::Dist => command.args(["--profile", "dist", "--package", package]),
    };
    if matches!(profile, Profile::Dist) && package == "toolhub-cli" {
        command.args(["--features", PACKAGED_FEATURES]);
    }
    // Diagnostics of the compiler go directly to the terminal.
    command.stderr(Stdio::inherit());
    read(&mut command)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == binary)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| anyhow!("cargo built no program `{binary}` of `{package}`"))
}

fn display(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn not_started(command: &Command, error: &std::io::Error) -> anyhow::Error {
    let name = command.get_program().to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound => anyhow!("`{name}` was not found: install it, or put it on PATH"),
        _ => anyhow!("`{name}` did not start: {error}"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A command that appends a line to a file on each run, and succeeds once the file has `lines` lines.
    fn succeeds_at(lines: usize, name: &str) -> (Command, PathBuf) {
        let file = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::remove_file(&file).ok();
        let mut shell = program("sh");
        shell.arg("-c").arg(format!("echo >>\"$0\"; test $(wc -l <\"$0\") -ge {lines}")).arg(&file);
        (shell, file)
    }

    #[test]
    fn retries_failed_download_up_to_limit() {
        for (name, lines, succeeds, ran) in
            [("first", 1, true, 1), ("third", 3, true, 3), ("never", 9, false, 3)]
        {
            let (mut command, file) = succeeds_at(lines, name);
            assert_eq!(run_with_retries(&mut command, &[Duration::ZERO; 2]).is_ok(), succeeds, "{name}");
            assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), ran, "{name}");
            std::fs::remove_file(file).unwrap();
        }
        assert!(
            run_with_retries(&mut program("no-such-program"), &[Duration::from_mins(1)]).is_err(),
            "at once"
        );
    }
}
