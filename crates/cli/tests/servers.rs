//! Connecting to servers of both eras over both transports through the hub, without leftover processes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use serde_json::{Value, json};
use toolhub::{ToolCall, ToolError};
use toolhub_testkit::scripted::{HttpServer, Journal, Script};
use toolhub_testkit::{CommandLine, TestHub};

fn scripts() -> [(&'static str, Script, &'static str); 3] {
    [
        ("legacy", Script::legacy(), "legacy"),
        ("modern", Script::modern(), "modern"),
        ("both", Script::both(), "modern"),
    ]
}

fn with_tools(script: Script) -> Script {
    script
        .set("page_size", 1)
        .plain_tool("echo")
        .tool(json!({"name": "区域", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}}}))
}

async fn check(hub: &TestHub, era: &str) {
    let listed = hub.list_server("s").await.unwrap().unwrap();
    assert_eq!((listed.era.as_str(), listed.tools.len()), (era, 2), "{:?}", hub.events.texts());
    for (tool, arguments) in [("echo", json!({"a": 1})), ("区域", json!({"region": "东京"}))] {
        let outcome = hub.call(ToolCall::new(tool, arguments.clone())).await;
        let output = outcome.result.unwrap_or_else(|error| panic!("{tool} {era}: {error}"));
        assert_eq!(output.texts().0, [arguments.to_string()]);
    }
}

#[tokio::test]
async fn calls_over_stdio() {
    for (name, script, era) in scripts() {
        let hub = TestHub::builder().server("s", &with_tools(script)).build().await;
        check(&hub, era).await;
        assert!(hub.events.texts().iter().any(|text| text.contains("connected to `s`")), "{name}");
        hub.close().await;
    }
}

#[tokio::test]
async fn calls_over_http_with_json_and_event_streams() {
    for sse in [false, true] {
        for (_, script, era) in scripts() {
            let server = HttpServer::start(&with_tools(script).set("sse", sse));
            let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
            check(&hub, era).await;
            hub.close().await;
        }
    }
}

/// Legacy servers may ignore unknown methods or exit; the detected era is cached, so that only the first connection is slow.
#[tokio::test]
async fn connects_to_nonconforming_legacy_servers_and_caches_era() {
    for oddity in [json!([{"ignore": true}]), json!([{"exit": 1}])] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script = Script::legacy().plain_tool("echo").on("server/discover", oddity).journal(&journal);
        let mut hub = TestHub::builder().server("s", &script).build().await;
        assert!(hub.call(ToolCall::new("echo", json!({}))).await.success());
        assert_eq!(Journal::read(&journal).count_method("server/discover"), 1);
        hub.restart().await;
        assert!(hub.call(ToolCall::new("echo", json!({}))).await.success());
        assert_eq!(Journal::read(&journal).count_method("server/discover"), 1);
        hub.close().await;
    }
}

#[tokio::test]
async fn renegotiates_with_server_that_became_modern() {
    let hub_folder = tempfile::tempdir().unwrap();
    let script = hub_folder.path().join("script.json");
    let program = toolhub_testkit::scripted::binary();
    std::fs::write(&script, Script::legacy().plain_tool("echo").json()).unwrap();
    let mut hub =
        TestHub::builder().entry("s", json!({"command": program, "args": ["stdio", script]})).build().await;
    assert!(hub.call(ToolCall::new("echo", json!({}))).await.success());
    std::fs::write(&script, Script::modern().plain_tool("echo").json()).unwrap();
    hub.restart().await;
    assert!(hub.call(ToolCall::new("echo", json!({}))).await.success(), "{:?}", hub.events.texts());
    hub.close().await;
}

#[tokio::test]
async fn skips_only_the_invalid_tool() {
    let script = Script::legacy()
        .plain_tool("good")
        .tool(json!({"name": "null_schema", "inputSchema": null}))
        .tool(json!({"name": "true_schema", "inputSchema": true}))
        .tool(json!({"description": "nameless"}))
        .tool(json!(5))
        .plain_tool("good");
    let hub = TestHub::builder().server("s", &script).build().await;
    let list = hub.list_server("s").await.unwrap().unwrap();
    assert_eq!(list.tools.len(), 1);
    let expected =
        ["`null_schema`", "`true_schema`", "a tool without a name", "a tool without a name", "`good`"];
    assert_eq!(list.skipped.len(), expected.len(), "{:?}", list.skipped);
    for (skipped, name) in list.skipped.iter().zip(expected) {
        assert!(skipped.to_string().starts_with(name), "{skipped}");
    }
    hub.close().await;
}

#[tokio::test]
async fn repeated_cursor_ends_paging() {
    let script =
        Script::legacy().plain_tool("a").plain_tool("b").set("page_size", 1).set("cursor_repeats", true);
    let hub = TestHub::builder().server("s", &script).build().await;
    let list = hub.list_server("s").await.unwrap().unwrap();
    assert!(list.skipped.iter().any(|text| text.to_string().contains("cursor that came twice")), "{list:?}");
    hub.close().await;
}

#[tokio::test]
async fn skips_and_reports_banners_on_stdout() {
    let script = Script::legacy().set("banner", json!(["Welcome!", "starting…", ""])).plain_tool("echo");
    let hub = TestHub::builder().server("s", &script).build().await;
    let outcome = hub.call(ToolCall::new("echo", json!({"n": 1}))).await;
    assert_eq!(outcome.result.unwrap().texts().0, [r#"{"n":1}"#]);
    let events = hub.events.texts().join("\n");
    assert!(events.contains("a line that is no message: Welcome!"), "{events}");
    assert!(events.contains("a line that is no message: starting…"), "{events}");
    hub.close().await;
}

#[tokio::test]
async fn handles_progress_and_server_requests() {
    let actions = json!([
        {"progress": {"progress": 1, "total": 2, "message": "half"}},
        {"request": {"method": "ping"}},
        {"request": {"method": "sampling/createMessage", "params": {}}},
        {"text": "done"},
    ]);
    for http in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script =
            Script::legacy().plain_tool("t").on("tools/call:t", &actions).set("sse", true).journal(&journal);
        let server = http.then(|| HttpServer::start(&script));
        let builder = TestHub::builder();
        let hub = match &server {
            Some(server) => builder.entry("s", json!({"url": server.url})).build().await,
            None => builder.server("s", &script).build().await,
        };
        let outcome = hub.call(ToolCall::new("t", json!({}))).await;
        assert!(outcome.success(), "{outcome:?}");
        let events = hub.events.texts();
        assert!(events.iter().any(|text| text == "progress 1/2 half"), "{events:?}");
        let answers = std::fs::read_to_string(&journal).unwrap();
        assert!(answers.contains("\"result\":{}") && answers.contains("-32601"), "{answers}");
        hub.close().await;
    }
}

#[tokio::test]
async fn reinitializes_expired_session_and_calls_once() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let script = Script::legacy()
        .plain_tool("t")
        .plain_tool("forget")
        .on("tools/call:forget", json!([{"drop_sessions": true}, {"text": "forgotten"}]))
        .on("tools/call:t", json!([{"count": count}, {"text": "ok"}]));
    let server = HttpServer::start(&script);
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    assert!(hub.call(ToolCall::new("forget", json!({}))).await.success());
    let outcome = hub.call(ToolCall::new("t", json!({}))).await;
    assert!(outcome.success(), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
    hub.close().await;
}

#[tokio::test]
async fn unreadable_response_fails_its_call_immediately() {
    let deep = format!(r#"[{{"reply":{}{}}}]"#, "[".repeat(300), "]".repeat(300));
    let cases = [
        ("endless", r#"[{"endless": 20000000}]"#),
        ("bytes", r#"[{"bytes_hex": "7b226a736f6e727063223a22322e30222c226964223a20fffe7d0a"}]"#),
        ("deep", &deep),
        ("list", r#"[{"reply": [1]}]"#),
    ];
    let script = cases.iter().fold(Script::legacy(), |script, (name, actions)| {
        let actions = serde_json::value::RawValue::from_string((*actions).to_owned()).unwrap();
        script.plain_tool(name).on(&format!("tools/call:{name}"), actions)
    });
    for (name, _) in &cases {
        let hub = TestHub::builder().server("s", &script).build().await;
        let outcome = hub.call(ToolCall::new(*name, json!({}))).await;
        assert!(matches!(outcome.result, Err(ToolError::Unreadable { .. })), "{name}: {outcome:?}");
        assert!(outcome.took.as_secs() < 15, "{name}: {outcome:?}");
        hub.close().await;
    }
}

#[tokio::test]
async fn distinguishes_http_failures() {
    let cases = [
        (json!([{"status": 500}]), "http_status"),
        (json!([{"content_type": "text/html"}, {"raw": "<html>"}]), "unreadable_answer"),
        (json!([{"raw": "not json"}]), "unreadable_answer"),
        (json!([{"close": true}]), "connection_failed"),
        (json!([{"error": {"code": -32000, "message": "no"}}]), "mcp_error"),
    ];
    for (actions, kind) in cases {
        let server = HttpServer::start(&Script::legacy().plain_tool("t").on("tools/call:t", &actions));
        let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
        let outcome = hub.call(ToolCall::new("t", json!({}))).await;
        let error = outcome.result.expect_err("a fault");
        assert_eq!(error.kind(), kind, "{actions}: {error}");
        hub.close().await;
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_connect() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let hub = TestHub::builder().server("s", &Script::both().plain_tool("t").journal(&journal)).build().await;
    hub.list_server("s").await.unwrap().unwrap();
    let calls = (0..50).map(|_| hub.call(ToolCall::new("t", json!({}))));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(outcome.success(), "{outcome:?}");
    }
    assert_eq!(Journal::read(&journal).events("start").len(), 1);
    hub.close().await;
}

#[tokio::test]
async fn child_receives_only_configured_environment() {
    let script = Script::legacy()
        .plain_tool("t")
        .on("tools/call:t", json!([{"env": ["PATH", "CARGO_PKG_NAME", "GIVEN"]}]));
    let folder = tempfile::tempdir().unwrap();
    let program = toolhub_testkit::scripted::binary();
    let entry = json!({"command": program, "args": ["stdio", script.write(folder.path())], "env": {"GIVEN": "${PATH}"}});
    let hub = TestHub::builder().entry("s", entry).build().await;
    let outcome = hub.call(ToolCall::new("t", json!({}))).await;
    let seen: Value = serde_json::from_str(&outcome.result.unwrap().texts().0[0]).unwrap();
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo sets it for tests");
    assert_eq!(seen["CARGO_PKG_NAME"], json!(null), "{seen}");
    assert_eq!(seen["GIVEN"], seen["PATH"]);
    hub.close().await;
}

#[tokio::test]
async fn adds_and_removes_native_tools_at_runtime() {
    let hub = TestHub::builder().build().await;
    assert!(!hub.call(ToolCall::new("twice", json!({"n": 2}))).await.success());
    hub.add_tool(twice);
    let outcome = hub.call(ToolCall::new("twice", json!({"n": 21}))).await;
    assert_eq!(outcome.result.unwrap().texts().0, ["42"]);
    assert!(hub.remove_tool("twice"));
    assert!(!hub.call(ToolCall::new("twice", json!({"n": 2}))).await.success());
    hub.close().await;
}

/// Doubles a number.
#[toolhub::tool(read_only)]
async fn twice(n: i64) -> i64 {
    n * 2
}

#[tokio::test]
async fn prefers_mcp_and_falls_back_to_native() {
    let tool = |hints| json!({"name": "twice", "annotations": hints, "inputSchema": {"type": "object"}});
    // Without hints the candidates run sequentially; with them both start, and one of them dies.
    let script = Script::legacy().tool(tool(json!({})));
    let dies = Script::legacy()
        .tool(tool(json!({"readOnlyHint": true})))
        .on("tools/call:twice", json!([{"exit": 1}]));
    for (script, source) in [(script, "s"), (dies, "native")] {
        let hub = TestHub::builder().server("s", &script).build().await;
        hub.add_tool(twice);
        let outcome = hub.call(ToolCall::new("twice", json!({"n": 3})).at("native")).await;
        assert_eq!(outcome.source().map(ToString::to_string).as_deref(), Some(source), "{outcome:?}");
        hub.close().await;
    }
}

/// The era of a server is cached; `servers test` detects it again.
#[test]
fn servers_test_probes_era_again() {
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.server("s", &Script::legacy().plain_tool("t"));
    let era = || cli.run(&["servers", "list", "--json"]).json()[0]["era"].clone();
    assert_eq!(cli.run(&["servers", "test", "s"]).code, Some(0));
    assert_eq!(era(), "legacy");
    // The same program now supports the modern era, like a server that had only been too slow to answer the probe.
    let config: Value =
        serde_json::from_str(&std::fs::read_to_string(cli.folder().join("mcp.json")).unwrap()).unwrap();
    let script = config["mcpServers"]["s"]["args"][1].as_str().unwrap();
    std::fs::write(script, Script::both().plain_tool("t").json()).unwrap();
    assert_eq!(cli.run(&["call", "t"]).code, Some(0));
    assert_eq!(era(), "legacy");
    assert_eq!(cli.run(&["servers", "test", "s"]).code, Some(0));
    assert_eq!(era(), "modern");
}

/// Programs that all start at once would delay each other beyond the timeout, so that only a few start concurrently; all are
/// ready in the end.
#[tokio::test]
async fn limits_concurrent_server_starts() {
    let delay = std::time::Duration::from_millis(300);
    let slow = Script::legacy().set("start_delay_ms", delay.as_millis() as u64).plain_tool("echo");
    let ids = ["a", "b", "c", "d", "e", "f"];
    let builder = ids.iter().fold(TestHub::builder(), |builder, id| builder.server(id, &slow));
    let hub = builder.settings("[limits]\nstarts = 2\nconnect = \"2s\"\n").build().await;
    let began = std::time::Instant::now();
    hub.list_missing().await;
    assert!(began.elapsed() >= delay * 3, "more than two were started at a time");
    for view in hub.servers() {
        assert!(view.list.is_some_and(|list| list.listed_at.is_some()), "{} is not ready", view.spec.id);
    }
    hub.close().await;
}

/// A ping without the modern `_meta` members would make dual-era servers treat the hub as a legacy client. A slow server is not
/// started twice.
#[tokio::test]
async fn probe_pings_only_slow_server() {
    for (delay, pings) in [(0_u64, 0), (1_500, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script = Script::both().set("start_delay_ms", delay).plain_tool("echo").journal(&journal);
        let hub = TestHub::builder().server("s", &script).build().await;
        let listed = hub.list_server("s").await.unwrap().unwrap();
        assert_eq!(listed.era, "modern");
        let seen = Journal::read(&journal);
        let sent: Vec<&Value> =
            seen.messages().into_iter().filter(|message| message["method"] == "ping").collect();
        assert_eq!(sent.len(), pings, "{sent:?}");
        for ping in sent {
            let version = &ping["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!(version, "2026-07-28", "{ping}");
        }
        assert_eq!(seen.pids().len(), 1, "it was started once");
        hub.close().await;
    }
}

/// Lines on stdout that are JSON but not JSON-RPC are treated as log output.
#[tokio::test]
async fn json_log_lines_on_stdout_fail_no_call() {
    let noise = json!([
        {"raw": r#"{"level":"info","msg":"got a call"}"#},
        {"raw": "{not json}"},
        {"raw": r#"{"error":"slow backend","id":"req-7"}"#},
        {"text": "done"},
    ]);
    for script in [Script::legacy(), Script::modern()] {
        let hub = TestHub::builder()
            .server("s", &script.plain_tool("work").on("tools/call:work", &noise))
            .build()
            .await;
        for _ in 0..6 {
            let outcome = hub.call(ToolCall::new("work", json!({}))).await;
            assert_eq!(outcome.result.unwrap().texts().0, ["done"]);
        }
        hub.close().await;
    }
}
