//! The fixture server of the official MCP conformance suite, tested directly: by the suites, and by toolhub, which checks that
//! its tools exist (some scenarios pass with a missing tool). `cargo xtask peers` installs the suites and a Node version that
//! supports them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use toolhub::{ClientHandler, HandlerAnswer, RawJson, ToolCall, ToolError};
use toolhub_core::{BoxFuture, ServerId};
use toolhub_testkit::TestHub;
use toolhub_testkit::conformance::suite::ServerReport;
use toolhub_testkit::conformance::table::{Side, compare};

const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// The server on a free port.
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

struct Run<'a> {
    version: &'a str,
    selection: &'a [&'a str],
    /// The checks that the suite itself skips. All others pass without a warning.
    skipped: &'a [&'a str],
}

/// Runs the suite; a failure prints the checks that did not pass and the output of the suite. The number of passing checks of
/// each scenario is compared with a table, so that a silently skipped one is noticed.
fn check(url: &str, run: &Run<'_>) {
    let report = ServerReport::of(url, run.version, run.selection);
    let label = format!("conformance {} {:?}", run.version, run.selection);
    assert!(report.content && report.wrong.is_empty(), "{label}: {:#?}\n{}", report.wrong, report.words);
    assert!(report.skipped.iter().eq(run.skipped), "{label}: skipped {:?}", report.skipped);
    assert_eq!(compare(&report, Side::Fixture), Ok(()), "{label}:\n{}", report.words);
}

/// Sequential: some scenarios measure time.
#[test]
fn fixture_server_conforms() {
    let server = Listening::start();
    let alpha = "0.2.0-alpha.12";
    let run = |version, selection| Run { version, selection, skipped: &[] };
    let runs = [
        run("0.1.16", &["--suite", "all"]),
        run(alpha, &["--requirements", "2025-11-25"]),
        Run {
            // The suite expects these notifications on a stream that no longer carries them, and reports the check as skipped.
            skipped: &["tasks-status-notifications"],
            ..run(alpha, &["--requirements", "2026-07-28"])
        },
        // No revision requires the skills extension, so its scenarios are selected by name.
        run(alpha, &["--scenario", "sep-2640-skills-directory"]),
        run(alpha, &["--scenario", "sep-2640-skills-enumeration"]),
        run(alpha, &["--scenario", "sep-2640-skills-manifest"]),
    ];
    for run in &runs {
        check(&server.url, run);
    }
}

/// A client with fixed answers to all requests of the server.
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

/// The result of each tool, in either era; tools that send requests get the answers of the client above.
const EXPECTED_TEXTS: [(&str, &str, &str); 12] = [
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
async fn fixture_tools_work_in_both_eras_over_stdio_and_http() {
    let server = Listening::start();
    for entry in [json!({"command": SERVER, "args": ["stdio"]}), json!({"url": server.url})] {
        for era in ["legacy", "modern"] {
            let settings = format!("[[servers]]\nid = \"s\"\nera = \"{era}\"\n");
            let builder = TestHub::builder().entry("s", entry.clone()).settings(&settings);
            let hub = builder.handler(Arc::new(Ada)).build().await;
            let listed = hub.list_server("s").await.unwrap().unwrap();
            assert_eq!(listed.era.as_str(), era);
            for (tool, arguments, expected) in EXPECTED_TEXTS {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let outcome = hub.call(ToolCall::new(tool, arguments)).await;
                let (output, failed) = match outcome.result {
                    Ok(output) => (output, false),
                    Err(ToolError::Failed { output: Some(output), .. }) => (*output, true),
                    Err(error) => panic!("{tool}, {era}: {error:?}"),
                };
                assert_eq!(output.texts().0, [expected], "{tool}, {era}");
                assert_eq!(failed, tool == "test_error_handling", "{tool}, {era}");
            }
            hub.close().await;
        }
    }
}
