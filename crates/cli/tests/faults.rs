//! Real faults, one test per class, through the public API: the hub must survive each. `docs/explanation/faults.tsv` maps
//! classes to tests.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolhub::{Outcome, ToolCall, ToolError};
use toolhub_core::Effect;
use toolhub_testkit::TestHub;
use toolhub_testkit::processes::gone_within;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

async fn call(hub: &TestHub, tool: &str) -> Outcome {
    hub.call(ToolCall::new(tool, json!({}))).await
}

/// Lists the tools of `s` first, so that a short timeout applies to the call alone.
async fn listed(hub: &TestHub) {
    hub.list_server("s").await.unwrap().unwrap();
}

fn kind(outcome: &Outcome) -> &'static str {
    outcome.result.as_ref().err().map_or("success", ToolError::kind)
}

fn lines(path: &std::path::Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A read-only tool, which may be called again.
fn read_only(name: &str) -> Value {
    json!({"name": name, "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}})
}

#[tokio::test]
async fn retries_call_of_dead_child_only_if_safe() {
    let folder = tempfile::tempdir().unwrap();
    for (definition, times) in
        [(json!({"name": "t", "inputSchema": {"type": "object"}}), 1), (read_only("t"), 3)]
    {
        let count = folder.path().join(format!("count_{times}"));
        let dies = json!([{"count": count}, {"stderr": "out of paper"}, {"exit": 7}]);
        let script = Script::legacy().tool(definition).on("tools/call:t", &dies);
        let hub = TestHub::builder().server("s", &script).build().await;
        let outcome = call(&hub, "t").await;
        let error = outcome.result.unwrap_err();
        assert!(
            error.to_string().contains("stopped during the call (exit 7)")
                && error.to_string().contains("out of paper")
        );
        assert_eq!((error.effect(), lines(&count)), (Effect::Unknown, times));
        hub.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandons_child_that_never_answers_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let hangs = Script::legacy().on("*", json!([{"spawn_child": true}, {"ignore": true}])).journal(&journal);
    let settings = "[limits]\nconnect = \"1s\"\n";
    let hub = TestHub::builder().server("s", &hangs).settings(settings).build().await;
    let started = Instant::now();
    let error = hub.list_server("s").await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no answer within 1 s while connecting"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    // The whole process group ends with the attempt, while the hub continues.
    let seen = Journal::read(&journal);
    let children = seen.events("child");
    let children = children.iter().filter_map(|one| u32::try_from(one["child"].as_u64()?).ok());
    let group: Vec<u32> = seen.pids().into_iter().chain(children).collect();
    assert!(group.len() >= 2, "{group:?}");
    for pid in group {
        assert!(gone_within(pid, Duration::from_secs(4)), "process {pid} is still there");
    }
    hub.close().await;
}

#[tokio::test]
async fn bounds_stderr_flood() {
    let flood = json!([{"flood_stderr": 30_000_000}, {"stderr": "the end"}, {"exit": 1}]);
    let hub = TestHub::builder()
        .server("s", &Script::legacy().plain_tool("t").on("tools/call:t", &flood))
        .build()
        .await;
    let outcome = call(&hub, "t").await;
    let stderr_tail = outcome.result.unwrap_err().stderr_tail().to_vec();
    assert!(
        stderr_tail.len() <= 8 && stderr_tail.iter().all(|line| line.len() <= 1200),
        "{}",
        stderr_tail.len()
    );
    assert!(stderr_tail.last().is_some_and(|line| line.ends_with("the end")), "{stderr_tail:?}");
    hub.close().await;
}

#[tokio::test]
async fn detects_child_that_stops_reading() {
    let deaf = Script::legacy()
        .plain_tool("t")
        .on("tools/call:t", json!([{"stop_reading": true}, {"ignore": true}]));
    let hub = TestHub::builder().server("s", &deaf).build().await;
    listed(&hub).await;
    assert_eq!(
        kind(&hub.call(ToolCall::new("t", json!({})).within(Duration::from_secs(1))).await),
        "timed_out"
    );
    let large = json!({"text": "x".repeat(4 << 20)});
    let started = Instant::now();
    let outcome = hub.call(ToolCall::new("t", large).within(Duration::from_secs(60))).await;
    let error = outcome.result.unwrap_err();
    assert!(error.to_string().contains("did not read its input for 30 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(45));
    hub.close().await;
}

#[tokio::test]
async fn drops_duplicate_and_unknown_responses() {
    let script = Script::legacy()
        .plain_tool("twice")
        .on("tools/call:twice", json!([{"twice": true}, {"text": "mine"}]))
        .plain_tool("foreign")
        .on("tools/call:foreign", json!([{"wrong_id": 999_999}, {"text": "not mine"}]));
    let hub = TestHub::builder().server("s", &script).build().await;
    assert_eq!(call(&hub, "twice").await.result.unwrap().texts().0, ["mine"]);
    let foreign = hub.call(ToolCall::new("foreign", json!({})).within(Duration::from_millis(500))).await;
    assert_eq!(kind(&foreign), "timed_out");
    assert_eq!(call(&hub, "twice").await.result.unwrap().texts().0, ["mine"]);
    let log = hub.events.texts().join("\n");
    assert!(log.contains("an answer to request 999999, for which no call is pending"), "{log}");
    hub.close().await;
}

#[tokio::test]
async fn slow_http_response_hits_deadline() {
    let script = Script::legacy()
        .plain_tool("headers")
        .on("tools/call:headers", json!([{"delay_ms": 60000}]))
        .plain_tool("body")
        .on("tools/call:body", json!([{"progress": {"progress": 1}}, {"delay_ms": 60000}]));
    let server = HttpServer::start(&script.set("sse", true));
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    listed(&hub).await;
    for tool in ["headers", "body"] {
        let outcome = hub.call(ToolCall::new(tool, json!({})).within(Duration::from_millis(700))).await;
        assert_eq!(
            (kind(&outcome), outcome.took < Duration::from_secs(3)),
            ("timed_out", true),
            "{tool} {outcome:?}"
        );
    }
    hub.close().await;
}

#[tokio::test]
async fn truncated_modern_stream_has_unknown_effect_unless_safe() {
    let folder = tempfile::tempdir().unwrap();
    for (definition, times) in
        [(json!({"name": "t", "inputSchema": {"type": "object"}}), 1), (read_only("t"), 3)]
    {
        let count = folder.path().join(format!("count_{times}"));
        let cut = json!([{"count": count}, {"progress": {"progress": 1}}, {"close": true}]);
        let server =
            HttpServer::start(&Script::modern().tool(definition).on("tools/call:t", &cut).set("sse", true));
        let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
        let error = call(&hub, "t").await.result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), lines(&count)),
            ("connection_failed", Effect::Unknown, times),
            "{error}"
        );
        hub.close().await;
    }
}

#[tokio::test]
async fn bounds_resumptions_of_breaking_stream() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy()
        .plain_tool("t")
        .on("tools/call:t", json!([{"progress": {"progress": 1}}, {"close": true}, {"ignore": true}]));
    let script =
        script.on("GET", json!([{"status": 503}])).set("sse", true).set("resumable", true).journal(&journal);
    let server = HttpServer::start(&script);
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    let outcome = hub.call(ToolCall::new("t", json!({})).within(Duration::from_secs(30))).await;
    assert!(!outcome.success() && outcome.took < Duration::from_secs(20), "{outcome:?}");
    hub.close().await;
    let seen = Journal::read(&journal);
    let resumed = seen.entries().iter().filter(|one| one.to_string().contains("last-event-id")).count();
    assert!((1..=6).contains(&resumed), "{resumed}: {:#?}", seen.entries());
    assert_eq!(seen.count_method("tools/call"), 1, "the call is not repeated");
}

#[tokio::test]
async fn concurrent_calls_reinitialize_expired_session_once() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, count) = (folder.path().join("journal"), folder.path().join("count"));
    let script = Script::legacy()
        .plain_tool("forget")
        .on("tools/call:forget", json!([{"drop_sessions": true}, {"text": "forgotten"}]))
        .plain_tool("t")
        .on("tools/call:t", json!([{"count": count}, {"text": "ok"}]))
        .journal(&journal);
    let server = HttpServer::start(&script);
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    assert!(call(&hub, "forget").await.success());
    let outcomes = join_all((0..20).map(|_| call(&hub, "t"))).await;
    assert!(outcomes.iter().all(Outcome::success), "{outcomes:?}");
    assert_eq!(lines(&count), 20, "each was made once");
    let greetings = Journal::read(&journal).count_method("initialize");
    assert_eq!(greetings, 2, "one session to begin with, one for all who found it gone");
    hub.close().await;
}

#[tokio::test]
async fn progress_extends_deadline() {
    for status in [429, 503] {
        let turns = json!([[{"status": status}, {"header": {"Retry-After": "2"}}], [{"text": "now"}]]);
        let server = HttpServer::start(&Script::legacy().tool(read_only("t")).on("tools/call:t", &turns));
        let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
        let outcome = call(&hub, "t").await;
        assert!(outcome.success(), "{outcome:?}");
        assert!((2..6).contains(&outcome.took.as_secs()), "{status}: {:?}", outcome.took);
        hub.close().await;
    }
}

#[tokio::test]
async fn rejects_cross_origin_redirect() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let target = HttpServer::start(&Script::legacy().plain_tool("t").journal(&journal));
    let turned = json!([{"status": 307}, {"header": {"Location": target.url}}]);
    let server = HttpServer::start(&Script::legacy().plain_tool("t").on("tools/call:t", &turned));
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    let error = call(&hub, "t").await.result.unwrap_err();
    assert_eq!(error.kind(), "http_status");
    assert!(error.to_string().contains("not followed to another origin"), "{error}");
    hub.close().await;
    let received = Journal::read(&journal);
    let received: Vec<&Value> = received.entries().iter().filter(|one| one["event"] != "start").collect();
    assert_eq!(received, Vec::<&Value>::new(), "the target receives nothing");
}

#[tokio::test]
async fn bounds_decompression_bomb() {
    let zeros =
        Command::new("sh").args(["-c", "head -c 80000000 /dev/zero | gzip -9"]).output().unwrap().stdout;
    let hex = toolhub_core::hex::encode(&zeros);
    let bomb = json!([{"header": {"Content-Encoding": "gzip"}}, {"content_type": "application/json"}, {"bytes_hex": hex}]);
    let server = HttpServer::start(&Script::legacy().plain_tool("t").on("tools/call:t", &bomb));
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    let error = call(&hub, "t").await.result.unwrap_err();
    assert!(error.to_string().contains("more than 64 MiB"), "{error}");
    hub.close().await;
}

#[tokio::test]
async fn call_cap_ends_endless_progress() {
    let for_ever = json!([{"repeat": {"times": 1000, "do": [{"progress": {}}, {"delay_ms": 100}]}}]);
    let script = Script::legacy().plain_tool("t").on("tools/call:t", &for_ever);
    let settings = "[limits]\ncall = \"1s\"\ncall_cap = \"2500ms\"\n";
    let hub = TestHub::builder().server("s", &script).settings(settings).build().await;
    let outcome = call(&hub, "t").await;
    assert_eq!(kind(&outcome), "timed_out");
    assert!((2400..4500).contains(&outcome.took.as_millis()), "{:?}", outcome.took);
    hub.close().await;
}

#[tokio::test]
async fn skips_one_invalid_tool_of_a_hundred() {
    let good = (0..99).fold(Script::legacy(), |script, n| script.plain_tool(&format!("tool_{n}")));
    let hub =
        TestHub::builder().server("s", &good.tool(json!({"name": "bad", "inputSchema": null}))).build().await;
    let list = hub.list_server("s").await.unwrap().unwrap();
    assert_eq!((list.tools.len(), list.skipped.len()), (99, 1));
    assert!(list.skipped[0].to_string().starts_with("`bad`: "), "{:?}", list.skipped);
    hub.close().await;
}

#[tokio::test]
async fn lists_ten_thousand_tools() {
    let many = (0..10_000).fold(Script::legacy(), |script, n| script.plain_tool(&format!("tool_{n}")));
    let hub = TestHub::builder().server("s", &many.set("page_size", 500)).build().await;
    let started = Instant::now();
    assert_eq!(hub.list_server("s").await.unwrap().unwrap().tools.len(), 10_000);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(call(&hub, "tool_9999").await.success());
    hub.close().await;
}

#[tokio::test]
async fn rejects_exploding_and_external_schemas() {
    let mut definitions = json!({"a0": {}});
    for n in 1..60 {
        let link = format!("#/$defs/a{}", n - 1);
        definitions[format!("a{n}")] = json!({"anyOf": [{"$ref": link}, {"allOf": [{"$ref": link}]}]});
    }
    let explosive =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a59"}}, "$defs": definitions});
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = format!("http://{}/schema.json", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let script = Script::legacy()
        .tool(json!({"name": "explosive", "inputSchema": explosive}))
        .tool(json!({"name": "remote", "inputSchema": {"type": "object", "$ref": remote}}))
        .tool(json!({"name": "file", "inputSchema": {"type": "object", "$ref": "file:///etc/hostname"}}))
        .plain_tool("plain");
    let hub = TestHub::builder().server("s", &script).build().await;
    for tool in ["remote", "file"] {
        let outcome = hub.call(ToolCall::new(tool, json!({"x": 1}))).await;
        assert_eq!(kind(&outcome), "unusable_schema", "{tool} {outcome:?}");
    }
    // Exponentially expanding references are resolved once each.
    let outcome = hub.call(ToolCall::new("explosive", json!({"x": 1}))).await;
    assert!(outcome.success() && outcome.took < Duration::from_secs(20), "{outcome:?}");
    assert!(listener.accept().is_err(), "nothing was fetched");
    assert!(call(&hub, "plain").await.success());
    hub.close().await;
}

#[tokio::test]
async fn calls_both_servers_with_equal_tool_name() {
    let named = |answer: &str| Script::legacy().plain_tool("t").on("tools/call:t", json!([{"text": answer}]));
    let hub = TestHub::builder().server("one", &named("first")).server("two", &named("second")).build().await;
    for (source, answer) in [(None, "first"), (Some("one"), "first"), (Some("two"), "second")] {
        let mut call = ToolCall::new("t", json!({}));
        call.source = source.map(str::to_owned);
        assert_eq!(hub.call(call).await.result.unwrap().texts().0, [answer]);
    }
    hub.close().await;
}

#[tokio::test]
async fn timed_out_call_was_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let script = Script::legacy()
        .plain_tool("send")
        .on("tools/call:send", json!([{"count": count}, {"delay_ms": 60000}]));
    let hub = TestHub::builder().server("s", &script).build().await;
    listed(&hub).await;
    let outcome = hub.call(ToolCall::new("send", json!({})).within(Duration::from_secs(1))).await;
    let error = outcome.result.unwrap_err();
    assert_eq!((error.kind(), error.effect(), lines(&count)), ("timed_out", Effect::Unknown, 1));
    assert!(error.to_string().contains("whether it took effect is unknown"), "{error}");
    hub.close().await;
}
