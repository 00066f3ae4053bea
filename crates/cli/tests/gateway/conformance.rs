//! The official conformance suites against the gateway, with a fixture server behind it that has the expected tools. The suites
//! run on a Node version that is available for x86-64 only.

#![cfg(target_arch = "x86_64")]

use serde_json::{Value, json};
use toolhub_testkit::conformance::suite::{SERVER_RUNS, ServerReport, ServerRun};
use toolhub_testkit::conformance::table::{Side, compare};

use crate::raw_client::{ERAS, RawClient};
use crate::serving::{HttpFixture, Serving, fixture, hub};

/// Exposes the tools of the fixture under their own names, and no others.
const PLAIN: &str = "[profiles.default]\nservers = [\"fixture\"]\nexpose = \"all\"\n";

/// The same, with every request read by hyper.
const WITHOUT_FAST_PATH: &str =
    "[serve]\nfast_path = false\n[profiles.default]\nservers = [\"fixture\"]\nexpose = \"all\"\n";

fn gateway(config: &str, entry: Value) -> Serving {
    let mut cli = hub(config);
    cli.entry("fixture", entry);
    Serving::start(cli)
}

/// Runs every suite against its own gateway, so that they do not affect each other; concurrently, as they mostly wait.
fn check(config: &str, entry: &Value) {
    std::thread::scope(|scope| {
        for run in &SERVER_RUNS {
            scope.spawn(move || check_run(&gateway(config, entry.clone()), run));
        }
    });
}

/// The number of passing checks of each scenario is compared with a table, which also lists that of the fixture alone.
fn check_run(serving: &Serving, run: &ServerRun) {
    let report = ServerReport::of(&serving.url(), run.version, &run.selection);
    let what = format!("conformance {} {:?}", run.version, run.selection);
    assert!(report.content && report.wrong.is_empty(), "{what}: {:#?}\n{}", report.wrong, report.words);
    assert!(report.skipped.iter().eq(run.skipped), "{what}: skipped {:?}", report.skipped);
    assert_eq!(compare(&report, Side::Gateway), Ok(()), "{what}:\n{}", report.words);
}

#[test]
fn gateway_passes_conformance_with_stdio_server() {
    check(PLAIN, &fixture());
}

#[test]
fn gateway_passes_conformance_without_fast_path() {
    check(WITHOUT_FAST_PATH, &fixture());
}

#[test]
fn gateway_passes_conformance_with_http_server() {
    // One server for all: its changes are sent to all listeners, and have no other effect.
    let server = HttpFixture::start();
    check(PLAIN, &json!({"url": server.url}));
}

/// Some scenarios pass with a missing tool.
#[tokio::test]
async fn offers_tools_required_by_conformance_suites() {
    let serving = gateway(PLAIN, fixture());
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let answer = client.call("test_simple_text", "{}").await;
        assert_eq!(answer.text(), "This is a simple text response for testing.", "{era:?}");
        let failed = client.call("test_error_handling", "{}").await;
        assert_eq!(failed.text(), "This tool intentionally returns an error for testing", "{era:?}");
    }
}
