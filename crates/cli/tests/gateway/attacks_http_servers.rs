//! Attacks through servers over HTTP: double execution after a status 404, messages of servers without sessions, and failures
//! that open the circuit for others.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::access::two_principals_before;
use crate::raw_client::{Era, RawClient, RawResponse};
use crate::serving::{Serving, hub};

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A call within a session runs, and then the response has status 404.
#[tokio::test]
async fn changing_call_runs_once_if_its_session_answers_404() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = json!({"error": {"code": -32000, "message": "done, but no record"}});
    let endings = [
        ("page of a proxy", vec![json!({"content_type": "text/html"}), json!({"raw": "<html>"})], "unknown"),
        ("nothing", vec![], "unknown"),
        (
            "error of nobody",
            vec![json!({"raw": r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}"#})],
            "unknown",
        ),
        ("error for the request", vec![refusal], "done, but no record"),
        ("result", vec![json!({"text": "deleted"})], "deleted"),
    ];
    for (index, (name, ending, expect)) in endings.into_iter().enumerate() {
        let count = folder.path().join(index.to_string());
        let mut actions = vec![json!({"count": count}), json!({"status": 404})];
        actions.extend(ending);
        let reads = json!({"name": "reads", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}});
        let again = json!([[{"count": count}, {"status": 404}], [{"count": count}, {"text": "read"}]]);
        let script = Script::legacy()
            .plain_tool("change")
            .on("tools/call:change", json!(actions))
            .tool(reads)
            .on("tools/call:reads", again);
        let server = HttpServer::start(&script);
        let mut cli = hub("");
        cli.entry("s", json!({"url": server.url}));
        let serving = Serving::start(cli);
        let client = RawClient::connect(&serving.url(), Era::Modern).await;
        let answer = client.call("change", "{}").await;
        assert!(format!("{answer:?}").contains(expect), "{name}: {answer:?}");
        assert_eq!(lines(&count), 1, "{name}");
        // Control: a read-only call is repeated in a new session.
        assert_eq!(client.call("reads", "{}").await.text(), "read", "{name}");
        assert_eq!(lines(&count), 3, "{name}");
    }
}

fn log() -> Value {
    json!({"method": "notifications/message", "params": {"level": "error", "data": "key-of-ann"}})
}

fn question() -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": "ann, your password?", "requestedSchema": {"type": "object", "properties": {}}}, "wait": false})
}

/// A server without sessions that sends a log message and a request on each stream some time after it was opened.
fn without_sessions() -> Script {
    let speaks = json!([{"content_type": "text/event-stream"}, {"delay_ms": 1500}, {"notify": log()},
        {"request": question()}, {"ignore": true}]);
    Script::legacy()
        .set("capabilities", json!({"tools": {}, "logging": {}}))
        .set("session", false)
        .plain_tool("slow")
        .on("tools/call:slow", json!([{"delay_ms": 2500}, {"text": "done"}]))
        .plain_tool("quick")
        .on("GET", speaks)
}

fn mentions_ann(answer: &RawResponse) -> bool {
    let methods = answer.messages.iter().filter_map(|message| message.method.as_deref());
    methods.filter(|method| ["notifications/message", "elicitation/create"].contains(method)).count() > 0
}

async fn legacy(serving: &Serving, token: &str) -> RawClient {
    RawClient::with_token(&serving.url(), Era::Legacy, Some(token)).await
}

const SLOW: &str = r#""name":"slow","arguments":{}"#;

#[tokio::test]
async fn sessionless_server_is_shared_despite_caller_instances() {
    let server = HttpServer::start(&without_sessions());
    let settings = "[[servers]]\nid = \"s\"\ninstances = \"caller\"\n";
    let (serving, [ann, bob]) = two_principals_before(json!({"url": server.url}), settings);
    let (ann, bob) = (legacy(&serving, &ann).await, legacy(&serving, &bob).await);
    let (of_ann, of_bob) = tokio::join!(ann.ask("1", "tools/call", SLOW), bob.ask("1", "tools/call", SLOW));
    for answer in [of_ann, of_bob] {
        assert!(!mentions_ann(&answer) && answer.text() == "done", "{answer:?}");
    }
}

#[tokio::test]
async fn caller_state_outlives_connections_to_sessionless_server() {
    let settings = "[[servers]]\nid = \"s\"\nidle_timeout = \"500ms\"\n";
    for same in [false, true] {
        let server = HttpServer::start(&without_sessions());
        let (serving, [ann, bob]) = two_principals_before(json!({"url": server.url}), settings);
        let first = legacy(&serving, &ann).await;
        first.call("quick", "{}").await.text();
        // The connection is closed when idle, and the next call opens another.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let next = if same { first } else { legacy(&serving, &bob).await };
        let answer = next.ask("1", "tools/call", SLOW).await;
        // Control: a single principal gets the messages, also over another connection.
        assert_eq!(mentions_ann(&answer), same, "{answer:?}");
    }
}

/// The server closes the connection for some arguments, like a crashing handler, and answers all others.
#[tokio::test]
async fn lost_calls_of_one_caller_do_not_open_the_circuit_for_others() {
    for script in [Script::legacy(), Script::modern()] {
        let script =
            script.plain_tool("bad").on("tools/call:bad", json!([{"close": true}])).plain_tool("echo");
        let server = HttpServer::start(&script);
        let (serving, [ann, bob]) = two_principals_before(json!({"url": server.url}), "");
        let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
        let bob = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
        for _ in 0..12 {
            assert!(ann.call("bad", "{}").await.result().contains("\"isError\":true"));
            assert_eq!(bob.call("echo", "{}").await.text(), "{}");
        }
        for _ in 0..12 {
            ann.call("bad", "{}").await.result();
        }
        assert_eq!(bob.call("echo", "{}").await.text(), "{}");
        // Control: the circuit of an unreachable server opens.
        drop(server);
        for _ in 0..8 {
            ann.call("echo", "{}").await.result();
        }
        let refused = bob.call("echo", "{}").await;
        assert!(refused.result().contains("times in a row"), "{refused:?}");
    }
}
