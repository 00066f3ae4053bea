//! How long a call waits for servers that nobody has met: not at all where they could not be asked first, a moment where
//! they could, and never twice for one that was too slow.

use std::time::{Duration, Instant};

use serde_json::json;
use toolhub::ToolCall;
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, TestHub};

/// A server that never answers.
fn hangs() -> Script {
    Script::legacy().on("*", json!([{"ignore": true}]))
}

#[tokio::test]
async fn who_comes_after_a_known_candidate_is_not_met_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let builder = TestHub::builder().server("a_good", &Script::both().plain_tool("echo"));
    let hub = builder.server("b_hangs", &hangs().journal(&journal)).build().await;
    hub.list_server("a_good").await.unwrap().unwrap();
    assert!(hub.call(ToolCall::new("echo", json!({}))).await.success());
    assert!(!journal.exists(), "nothing was started");
    hub.close().await;
}

/// One that comes before a known candidate might have the tool: it costs one call a moment, and the next ones nothing.
#[test]
fn who_comes_before_a_known_candidate_is_waited_for_a_moment() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    cli.server("a_hangs", &hangs().journal(&journal));
    cli.server("b_good", &Script::both().plain_tool("echo"));
    assert_eq!(cli.run(&["servers", "test", "b_good"]).code, Some(0));
    for _ in 0..3 {
        let started = Instant::now();
        let ran = cli.run(&["call", "echo", "n:=1"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        assert_eq!(Journal::read(&journal).events("start").len(), 1, "it is met once, and by one program");
    }
    let listed = cli.run(&["servers", "list", "--json"]).json();
    assert_eq!((&listed[0]["state"], &listed[0]["failures"]), (&json!("slow"), &json!(0)), "{listed}");
    let listed = cli.run(&["servers", "list", "--lang", "zh"]);
    assert!(listed.stdout.contains("响应慢") && listed.stdout.contains("它太慢，调用没有等它"), "{listed:?}");
}

/// Many servers need longer than that to start. They are listed while the call runs, and the next call knows them.
#[test]
fn a_slow_server_is_listed_while_the_call_runs() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let slow = Script::modern().set("start_delay_ms", 2000).plain_tool("echo");
    cli.server("a_slow", &slow.on("tools/call:echo", json!([{"text": "slow"}])));
    let good = json!([{"delay_ms": 8000}, {"text": "good"}]);
    cli.server("b_good", &Script::both().plain_tool("echo").on("tools/call:echo", good));
    assert_eq!(cli.run(&["servers", "test", "b_good"]).code, Some(0));
    let ran = cli.run(&["call", "echo", "n:=1"]);
    assert_eq!(ran.stdout, "good\n", "{ran:?}");
    let listed = cli.run(&["servers", "list", "--json"]).json();
    assert_eq!((&listed[0]["state"], &listed[0]["tools"]), (&json!("ready"), &json!(1)), "{listed}");
    let ran = cli.run(&["call", "echo", "n:=1"]);
    assert_eq!(ran.stdout, "slow\n", "it comes first: {ran:?}");
}
