//! Servers and proxies that run a call and then respond as if they had not: a call that may have an effect is sent once, and
//! its effect is reported as unknown.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolhub::ToolCall;
use toolhub_core::Effect;
use toolhub_testkit::TestHub;
use toolhub_testkit::scripted::{HttpServer, Script};

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn tool(hints: &Value) -> Value {
    json!({"name": "t", "annotations": hints, "inputSchema": {"type": "object"}})
}

fn changing() -> Value {
    tool(&json!({}))
}

/// Ways to end an exchange after the call has run.
fn endings() -> Vec<(String, Vec<Value>)> {
    let mut endings = Vec::new();
    for status in [401, 403, 404, 405, 408, 425, 429, 500, 502, 503, 504] {
        endings.push((status.to_string(), vec![json!({"status": status})]));
    }
    for status in [429, 503] {
        let later = json!({"header": {"Retry-After": "1"}});
        endings.push((format!("{status} with Retry-After"), vec![json!({"status": status}), later]));
    }
    for status in [301, 302, 303] {
        let to = json!({"header": {"Location": "/mcp"}});
        endings.push((format!("{status} to itself"), vec![json!({"status": status}), to]));
    }
    // A redirect to the same URL, in several spellings, or to nowhere.
    for status in [307, 308] {
        for location in ["/mcp", "", "?", "#again", "../mcp", "/./mcp"] {
            let to = json!({"header": {"Location": location}});
            endings
                .push((format!("{status} to itself as `{location}`"), vec![json!({"status": status}), to]));
        }
        endings.push((format!("{status} without a location"), vec![json!({"status": status})]));
    }
    // A proxy may send a JSON-RPC error.
    let error_body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"not now"}}"#;
    for status in [429, 502, 503] {
        let body = [json!({"content_type": "application/json"}), json!({"raw": error_body})];
        let ending = [json!({"status": status})].into_iter().chain(body).collect();
        endings.push((format!("{status} with an error of nobody"), ending));
    }
    endings.push(("a connection that is cut".to_owned(), vec![json!({"close": true})]));
    let begun = vec![json!({"progress": {"progress": 1}}), json!({"close": true})];
    endings.push(("a stream that is cut".to_owned(), begun));
    endings
}

/// Actions that run the call and then end the exchange in this way.
fn runs_and(count: &Path, ending: &[Value]) -> Value {
    let mut actions = vec![json!({"count": count})];
    actions.extend_from_slice(ending);
    json!(actions)
}

#[tokio::test]
async fn changing_call_runs_at_most_once_for_any_response() {
    let folder = tempfile::tempdir().unwrap();
    for (index, (name, ending)) in endings().into_iter().enumerate() {
        for (era, script) in [("legacy", Script::legacy()), ("modern", Script::modern())] {
            let count = folder.path().join(format!("{index}_{era}"));
            let script = script.set("session", false).tool(changing());
            let server = HttpServer::start(&script.on("tools/call:t", runs_and(&count, &ending)));
            // Another server with the same tool: it must not be tried either.
            let other = Script::legacy()
                .tool(changing())
                .on("tools/call:t", runs_and(&count, &[json!({"text": "ok"})]));
            let hub =
                TestHub::builder().entry("s", json!({"url": server.url})).server("z", &other).build().await;
            let outcome = hub.call(ToolCall::new("t", json!({}))).await;
            let error = outcome.result.unwrap_err();
            assert_eq!((error.effect(), lines(&count)), (Effect::Unknown, 1), "{name}, {era}: {error}");
            assert!(error.to_string().contains("unknown"), "{name}, {era}: {error}");
            hub.close().await;
        }
    }
}

#[tokio::test]
async fn retries_repeatable_call() {
    let folder = tempfile::tempdir().unwrap();
    for hints in [json!({"readOnlyHint": true}), json!({"idempotentHint": true})] {
        for status in [429, 502, 503] {
            let count = folder.path().join(format!("{status}_{}", hints.to_string().len()));
            let turns = json!([[{"count": count}, {"status": status}], [{"count": count}, {"text": "now"}]]);
            let server = HttpServer::start(&Script::legacy().tool(tool(&hints)).on("tools/call:t", turns));
            let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
            let outcome = hub.call(ToolCall::new("t", json!({})).within(Duration::from_secs(20))).await;
            assert_eq!(outcome.result.unwrap().texts().0, ["now"], "{status} {hints}");
            assert_eq!(lines(&count), 2);
            hub.close().await;
        }
    }
}

/// A message follows one redirect to another URL of the same origin, and no second one.
#[tokio::test]
async fn changing_call_follows_one_redirect_to_another_url() {
    let folder = tempfile::tempdir().unwrap();
    for status in [307, 308] {
        let redirect = |count: &Path, to: &str| json!([{"count": count}, {"status": status}, {"header": {"Location": to}}]);
        let run = async |name: &str, turns: &dyn Fn(&Path) -> Value| {
            let count = folder.path().join(format!("{status}_{name}"));
            let script = Script::legacy().tool(changing()).on("tools/call:t", turns(&count));
            let server = HttpServer::start(&script);
            let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
            let outcome = hub.call(ToolCall::new("t", json!({}))).await;
            hub.close().await;
            (outcome.result.map(|output| output.texts().0), lines(&count))
        };
        // Control: the first URL refuses, the second one runs the call.
        let moved = |count: &Path| json!([redirect(count, "/mcp?v=2"), [{"count": count}, {"text": "ok"}]]);
        let (found, sent) = run("moved", &moved).await;
        assert_eq!((found.unwrap(), sent), (vec!["ok".into()], 2), "{status}");
        let chain = |count: &Path| json!([redirect(count, "/mcp?v=2"), redirect(count, "/mcp?v=3"), redirect(count, "/mcp?v=4"), [{"text": "ok"}]]);
        let (found, sent) = run("chain", &chain).await;
        assert!(found.is_err() && sent == 2, "{status}: {found:?} {sent}");
        // There and back.
        let circle = |count: &Path| json!([redirect(count, "/mcp?v=2"), redirect(count, "/mcp")]);
        let (found, sent) = run("circle", &circle).await;
        assert!(found.is_err() && sent == 2, "{status}: {found:?} {sent}");
    }
}

/// A request whose token is refused, or that has none, is not sent a second time without another token.
#[tokio::test]
async fn refused_login_without_another_token_is_final() {
    let folder = tempfile::tempdir().unwrap();
    for (index, challenge) in [
        "Bearer",
        "Bearer error=\"invalid_token\"",
        "Basic realm=\"x\"",
        "Bearer error=\"insufficient_scope\", scope=\"a\"",
    ]
    .into_iter()
    .enumerate()
    {
        for status in [401, 403] {
            let count = folder.path().join(format!("{status}_{index}"));
            let ending = [json!({"status": status}), json!({"header": {"WWW-Authenticate": challenge}})];
            let script = Script::legacy().tool(changing()).on("tools/call:t", runs_and(&count, &ending));
            let server = HttpServer::start(&script);
            for entry in [
                json!({"url": server.url}),
                json!({"url": server.url, "headers": {"Authorization": "Bearer fixed"}}),
            ] {
                let before = lines(&count);
                let hub = TestHub::builder().entry("s", entry.clone()).build().await;
                let outcome = hub.call(ToolCall::new("t", json!({}))).await;
                assert!(outcome.result.is_err(), "{status} {challenge}");
                assert_eq!(lines(&count) - before, 1, "{status} {challenge} {entry}");
                hub.close().await;
            }
        }
    }
}

/// After a failure before sending, or a rejection defined by the protocol, the next candidate is tried.
#[tokio::test]
async fn call_that_did_not_run_falls_back_to_next_candidate() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/mcp", listener.local_addr().unwrap())
    };
    let refuses = json!([{"error": {"code": -32601, "message": "no such method"}}]);
    let refusing = HttpServer::start(&Script::legacy().tool(changing()).on("tools/call:t", refuses));
    for (index, url) in [nowhere, refusing.url.clone()].into_iter().enumerate() {
        let count = folder.path().join(format!("count_{index}"));
        let other =
            Script::legacy().tool(changing()).on("tools/call:t", runs_and(&count, &[json!({"text": "ok"})]));
        let builder = TestHub::builder().entry("s", json!({"url": url})).server("z", &other);
        let hub = builder.settings("[routing]\nequivalent = [[\"s\", \"z\"]]\n").build().await;
        let outcome = hub.call(ToolCall::new("t", json!({}))).await;
        assert_eq!(outcome.result.unwrap().texts().0, ["ok"], "{url}");
        assert_eq!(lines(&count), 1);
        hub.close().await;
    }
}
