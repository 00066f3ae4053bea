//! The server behaves as a legacy one over HTTP: sessions, streams, and resuming them.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::json;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::{
    http_client::{Session, call, open, post, read, request},
    stdio_client::{LONG, text},
};

#[test]
fn serves_session_from_initialize_to_delete() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let server = HttpServer::start(&Script::legacy().plain_tool("echo").journal(&journal));
    let session = Session::open(&server);
    let list = session.post(&request(1, "tools/list", json!({})));
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert_eq!(list.json()["result"]["tools"][0]["name"], "echo");
    assert_eq!(text(&session.post(&call(2, "echo")).json()), r#"{"n":2}"#);
    let unknown = session.post(&request(3, "nope", json!({})));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (200, &json!(-32601)));
    let delete = read(open(&server, "DELETE /mcp", &session.headers(), "")).expect("an answer");
    assert_eq!(delete.status, 200);
    assert_eq!(session.post(&call(4, "echo")).status, 404);
    let journal = Journal::read(&journal);
    assert_eq!(journal.entries()[3]["headers"]["mcp-session-id"], session.id.as_str());
    assert_eq!(journal.events("http")[0]["verb"], "DELETE");
}

#[test]
fn rejects_invalid_legacy_requests() {
    let server = HttpServer::start(&Script::legacy().plain_tool("echo"));
    let discover =
        post(&server, &[("MCP-Protocol-Version", "2026-07-28")], &request(1, "server/discover", json!({})));
    assert_eq!((discover.status, &discover.json()["error"]["code"]), (400, &json!(-32600)));
    assert_eq!(post(&server, &[("Mcp-Session-Id", "foreign")], &call(1, "echo")).status, 404);
    let session = Session::open(&server);
    let headers = [("Mcp-Session-Id", session.id.as_str()), ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(post(&server, &headers, &call(1, "echo")).status, 400);
    let message = call(1, "echo").to_string();
    let json = ("Content-Type", "application/json");
    assert_eq!(read(open(&server, "POST /mcp", &[json], &message)).expect("an answer").status, 406);
    assert_eq!(
        read(open(&server, "POST /mcp", &[("Accept", "*/*")], &message)).expect("an answer").status,
        415
    );
    assert_eq!(read(open(&server, "GET /mcp", &session.headers(), "")).expect("an answer").status, 405);
    assert_eq!(read(open(&server, "GET /elsewhere", &[], "")).expect("an answer").status, 404);
    assert_eq!(read(open(&server, "POST /mcp", &[json], "{")).expect("an answer").status, 400);
}

#[test]
fn keeps_no_state_without_sessions() {
    let server = HttpServer::start(&Script::legacy().plain_tool("echo").set("session", false));
    let answer = post(&server, &[], &request(0, "initialize", json!({})));
    assert!(answer.header("mcp-session-id").is_none());
    assert_eq!(text(&post(&server, &[], &call(1, "echo")).json()), r#"{"n":1}"#);
}

#[test]
fn drops_sessions() {
    let script = Script::legacy().plain_tool("t").on("tools/call:t", json!([[{"drop_sessions": true}], []]));
    let server = HttpServer::start(&script);
    let (first, second) = (Session::open(&server), Session::open(&server));
    assert_eq!(first.post(&call(1, "t")).status, 200);
    assert_eq!(first.post(&call(2, "t")).status, 404);
    assert_eq!(second.post(&call(1, "t")).status, 404);
    assert_eq!(Session::open(&server).post(&call(1, "t")).status, 200);
}

#[test]
fn sends_responses_as_events() {
    let server = HttpServer::start(&Script::legacy().plain_tool("echo").set("sse", true));
    let session = Session::open(&server);
    assert_eq!(text(&session.post(&call(1, "echo")).events()[0]), r#"{"n":1}"#);
}

#[test]
fn sends_requests_to_client_on_the_stream() {
    let actions = json!([{"progress": {}}, {"request": {"method": "roots/list"}}, {"answer": true}]);
    let server = HttpServer::start(&Script::legacy().plain_tool("t").on("tools/call:t", actions));
    let session = Session::open(&server);
    let params = json!({"name": "t", "_meta": {"progressToken": 9}});
    let stream = session.start_post(&request(1, "tools/call", params));
    let mut seen = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("roots/list") {
        stream.peek(&mut seen).expect("the question comes");
        thread::sleep(Duration::from_millis(5));
    }
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}});
    assert_eq!(session.post(&answer).status, 202);
    let events = read(stream).expect("an answer").events();
    assert_eq!(events[0]["params"], json!({"progress": 1, "progressToken": 9}));
    assert_eq!((&events[1]["method"], &events[1]["id"]), (&json!("roots/list"), &json!(1)));
    assert_eq!(text(&events[2]), answer.to_string());
}

#[test]
fn resumes_stream_after_disconnect() {
    let actions = json!([
        {"notify": {"method": "one"}}, {"close": true},
        {"delay_ms": 700}, {"notify": {"method": "two"}}, {"close": true},
        {"delay_ms": 700}, {"text": "three"},
    ]);
    let script = Script::legacy().plain_tool("t").set("resumable", true).on("tools/call:t", actions);
    let server = HttpServer::start(&script);
    let session = Session::open(&server);
    let mut reply = session.post(&call(1, "t"));
    let mut events = reply.events();
    let mut cuts = 0;
    while events.last().is_none_or(|last| last.get("id").is_none()) {
        assert!(!reply.complete);
        cuts += 1;
        let text = reply.text();
        let last =
            text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned();
        let headers = [&session.headers()[..], &[("Last-Event-ID", last.as_str())]].concat();
        reply = read(open(&server, "GET /mcp", &headers, "")).expect("an answer");
        events.extend(reply.events());
    }
    assert!(reply.complete);
    assert_eq!(cuts, 2);
    assert_eq!((&events[0]["method"], &events[1]["method"]), (&json!("one"), &json!("two")));
    assert_eq!(text(&events[2]), "three");
    assert_eq!(events.len(), 3);
}

#[test]
fn closed_connection_is_logged_and_does_not_cancel() {
    let folder = tempfile::tempdir().expect("a folder");
    let (journal, count) = (folder.path().join("journal"), folder.path().join("count"));
    let script = Script::legacy()
        .plain_tool("t")
        .on("tools/call:t", json!([{"delay_ms": 1000}, {"count": count}]))
        .journal(&journal);
    let server = HttpServer::start(&script);
    let session = Session::open(&server);
    let stream = session.start_post(&call(5, "t"));
    let mut journal = Journal::read(&journal);
    journal.wait_for(|journal| journal.count_method("tools/call") == 1, LONG);
    drop(stream);
    journal.wait_for(|journal| journal.events("disconnect").len() == 1, LONG);
    assert_eq!(journal.events("disconnect")[0]["method"], "tools/call");
    assert_eq!(journal.events("disconnect")[0]["id"], 5);
    let deadline = Instant::now() + LONG;
    while fs::read_to_string(&count).unwrap_or_default().is_empty() {
        assert!(Instant::now() < deadline, "the work must go on");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn cancellation_ends_the_response() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let script =
        Script::legacy().plain_tool("t").on("tools/call:t", json!([{"delay_ms": 60_000}])).journal(&journal);
    let server = HttpServer::start(&script);
    let (session, other) = (Session::open(&server), Session::open(&server));
    let stream = session.start_post(&call(5, "t"));
    Journal::read(&journal).wait_for(|journal| journal.count_method("tools/call") == 1, LONG);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    stream.set_nonblocking(true).expect("a socket");
    assert_eq!(other.post(&cancel).status, 202);
    thread::sleep(Duration::from_millis(100));
    let peeked = stream.peek(&mut [0]).expect_err("another session's id is another request");
    assert_eq!(peeked.kind(), std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("a socket");
    assert_eq!(session.post(&cancel).status, 202);
    assert!(read(stream).is_none());
}
