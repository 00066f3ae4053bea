//! Runs the scenarios of `scripts/console` in a real browser: npm `playwright-core` with the Chromium of the system.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::peers::peers;
use crate::program::profile_folder;

/// The programs that are looked for on PATH, in this order. Also in `xtask/src/chromium.rs`.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs a scenario with these details. The script may send requests to the test, such as to restart the hub; `respond` handles
/// them and returns the response. Returns the findings: an empty list if everything is as expected.
///
/// # Panics
/// If there is no browser, or the script fails.
#[must_use]
pub fn run_scenario(
    scenario: &str,
    details: &Value,
    mut respond: impl FnMut(&str, &Value) -> Value,
) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/console/run.mjs");
    let mut command = Command::new("node");
    // A clean environment: no proxy.
    command.arg(script).env_clear();
    for name in ["PATH", "HOME", "TMPDIR"] {
        command.envs(env::var_os(name).map(|value| (name, value)));
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node 20 or newer is on PATH");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
    let start = json!({
        "scenario": scenario,
        "packages": peers().join("browser/node_modules"),
        "program": browser(),
        "screenshots": screenshots(),
        "details": details,
    });
    let mut findings = None;
    let sent = writeln!(stdin, "{start}");
    for line in stdout.lines().map_while(Result::ok) {
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in `{line}`"));
        if let Some(request) = message["request"].as_str() {
            let response = respond(request, &message["value"]);
            // A script that has ended is reported below.
            let _ = writeln!(stdin, "{response}");
        } else {
            findings = serde_json::from_value(message["findings"].clone()).ok();
        }
    }
    drop(stdin);
    let status = child.wait().expect("the script can be waited for");
    assert!(sent.is_ok() && status.success(), "the script of `{scenario}` ended with {status}");
    findings.expect("the script reports its findings")
}

/// The folder for the screenshots of a test run, in the folder of build output.
fn screenshots() -> PathBuf {
    let folder = profile_folder();
    folder.parent().expect("a profile's folder has a parent").join("console-screenshots")
}

fn browser() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .expect("no browser on PATH: run `cargo xtask chromium`")
}
