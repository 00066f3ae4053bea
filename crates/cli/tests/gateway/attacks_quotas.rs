//! Quotas count messages, whether sent singly, in a batch, over HTTP+SSE, or over several connections.

use std::time::Instant;

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::access::two_principals_with;
use crate::serving::{Serving, TEST_TIMEOUT, holding};
use crate::wire::{HttpResponse, Wire, bearer, call, chunked, request};

const RATE: usize = 10;

fn echo() -> Script {
    Script::both().plain_tool("echo")
}

fn limited(settings: &str) -> (Serving, [String; 2]) {
    two_principals_with(&echo(), settings)
}

fn ping(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn batch(count: usize) -> String {
    Value::from((0..count).map(ping).collect::<Vec<_>>()).to_string()
}

/// Starts a session in a revision with batches. Returns the headers of its requests.
fn session(wire: &mut Wire, token: &str) -> String {
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let response = retry_until_admitted(wire, &request("POST", "/mcp", &bearer(token), &hello));
    format!("{}Mcp-Session-Id: {}\r\n", bearer(token), response.header("mcp-session-id").unwrap())
}

fn retry_until_admitted(wire: &mut Wire, message: &str) -> HttpResponse {
    let since = Instant::now();
    loop {
        wire.send(message);
        let response = wire.receive();
        if response.status != 429 {
            return response;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "never let in");
    }
}

/// The maximum number of accepted messages since then, with a burst of one second at the beginning.
fn most(since: Instant) -> usize {
    RATE + (since.elapsed().as_secs_f64() * RATE as f64).ceil() as usize
}

#[test]
fn each_message_of_a_batch_counts() {
    let (serving, [ann, bob]) = limited(&format!("[serve]\nper_second = {RATE}\n"));
    let mut wire = Wire::to(&serving);
    let (since, headers) = (Instant::now(), session(&mut wire, &ann));
    let mut with_read_buffer = 1;
    for _ in 0..40 {
        wire.send(&request("POST", "/mcp", &headers, &batch(5)));
        let response = wire.receive();
        match response.status {
            200 => with_read_buffer += serde_json::from_str::<Vec<Value>>(&response.body).unwrap().len(),
            _ => {
                assert_eq!(response.status, 429, "{response:?}");
                let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=2).contains(&wait) && response.body.contains("per_second"), "{response:?}");
            }
        }
    }
    assert!(with_read_buffer <= most(since), "{with_read_buffer} in {:?}", since.elapsed());
    // A batch that exceeds the burst can never be accepted, and the error says so.
    let since = Instant::now();
    loop {
        wire.send(&request("POST", "/mcp", &headers, &batch(RATE + 1)));
        let response = wire.receive();
        assert_eq!(response.status, 429, "{response:?}");
        if response.body.contains("smaller ones") {
            break;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{response:?}");
    }
    // Another principal has its own quota.
    let mut other = Wire::to(&serving);
    let headers = session(&mut other, &bob);
    other.send(&request("POST", "/mcp", &headers, &batch(5)));
    assert_eq!(other.receive().status, 200);
}

/// The fast path and the general path, several connections, requests refused for another reason, and HTTP+SSE share one quota.
#[test]
fn all_transports_share_one_quota() {
    let (serving, [ann, bob]) = limited(&format!("[serve]\nper_second = {RATE}\n"));
    let authorization = bearer(&ann);
    let usual = call("x", &authorization);
    let ways = [
        usual.clone(),
        chunked(&usual),
        request("POST", "/mcp", &authorization, "no json"),
        request("POST", "/messages?sessionId=none", &authorization, &ping(1).to_string()),
        request("POST", "/mcp/nowhere", &authorization, &ping(1).to_string()),
        request("DELETE", "/mcp", &authorization, ""),
        request("POST", "/mcp", &authorization, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
    ];
    let mut wires: Vec<Wire> = ways.iter().map(|_| Wire::to(&serving)).collect();
    let (since, mut with_read_buffer) = (Instant::now(), 0);
    for _ in 0..20 {
        for (wire, way) in wires.iter_mut().zip(&ways) {
            wire.send(way);
            with_read_buffer += usize::from(wire.receive().status != 429);
        }
    }
    assert!(with_read_buffer <= most(since), "{with_read_buffer} in {:?}", since.elapsed());
    let mut other = Wire::to(&serving);
    other.send(&call("x", &bearer(&bob)));
    assert_eq!(other.receive().status, 200);
}

/// The start of a response event; notifications may come before it.
const ANSWER: &str = r#"data: {"jsonrpc":"2.0","id":"#;

/// A POST over HTTP+SSE is acknowledged immediately while its request runs on: it counts until the request ends.
#[test]
fn sse_requests_count_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let (serving, [ann, bob]) =
        two_principals_with(&holding(&journal).plain_tool("echo"), "[serve]\nmax_concurrent = 3\n");
    let open = |token: &str| {
        let mut stream = Wire::to(&serving);
        stream.send(&request("GET", "/sse", &bearer(token), ""));
        let endpoint = stream.event_line("data: ");
        (stream, endpoint)
    };
    let send = |token: &str, endpoint: &str, message: &Value| {
        let mut wire = Wire::to(&serving);
        wire.send(&request("POST", endpoint, &bearer(token), &message.to_string()));
        assert_eq!(wire.receive().status, 202);
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let hold = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hold", "arguments": {}}});
    let (mut stream, endpoint) = open(&ann);
    send(&ann, &endpoint, &hello);
    stream.event_line(r#"data: {"jsonrpc":"2.0","id":0"#);
    for id in 1..=6 {
        send(&ann, &endpoint, &hold(id));
    }
    for _ in 0..3 {
        let refused = stream.event_line(ANSWER);
        assert!(refused.contains("-32000") && refused.contains("max_concurrent"), "{refused}");
    }
    let held = |journal: &Journal| journal.count_method("tools/call") == 3;
    Journal::read(&journal).wait_for(held, TEST_TIMEOUT);
    // Another principal is served meanwhile, and cancelled requests release their share.
    let (mut others, elsewhere) = open(&bob);
    send(&bob, &elsewhere, &hello);
    others.event_line(r#"data: {"jsonrpc":"2.0","id":0"#);
    let echo = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
    send(&bob, &elsewhere, &echo);
    assert!(others.event_line(r#"data: {"jsonrpc":"2.0","id":9"#).contains("result"));
    drop(stream);
    let since = Instant::now();
    loop {
        let (mut stream, endpoint) = open(&ann);
        send(&ann, &endpoint, &hello);
        stream.event_line(ANSWER);
        send(&ann, &endpoint, &echo);
        if stream.event_line(ANSWER).contains("result") {
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "what was given up still counts");
    }
}

/// A stdio server has a bounded number of requests in flight. One caller that never releases its requests does not occupy them
/// all.
#[test]
fn one_caller_cannot_occupy_all_slots_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy()
        .plain_tool("hold")
        .on("tools/call:hold", json!([{"ignore": true}]))
        .plain_tool("echo")
        .journal(&journal);
    let (serving, [ann, bob]) = two_principals_with(&script, "");
    let mut stream = Wire::to(&serving);
    stream.send(&request("GET", "/sse", &bearer(&ann), ""));
    let endpoint = stream.event_line("data: ");
    let mut wire = Wire::to(&serving);
    let mut send = |message: &Value| {
        wire.send(&request("POST", &endpoint, &bearer(&ann), &message.to_string()));
        assert_eq!(wire.receive().status, 202);
    };
    send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}));
    stream.event_line(r#"data: {"jsonrpc":"2.0","id":0"#);
    let hold = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hold", "arguments": {}}});
    (1..=1024).for_each(|id| send(&hold(id)));
    Journal::read(&journal).wait_for(|journal| journal.count_method("tools/call") >= 768, TEST_TIMEOUT);
    // By now all requests are in flight that can be.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut other = Wire::to(&serving);
    let since = Instant::now();
    for _ in 0..3 {
        other.send(&call("meanwhile", &bearer(&bob)));
        assert_eq!(other.receive().text(), crate::wire::echoed("meanwhile"));
    }
    assert!(since.elapsed() < TEST_TIMEOUT / 3, "it waited for a call of the other: {:?}", since.elapsed());
}
