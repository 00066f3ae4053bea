//! Each action has its documented effect over stdio.

use std::{fs, time::Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::stdio_client::{Client, LONG, text};

fn opened(actions: Value) -> Client {
    Client::open(&Script::legacy().plain_tool("t").plain_tool("echo").on("tools/call:t", actions))
}

fn called(actions: Value) -> Value {
    let mut client = opened(actions);
    client.call(1, "t");
    client.message()
}

#[test]
fn sends_scripted_replies() {
    assert_eq!(called(json!([{"reply": {"x": [1]}}]))["result"], json!({"x": [1]}));
    assert_eq!(
        called(json!([{"text": "hi"}]))["result"],
        json!({"content": [{"type": "text", "text": "hi"}], "isError": false})
    );
    assert_eq!(called(json!([{"tool_error": "no"}]))["result"]["isError"], true);
    let error = json!({"code": -1, "message": "m", "data": {"d": 1}});
    assert_eq!(called(json!([{"error": error}]))["error"], error);
    assert_eq!(text(&called(json!([]))), r#"{"n":1}"#, "an empty list is the default");
}

#[test]
fn uses_action_lists_in_order() {
    let mut client = opened(json!([[{"text": "one"}], [{"text": "two"}]]));
    for expected in ["one", "two", "two"] {
        client.call(1, "t");
        assert_eq!(text(&client.message()), expected);
    }
}

#[test]
fn delay_blocks_neither_other_requests_nor_the_default_reply() {
    let mut client = opened(json!([{"delay_ms": 400}]));
    let start = Instant::now();
    client.call(1, "t");
    client.call(2, "echo");
    assert_eq!(client.message()["id"], 2);
    assert_eq!(client.message()["id"], 1);
    assert!(start.elapsed().as_millis() >= 400);
}

#[test]
fn answers_shuffled_requests_in_seed_order() {
    let order = |seed: u64| -> Vec<i64> {
        let mut client = opened(json!([{"shuffle": {"of": 50, "seed": seed}}]));
        (1..50).for_each(|id| client.call(id, "t"));
        client.expect_silence();
        client.call(50, "t");
        (0..50).map(|_| client.message()["id"].as_i64().unwrap()).collect()
    };
    let (one, other) = (order(1), order(2));
    assert_eq!(one, order(1), "a seed can be played again");
    assert_ne!(one, other);
    for mut ids in [one, other] {
        assert!(!ids.is_sorted(), "{ids:?}");
        ids.sort_unstable();
        assert_eq!(ids, (1..=50).collect::<Vec<_>>(), "each once");
    }
}

#[test]
fn sends_default_reply_between_actions() {
    let mut client = opened(json!([{"default": true}, {"notify": {"method": "after"}}]));
    client.call(1, "t");
    assert_eq!(text(&client.message()), r#"{"n":1}"#);
    assert_eq!(client.message(), json!({"jsonrpc": "2.0", "method": "after"}));
    client.expect_silence();
}

#[test]
fn sends_bytes_that_are_not_messages() {
    let mut client = opened(json!([{"raw": "not json"}, {"bytes_hex": "ff fe 0a"}]));
    client.call(1, "t");
    assert_eq!(client.bytes(12), b"not json\n\xff\xfe\n");
    client.expect_silence();
}

#[test]
fn streams_endless_line() {
    let mut client = opened(json!([{"endless": 3_000_000}]));
    client.call(1, "t");
    let bytes = client.bytes(3_000_000);
    assert!(bytes.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aaa"#));
    assert!(bytes.ends_with(b"aaaa"));
    client.call(2, "echo");
    client.expect_silence();
}

#[test]
fn sends_duplicate_replies_and_wrong_ids() {
    let mut client =
        opened(json!([[{"twice": true}], [{"wrong_id": true}, {"text": "a"}], [{"wrong_id": "x"}]]));
    client.call(1, "t");
    assert_eq!(client.message(), client.message());
    client.call(2, "t");
    assert_eq!(client.message()["id"], 987_654_321);
    client.call(3, "t");
    assert_eq!(client.message()["id"], "x");
    client.expect_silence();
}

#[test]
fn leaves_request_unanswered() {
    let mut client = opened(json!([{"ignore": true}, {"text": "never"}]));
    client.call(1, "t");
    client.expect_silence();
    client.call(2, "echo");
    assert_eq!(client.message()["id"], 2);
}

#[test]
fn overrides_only_opening_methods_before_the_handshake() {
    let script = Script::legacy()
        .plain_tool("t")
        .on("server/discover", json!([{"error": {"code": -32601, "message": "what?"}}]))
        .on("initialize", json!([[{"error": {"code": -1, "message": "busy"}}], []]))
        .on("tools/call:t", json!([{"text": "on"}]));
    let mut client = Client::start(&script);
    assert_eq!(client.ask(json!(1), "server/discover", json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask(json!(2), "tools/call", json!({"name": "t"}))["error"]["code"], -32602);
    assert_eq!(client.ask(json!(3), "initialize", json!({}))["error"]["message"], "busy");
    client.handshake();
    assert_eq!(text(&client.ask(json!(4), "tools/call", json!({"name": "t"}))), "on");
}

#[test]
fn wildcard_matches_remaining_tools() {
    let script = Script::legacy().on("*", json!([{"ignore": true}])).on("ping", json!([{"reply": {"p": 1}}]));
    let mut client = Client::start(&script);
    client.request(json!(1), "initialize", json!({}));
    assert_eq!(client.ask(json!(2), "ping", json!({}))["result"], json!({"p": 1}));
    client.expect_silence();
}

#[test]
fn sends_notifications_progress_and_repeats() {
    let mut client = opened(json!([
        {"notify": {"method": "notifications/message", "params": {"level": "info"}}},
        {"progress": {"progress": 5, "total": 10, "message": "half"}},
        {"repeat": {"times": 2, "do": [{"progress": {}}]}},
        {"text": "done"},
    ]));
    client.request(json!(1), "tools/call", json!({"name": "t", "_meta": {"progressToken": "tok"}}));
    assert_eq!(client.message()["params"], json!({"level": "info"}));
    let progress = client.message();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(
        progress["params"],
        json!({"progressToken": "tok", "progress": 5, "total": 10, "message": "half"})
    );
    assert_eq!(client.message()["params"]["progress"], 2);
    assert_eq!(client.message()["params"]["progress"], 3);
    assert_eq!(text(&client.message()), "done");
    client.call(2, "t");
    assert_eq!(client.message()["method"], "notifications/message");
    assert_eq!(text(&client.message()), "done", "no token, no progress");
}

#[test]
fn sends_requests_to_client() {
    let ask = json!({"request": {"method": "roots/list", "params": {"q": 1}}});
    let mut client =
        opened(json!([[ask, {"answer": true}], [{"request": {"method": "ping", "wait": false}}]]));
    client.call(1, "t");
    let question = client.message();
    assert_eq!((&question["method"], &question["params"]), (&json!("roots/list"), &json!({"q": 1})));
    client.expect_silence();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    client.send(&answer);
    assert_eq!(text(&client.message()), answer.to_string());
    assert!(client.journal().messages().contains(&&answer));
    client.call(2, "t");
    assert_eq!(client.message()["method"], "ping");
    assert_eq!(client.message()["id"], 2);
}

#[test]
fn runs_actions_for_notifications() {
    let hello = json!([{"notify": {"method": "notifications/tools/list_changed"}}, {"text": "no one asked"}]);
    let mut client = Client::open(&Script::legacy().on("notifications/initialized", hello));
    assert_eq!(client.message()["method"], "notifications/tools/list_changed");
    client.expect_silence();
}

#[test]
fn stops_cancelled_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let mut client = opened(json!([{"delay_ms": 1000}, {"count": count}, {"text": "late"}]));
    client.call(1, "t");
    client.call(2, "t");
    let params = json!({"requestId": 1, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    assert_eq!(client.message()["id"], 2);
    client.expect_silence();
    let counted = fs::read_to_string(&count).expect("counted");
    assert_eq!(counted.lines().count(), 1);
    assert_eq!(serde_json::from_str::<Value>(&counted).expect("a line of JSON")["id"], 2);
    client.journal().wait_for(|journal| journal.count_method("notifications/cancelled") == 1, LONG);
}

#[test]
fn writes_lines_and_floods_to_stderr() {
    let script = Script::legacy().set("stderr", ["first", "second"]).plain_tool("t").on(
        "tools/call:t",
        json!([[{"stderr": "note"}, {"text": "a"}], [{"flood_stderr": 1_000_000}, {"text": "b"}]]),
    );
    let mut client = Client::open(&script);
    assert_eq!(client.stderr(13), "first\nsecond\n");
    client.call(1, "t");
    assert_eq!(text(&client.message()), "a");
    assert_eq!(client.stderr(5), "note\n");
    client.call(2, "t");
    assert_eq!(client.stderr(1_000_000).len(), 1_000_000);
    assert_eq!(text(&client.message()), "b");
}

#[test]
fn writes_banner_after_start_delay() {
    let start = Instant::now();
    let mut client =
        Client::start(&Script::legacy().set("banner", ["Welcome", "{}"]).set("start_delay_ms", 300));
    assert_eq!((client.line().as_str(), client.line().as_str()), ("Welcome", "{}"));
    assert!(start.elapsed().as_millis() >= 300);
    client.handshake();
}

#[test]
fn returns_environment_variables() {
    let script =
        Script::legacy().plain_tool("t").on("tools/call:t", json!([{"env": ["SCRIPTED_A", "SCRIPTED_B"]}]));
    let mut client = Client::start_with(&script, |command| {
        command.env("SCRIPTED_A", "x").env_remove("SCRIPTED_B");
    });
    client.handshake();
    client.call(1, "t");
    assert_eq!(text(&client.message()), r#"{"SCRIPTED_A":"x","SCRIPTED_B":null}"#);
}
