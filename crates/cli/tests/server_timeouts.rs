//! How long a call waits for servers that were never listed: not at all if they come after a known candidate, briefly if they
//! come before it, up to the connect timeout if the call needs them, and only once for one that hangs.

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
async fn does_not_contact_servers_after_a_known_candidate() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let builder = TestHub::builder().server("a_good", &Script::both().plain_tool("echo"));
    let hub = builder.server("b_hangs", &hangs().journal(&journal)).build().await;
    hub.list_server("a_good").await.unwrap().unwrap();
    assert!(hub.call(ToolCall::new("echo", json!({}))).await.success());
    assert!(!journal.exists(), "nothing was started");
    hub.close().await;
}

/// A server before a known candidate might have the tool: it delays one call briefly, and later ones not at all.
#[test]
fn waits_briefly_for_servers_before_a_known_candidate() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let journal = cli.folder().join("journal");
    cli.server("a_hangs", &hangs().journal(&journal));
    cli.server("b_good", &Script::both().plain_tool("echo"));
    assert_eq!(cli.run(&["servers", "test", "b_good"]).code, Some(0));
    for _ in 0..3 {
        let started = Instant::now();
        let ran = cli.run(&["call", "echo", "n:=1"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        assert_eq!(Journal::read(&journal).events("start").len(), 1, "it is met once, and by one program");
    }
    let listed = cli.run(&["servers", "list", "--json"]).json();
    // No call needed the server, so nothing is recorded about it.
    assert_eq!((&listed[0]["state"], &listed[0]["failures"]), (&json!("new"), &json!(0)), "{listed}");
    assert_eq!(listed[0]["error"], json!(null), "{listed}");
}

/// A call that does not need a slow server does not mention it, and does not shorten the wait of a call that needs it.
#[test]
fn call_waits_for_the_slow_server_it_needs() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.server("slow", &Script::modern().set("start_delay_ms", 7000).plain_tool("read_graph"));
    for _ in 0..2 {
        let ran = cli.run(&["call", "calculate", "expression=1+1"]);
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "2"), "{ran:?}");
    }
    assert_eq!(cli.run(&["servers", "list", "--json"]).json()[0]["state"], "new");
    let ran = cli.run(&["call", "read_graph", "n:=1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
}

/// A wait cut short by the timeout of a call is recorded as such; a later call with more time waits for the full connect
/// timeout.
#[test]
fn interrupted_wait_does_not_shorten_the_next() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.server("slow", &Script::modern().set("start_delay_ms", 7000).plain_tool("read_graph"));
    let ran = cli.run(&["call", "read_graph", "--args", "{}", "--timeout", "2s"]);
    assert!(ran.code != Some(0), "{ran:?}");
    let listed = cli.run(&["servers", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "slow", "{listed}");
    let listed = cli.run(&["servers", "list", "--lang", "zh"]);
    assert!(listed.stdout.contains("响应慢") && listed.stdout.contains("它仍未就绪"), "{listed:?}");
    let ran = cli.run(&["call", "read_graph", "n:=1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ran:?}");
}

/// A server that hung for the whole connect timeout counts as failed; the next unknown name does not wait for it again.
#[test]
fn does_not_wait_again_for_server_that_timed_out() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.server("hangs", &hangs());
    let settings = "[[servers]]\nid = \"hangs\"\nconnect_timeout = \"12s\"\n";
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    for (index, limit) in [(0, 60), (1, 9), (2, 9)] {
        let started = Instant::now();
        let ran = cli.run(&["call", "no_such_tool"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let took = started.elapsed();
        assert!(index > 0 || took >= Duration::from_secs(12), "{took:?}");
        assert!(took < Duration::from_secs(limit), "call {index}: {took:?}");
    }
}

/// Many servers need longer to start. They are listed while the call runs, and the next call uses them.
#[test]
fn lists_slow_server_while_call_runs() {
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
