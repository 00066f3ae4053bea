//! Runs the official conformance suites and reads their results for a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::peers::{node, peers};

/// The command of the suite in that version, without arguments.
#[must_use]
pub fn suite(version: &str) -> Command {
    let program =
        format!("conformance-{version}/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(node());
    command.arg(peers().join(program));
    // A clean environment: no proxy, no user's keyring.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A run of a suite against a server.
#[derive(Debug)]
pub struct ServerRun {
    /// The version of the suite.
    pub version: &'static str,
    /// The selection of scenarios, as arguments.
    pub selection: [&'static str; 2],
    /// The checks that the suite itself skips. All others pass without a warning.
    pub skipped: &'static [&'static str],
}

/// The runs that a gateway passes.
pub const SERVER_RUNS: [ServerRun; 3] = [
    ServerRun { version: "0.1.16", selection: ["--suite", "all"], skipped: &[] },
    ServerRun { version: "0.2.0-alpha.12", selection: ["--requirements", "2025-11-25"], skipped: &[] },
    ServerRun {
        version: "0.2.0-alpha.12",
        selection: ["--requirements", "2026-07-28"],
        // The suite expects these notifications on a stream that no longer carries them, and reports the check as skipped.
        skipped: &["tasks-status-notifications"],
    },
];

/// The results of a suite for a server.
#[derive(Debug, Default)]
pub struct ServerReport {
    /// The version of the suite.
    pub version: String,
    /// The selection of scenarios, as arguments.
    pub selection: Vec<String>,
    /// Whether the suite exited successfully.
    pub content: bool,
    /// Number of passed checks by scenario.
    pub by_scenario: BTreeMap<String, usize>,
    /// Ids of skipped checks.
    pub skipped: BTreeSet<String>,
    /// Failed checks and warnings, each with its scenario and the suite's details; null for an aborted scenario.
    pub wrong: Vec<(String, Value)>,
    /// The output of the suite.
    pub words: String,
}

impl ServerReport {
    /// Runs a selection of scenarios of that version against the server at a URL.
    #[must_use]
    pub fn of(url: &str, version: &str, selection: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = suite(version)
            .args(["server", "--url", url, "--output-dir"])
            .arg(folder.path())
            .args(selection)
            .output()
            .expect("the suite starts");
        let printed = [output.stdout, output.stderr].concat();
        let words = String::from_utf8_lossy(&printed).into_owned();
        let mut report = Self {
            version: version.to_owned(),
            selection: selection.iter().map(ToString::to_string).collect(),
            content: output.status.success(),
            words,
            ..Self::default()
        };
        report.read(folder.path());
        report
    }

    /// Reads the check files of the suite, which contain more than its output.
    fn read(&mut self, folder: &Path) {
        for scenario in fs::read_dir(folder).expect("the suite's own folder") {
            let scenario = scenario.expect("a scenario's folder");
            let name = scenario_of(&scenario.file_name().to_string_lossy());
            // Missing if the scenario or the suite was aborted.
            let Ok(checks) = fs::read(scenario.path().join("checks.json")) else {
                self.wrong.push((name, Value::Null));
                continue;
            };
            let checks: Vec<Value> = serde_json::from_slice(&checks).expect("a list of checks");
            let passed = self.by_scenario.entry(name.clone()).or_default();
            for check in checks {
                match check["status"].as_str() {
                    Some("SUCCESS") => *passed += 1,
                    Some("INFO") => {}
                    Some("SKIPPED") => {
                        self.skipped.insert(check["id"].as_str().unwrap_or_default().to_owned());
                    }
                    _ => self.wrong.push((name.clone(), check)),
                }
            }
        }
    }
}

/// Extracts the scenario from the name of its folder, which consists of the side, the scenario and the time:
/// `server-tools-list-2026-11-17T08-12-15-000Z`.
fn scenario_of(folder: &str) -> String {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    // The scenario ends before the first date.
    let is_date = |rest: &str| {
        let mut parts = rest.splitn(4, '-');
        let digits = |part: Option<&str>, count: usize| {
            part.is_some_and(|part| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        digits(parts.next(), 4)
            && digits(parts.next(), 2)
            && parts.next().is_some_and(|day| day.contains('T'))
    };
    let end = name.match_indices('-').find(|(at, _)| is_date(&name[at + 1..])).map(|(at, _)| at);
    name[..end.unwrap_or(name.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_scenario_from_folder_name() {
        for (folder, scenario) in [
            ("server-tools-list-2026-11-17T08-12-15-000Z", "tools-list"),
            ("server-server-initialize-2026-11-17T08-12-15-000Z", "server-initialize"),
            ("server-json-schema-2020-12-2026-11-17T08-12-15-000Z", "json-schema-2020-12"),
            ("server-elicitation-sep1034-defaults", "elicitation-sep1034-defaults"),
        ] {
            assert_eq!(scenario_of(folder), scenario);
        }
    }
}
