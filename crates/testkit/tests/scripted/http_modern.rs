//! The server behaves as a modern one over HTTP: metadata, headers that mirror it, and cancelling by closing.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::{
    http_client::{Reply, Session, open, post, read, read_until_silence, request, start_post},
    stdio_client::{LONG, text},
    stdio_modern::meta,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn with_meta(mut params: Value) -> Value {
    params["_meta"] = meta("2026-07-28");
    params
}

fn ask(server: &HttpServer, method: &str, params: Value) -> Reply {
    post(server, &[VERSION, ("Mcp-Method", method)], &request(1, method, with_meta(params)))
}

#[test]
fn serves_discover_list_and_call() {
    let server = HttpServer::start(&Script::modern().plain_tool("echo"));
    let found = ask(&server, "server/discover", json!({}));
    assert_eq!((found.status, &found.json()["result"]["resultType"]), (200, &json!("complete")));
    assert!(found.header("mcp-session-id").is_none());
    assert_eq!(ask(&server, "tools/list", json!({})).json()["result"]["cacheScope"], "public");
    let call = request(2, "tools/call", with_meta(json!({"name": "echo", "arguments": {"a": 1}})));
    let called = post(&server, &[VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")], &call);
    assert_eq!(text(&called.json()), r#"{"a":1}"#);
    let unknown = ask(&server, "ping", json!({}));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(read(open(&server, "GET /mcp", &[], "")).expect("an answer").status, 405);
    let initialize = post(&server, &[], &request(1, "initialize", json!({"protocolVersion": "2025-11-25"})));
    assert_eq!((initialize.status, &initialize.json()["error"]["code"]), (400, &json!(-32022)));
}

#[test]
fn checks_version_and_metadata() {
    let server = HttpServer::start(&Script::modern());
    let check = |version: &str, params: Value| {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list")];
        let reply = post(&server, &headers, &request(1, "tools/list", params));
        (reply.status, reply.json()["error"]["code"].as_i64().unwrap_or_default())
    };
    assert_eq!(check("2026-07-28", json!({"_meta": meta("2026-07-28")})), (200, 0));
    assert_eq!(check("1900-01-01", json!({"_meta": meta("1900-01-01")})), (400, -32022));
    assert_eq!(check("2026-07-28", json!({"_meta": meta("1900-01-01")})), (400, -32020));
    assert_eq!(check("2026-07-28", json!({})), (400, -32602));
}

#[test]
fn rejects_headers_that_contradict_the_body() {
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limits": {"type": "object", "properties": {"rows": {"type": "integer", "x-mcp-header": "Rows"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
    });
    let tool = json!({"name": "名 x", "inputSchema": {"type": "object", "properties": properties}});
    let server =
        HttpServer::start(&Script::modern().tool(tool).on("tools/call:名 x", json!([{"text": "fine"}])));
    let check = |arguments: Value, headers: &[(&str, &str)]| {
        let call = request(1, "tools/call", with_meta(json!({"name": "名 x", "arguments": arguments})));
        let reply = post(&server, &[&[VERSION][..], headers].concat(), &call);
        let code = reply.json()["error"]["code"].as_i64();
        assert_eq!(reply.status, if code.is_some() { 400 } else { 200 }, "{}", reply.text());
        code.is_none()
    };
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "=?base64?5ZCNIHg=?=");
    assert!(check(json!({}), &[method, name]));
    assert!(!check(json!({}), &[method]));
    assert!(!check(json!({}), &[name]));
    assert!(!check(json!({}), &[("Mcp-Method", "tools/list"), name]));
    assert!(!check(json!({}), &[method, ("Mcp-Name", "名 x")]));
    assert!(!check(json!({}), &[method, ("Mcp-Name", "=?base64?!?=")]));
    let region = ("mcp-param-region", "=?base64?IGV1IA==?=");
    assert!(check(json!({"region": " eu "}), &[method, name, region]));
    assert!(check(json!({"region": "eu"}), &[method, name, ("Mcp-Param-Region", "eu")]));
    assert!(!check(json!({"region": "eu"}), &[method, name, ("Mcp-Param-Region", "us")]));
    assert!(!check(json!({"region": "eu"}), &[method, name]));
    assert!(!check(json!({"region": null}), &[method, name, region]));
    assert!(check(json!({"region": null}), &[method, name]));
    let rows = json!({"limits": {"rows": 42}});
    assert!(check(rows.clone(), &[method, name, ("Mcp-Param-Rows", "42.0")]));
    assert!(!check(rows, &[method, name, ("Mcp-Param-Rows", "43")]));
    assert!(check(json!({"dry": true}), &[method, name, ("Mcp-Param-Dry", "true")]));
    assert!(!check(json!({"dry": true}), &[method, name, ("Mcp-Param-Dry", "false")]));
}

#[test]
fn serves_both_eras_on_one_endpoint() {
    let server = HttpServer::start(&Script::both().plain_tool("echo"));
    assert_eq!(
        ask(&server, "server/discover", json!({})).json()["result"]["supportedVersions"],
        json!(["2026-07-28", "2025-11-25"])
    );
    let session = Session::open(&server);
    assert!(session.post(&request(1, "tools/list", json!({}))).json()["result"].get("ttlMs").is_none());
    assert_eq!(ask(&server, "tools/list", json!({})).json()["result"]["ttlMs"], 60_000);
    assert_eq!(post(&server, &[], &request(1, "tools/list", json!({}))).status, 400);
}

#[test]
fn closing_the_response_cancels_the_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (journal, count) = (folder.path().join("journal"), folder.path().join("count"));
    let script = Script::modern()
        .plain_tool("t")
        .on("tools/call:t", json!([{"notify": {"method": "begun"}}, {"delay_ms": 1000}, {"count": count}]))
        .journal(&journal);
    let server = HttpServer::start(&script);
    let call = request(1, "tools/call", with_meta(json!({"name": "t"})));
    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    let stream = start_post(&server, &headers, &call);
    stream.peek(&mut [0]).expect("the stream has begun");
    drop(stream);
    Journal::read(&journal).wait_for(|journal| journal.events("disconnect").len() == 1, LONG);
    std::thread::sleep(Duration::from_millis(1300));
    assert!(fs::read(&count).is_err(), "the work must stop");
    assert_eq!(post(&server, &headers, &call).events()[0]["method"], "begun");
    assert_eq!(fs::read_to_string(&count).expect("counted").lines().count(), 1);
    assert_eq!(Journal::read(&journal).events("disconnect").len(), 1, "a complete answer is no disconnect");
}

#[test]
fn keeps_subscription_open() {
    let actions = json!([[{"acknowledge": true}, {"notify": {"method": "changed", "params": {"a": 1}}}, {"close": true}]]);
    let server = HttpServer::start(&Script::modern().on("subscriptions/listen", actions));
    let reply = ask(&server, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let events = reply.events();
    assert_eq!(events[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(events[1]["params"], json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 1}, "a": 1}));
    assert!(!reply.complete);
    let server = HttpServer::start(&Script::modern());
    let headers = [VERSION, ("Mcp-Method", "subscriptions/listen")];
    let stream = start_post(&server, &headers, &request(1, "subscriptions/listen", with_meta(json!({}))));
    let acknowledged =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("notifications/subscriptions/acknowledged");
    read_until_silence(stream, acknowledged);
}
