//! Each action has its documented effect over HTTP.

use std::{
    io::{BufRead, BufReader},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::{
    http_client::{Reply, Session, call, open, post, read, read_until_silence, request},
    stdio_client::text,
};

fn server(actions: Value) -> HttpServer {
    HttpServer::start(&Script::legacy().plain_tool("t").plain_tool("echo").on("tools/call:t", actions))
}

fn called(actions: Value) -> Reply {
    let server = server(actions);
    let session = Session::open(&server);
    session.post(&call(1, "t"))
}

#[test]
fn sends_scripted_status_and_headers() {
    let busy = called(json!([{"status": 503}, {"header": {"Retry-After": "1"}}]));
    assert_eq!((busy.status, busy.body.len(), busy.header("retry-after")), (503, 0, Some("1")));
    assert!(busy.complete);
    let created = called(json!([{"status": 201}]));
    assert_eq!((created.status, text(&created.json())), (201, r#"{"n":1}"#));
    let error = called(
        json!([{"status": 401}, {"header": {"WWW-Authenticate": "Bearer"}}, {"error": {"code": -1, "message": "m"}}]),
    );
    assert_eq!((error.status, &error.json()["error"]["code"]), (401, &json!(-1)));
}

#[test]
fn sends_bodies_that_are_not_messages() {
    let page = called(json!([{"content_type": "text/html"}, {"raw": "<h1>hi</h1>"}]));
    assert_eq!((page.header("content-type"), page.text().as_str()), (Some("text/html"), "<h1>hi</h1>"));
    assert_eq!(called(json!([{"bytes_hex": "fffe"}])).body, b"\xff\xfe");
    let empty = called(json!([{"raw": ""}]));
    assert_eq!((empty.status, empty.body.len()), (200, 0));
}

#[test]
fn sends_events_for_event_stream_content_type() {
    let reply = called(json!([{"content_type": "text/event-stream"}, {"raw": ": hello\n\n"}, {"text": "x"}]));
    assert!(reply.text().starts_with(": hello\n\n"));
    assert_eq!(text(&reply.events()[0]), "x");
}

#[test]
fn aborts_connections() {
    let server = server(json!([
        [{"close": true}],
        [{"raw": "{\"jsonrpc\":"}, {"close": true}],
        [{"notify": {"method": "n"}}, {"close": true}],
    ]));
    let session = Session::open(&server);
    assert!(read(session.start_post(&call(1, "t"))).is_none(), "no head");
    let half = session.post(&call(2, "t"));
    assert_eq!((half.text().as_str(), half.complete), ("{\"jsonrpc\":", false));
    let stream = session.post(&call(3, "t"));
    assert_eq!((stream.events().len(), stream.complete), (1, false));
}

#[test]
fn streams_endless_body() {
    for sse in [false, true] {
        let script = Script::legacy()
            .plain_tool("t")
            .set("sse", sse)
            .on("tools/call:t", json!([{"endless": 300_000}]));
        let server = HttpServer::start(&script);
        let session = Session::open(&server);
        let stream = session.start_post(&call(1, "t"));
        let bytes = read_until_silence(stream, |bytes| bytes.len() > 300_000);
        assert!(bytes.len() < 302_000, "{}", bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(r#"{"jsonrpc":"2.0","id":1,"result""#));
        assert_eq!(text.contains("data: "), sse);
    }
}

#[test]
fn sends_duplicate_replies_and_wrong_ids() {
    let server = server(json!([[{"twice": true}, {"text": "x"}], [{"wrong_id": true}]]));
    let session = Session::open(&server);
    let twice = session.post(&call(1, "t")).text();
    assert_eq!(twice.matches(r#""id":1"#).count(), 2);
    assert_eq!(session.post(&call(2, "t")).json()["id"], 987_654_321);
}

#[test]
fn slow_call_does_not_block_others() {
    let server = server(json!([[{"ignore": true}], [{"delay_ms": 200}, {"text": "slow"}]]));
    let session = Session::open(&server);
    let _unanswered = session.start_post(&call(1, "t"));
    assert_eq!(text(&session.post(&call(2, "echo")).json()), r#"{"n":2}"#);
    let start = Instant::now();
    assert_eq!(text(&session.post(&call(3, "t")).json()), "slow");
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn sends_head_before_slow_body() {
    let server = server(json!([{"raw": "{"}, {"ignore": true}]));
    let session = Session::open(&server);
    let mut stream = BufReader::new(session.start_post(&call(1, "t")));
    let mut line = String::new();
    stream.read_line(&mut line).expect("a status line");
    assert!(line.starts_with("HTTP/1.1 200"));
}

#[test]
fn overrides_initialize_get_and_other_paths() {
    let script = Script::legacy()
        .on("initialize", json!([[{"status": 401}], []]))
        .on("GET", json!([{"notify": {"method": "notifications/tools/list_changed"}}]))
        .on("GET /.well-known/x", json!([{"content_type": "application/json"}, {"raw": "{\"x\":1}"}]))
        .on("POST /moved", json!([{"status": 307}, {"header": {"Location": "/mcp"}}]));
    let server = HttpServer::start(&script);
    assert_eq!(post(&server, &[], &request(0, "initialize", json!({}))).status, 401);
    let session = Session::open(&server);
    let stream = read(open(&server, "GET /mcp", &session.headers(), "")).expect("an answer");
    assert_eq!(stream.events()[0]["method"], "notifications/tools/list_changed");
    assert_eq!(
        read(open(&server, "GET /.well-known/x", &[], "")).expect("an answer").json(),
        json!({"x": 1})
    );
    let moved = read(open(&server, "POST /moved", &[], "")).expect("an answer");
    assert_eq!((moved.status, moved.header("location")), (307, Some("/mcp")));
}

#[test]
fn exits_during_response() {
    let mut server = server(json!([{"raw": "{"}, {"delay_ms": 50}, {"exit": 3}]));
    let session = Session::open(&server);
    let reply = session.post(&call(1, "t"));
    assert_eq!((reply.text().as_str(), reply.complete), ("{", false));
    server.kill();
}

#[test]
fn restarts_on_the_same_port() {
    let script = Script::legacy().plain_tool("echo");
    let mut first = HttpServer::start(&script);
    let port = first.port();
    first.kill();
    thread::sleep(Duration::from_millis(50));
    let second = HttpServer::start_on(&script, port);
    assert_eq!(second.url, first.url);
    Session::open(&second);
}
