//! Ordinary messages (fast path) and everything else that HTTP allows (general path) over one connection, in any order and
//! split at any position.

use std::net::Shutdown;
use std::time::Duration;

use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::access::two_principals_with;
use crate::serving::Serving;
use crate::wire::{Wire, call, chunked, echoed, message, meta};

fn serving() -> Serving {
    Serving::before(&Script::both().plain_tool("echo"), "")
}

/// One connection serves both paths in any order.
#[test]
fn falls_back_from_fast_path_for_unusual_requests() {
    let serving = serving();
    let unusual = [
        chunked(&call("chunked", "")),
        call("from a page", "Origin: http://localhost\r\n"),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n".to_owned(),
        call("absolute", "").replace("POST /mcp ", "POST http://localhost/mcp "),
        call("slash", "").replace("POST /mcp ", "POST /mcp/ "),
        call("large", &format!("X-Large: {}\r\n", "x".repeat(30_000))),
        call("many", &(0..60).map(|number| format!("X-{number}: x\r\n")).collect::<String>()),
        call(&"long".repeat(40_000), ""),
    ];
    for other in &unusual {
        let mut wire = Wire::to(&serving);
        for turn in ["one", "two"] {
            wire.send(&call(turn, ""));
            assert_eq!(wire.receive().text(), echoed(turn));
        }
        wire.send(other);
        let response = wire.receive();
        assert!((200..300).contains(&response.status), "{other}: {response:?}");
        assert_eq!(
            response.header("access-control-allow-origin").is_some(),
            other.contains("Origin"),
            "{response:?}"
        );
        wire.send(&call("three", ""));
        assert_eq!(wire.receive().text(), echoed("three"), "after {other}");
    }
    for refused in [
        call("evil", "").replace("Host: localhost", "Host: evil.example"),
        call("no such profile", "").replace("/mcp", "/mcp/nothing"),
        call("no kind", "").replace("Content-Type", "X-Type"),
        call("twice", "Content-Length: 1\r\n"),
        call("bad", "no header\r\n"),
    ] {
        let mut wire = Wire::to(&serving);
        wire.send(&call("one", ""));
        assert_eq!(wire.receive().text(), echoed("one"));
        wire.send(&refused);
        assert!((400..500).contains(&wire.receive().status), "{refused}");
    }
}

#[test]
fn heads_above_the_limits_are_refused() {
    let serving = serving();
    let of_size = |bytes: usize| call("head", &format!("X-Large: {}\r\n", "x".repeat(bytes)));
    let of_lines = |count: usize| {
        call("head", &(0..count).map(|number| format!("X-{number}: x\r\n")).collect::<String>())
    };
    // A buffer of 64 KiB, which is read once more before it counts as full, and 100 lines.
    for (head, status) in
        [(of_size(60_000), 200), (of_size(140_000), 431), (of_lines(80), 200), (of_lines(110), 431)]
    {
        let mut wire = Wire::to(&serving);
        wire.send(&head);
        assert_eq!(wire.receive().status, status, "{} bytes", head.len());
    }
}

#[test]
fn accepts_fragmented_and_pipelined_requests() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    // Split into two writes at every tenth byte, so that all kinds of prefixes occur.
    let message = call("in pieces", "");
    for split in (1..message.len()).step_by(10) {
        wire.send(&message[..split]);
        std::thread::sleep(Duration::from_millis(5));
        wire.send(&message[split..]);
        assert_eq!(wire.receive().text(), echoed("in pieces"), "{split}");
    }
    let several: String = (0..20).map(|turn| call(&turn.to_string(), "")).collect();
    wire.send(&several);
    for turn in 0..20 {
        assert_eq!(wire.receive().text(), echoed(&turn.to_string()));
    }
    // Ordinary, chunked and ordinary messages, all sent before a response is read.
    wire.send(&[call("a", ""), chunked(&call("b", "")), call("c", "")].concat());
    for turn in ["a", "b", "c"] {
        assert_eq!(wire.receive().text(), echoed(turn));
    }
}

/// A repeated, byte-identical head is authorized from the cache. A different head on the same connection is authorized anew,
/// even if it arrives before the body.
#[test]
fn authorizes_each_request_of_a_connection() {
    let (serving, [ann, bob]) = two_principals_with(&Script::both().plain_tool("echo"), "");
    let shows = |token: &str, turn: &str| call(turn, &format!("Authorization: Bearer {token}\r\n"));
    let mut wire = Wire::to(&serving);
    for token in [&ann, &ann, &bob, &bob, &ann] {
        wire.send(&shows(token, "known"));
        assert_eq!(wire.receive().text(), echoed("known"));
    }
    let unauthorized = shows(&"x".repeat(ann.len()), "unknown");
    let end = unauthorized.find("\r\n\r\n").unwrap() + 4;
    for _ in 0..2 {
        wire.send(&unauthorized[..end]);
        std::thread::sleep(Duration::from_millis(50));
        wire.send(&unauthorized[end..]);
        assert_eq!(wire.receive().status, 401);
    }
    wire.send(&shows(&ann, "again"));
    assert_eq!(wire.receive().text(), echoed("again"));
}

#[test]
fn sends_complete_responses_of_any_length() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    for length in [0, 1, 1_000, 15_000, 16_384, 17_000, 60_000] {
        let long = "长x".repeat(length / 4);
        wire.send(&call(&long, ""));
        let response = wire.receive();
        assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
        assert!(response.header("date").is_some_and(|date| date.ends_with(" GMT")), "{:?}", response.headers);
        assert_eq!(response.text(), echoed(&long), "{length}");
    }
}

#[test]
fn closes_connection_on_request_or_eof() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    wire.send(&call("last", "Connection: close\r\n"));
    assert_eq!(wire.receive().text(), echoed("last"));
    assert!(wire.is_over());
    let mut wire = Wire::to(&serving);
    wire.send(&call("one", ""));
    assert_eq!(wire.receive().text(), echoed("one"));
    wire.send("POST /mcp HTTP/1.1\r\nHost: loc");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(wire.is_over());
}

/// Progress turns a response into a stream; the next message on the same connection is still answered.
#[test]
fn serves_next_request_after_stream() {
    let slow = json!([{"progress": {"progress": 1}}, {"delay_ms": 50}, {"text": "counted"}]);
    let script = Script::both().plain_tool("count").on("tools/call:count", slow).plain_tool("echo");
    let serving = Serving::before(&script, "");
    let mut wire = Wire::to(&serving);
    for turn in ["one", "two"] {
        let mut meta = meta();
        meta["progressToken"] = json!("p");
        wire.send(&message("count", &json!({"name": "count", "arguments": {}, "_meta": meta}), ""));
        let response = wire.receive();
        assert_eq!(response.header("content-type"), Some("text/event-stream"), "{response:?}");
        let (before, after) =
            response.body.split_once("notifications/progress").unwrap_or_else(|| panic!("{response:?}"));
        assert!(!before.contains("counted") && after.contains("counted"), "{response:?}");
        wire.send(&call(turn, ""));
        assert_eq!(wire.receive().text(), echoed(turn));
    }
}

/// A request that is refused before its body has arrived gets the reason, and the next message is still processed.
#[test]
fn drains_body_before_rejection() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "[serve]\nper_second = 1\n");
    let mut wire = Wire::to(&serving);
    let message = call("again", "");
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let mut refused = 0;
    for _ in 0..6 {
        wire.send(&format!("{head}\r\n\r\n"));
        std::thread::sleep(Duration::from_millis(20));
        wire.send(body);
        let response = wire.receive();
        assert!([200, 429].contains(&response.status), "{response:?}");
        refused += usize::from(response.status == 429);
    }
    assert!(refused > 2, "{refused}");
    let mut wire = Wire::to(&serving);
    for _ in 0..3 {
        wire.send(&format!("{}\r\n\r\n", head.replace("Host: localhost", "Host: evil.example")));
        std::thread::sleep(Duration::from_millis(20));
        wire.send(body);
        assert_eq!(wire.receive().status, 403);
    }
}

/// A message that is half sent when the shutdown begins is answered with 503.
#[test]
fn shutdown_returns_503_for_partial_request() {
    let held = json!([{"delay_ms": 3_000}]);
    let script = Script::both().plain_tool("echo").plain_tool("held").on("tools/call:held", held);
    let serving = Serving::before(&script, "");
    let mut running = Wire::to(&serving);
    running.send(&message("held", &json!({"name": "held", "arguments": {}, "_meta": meta()}), ""));
    let mut half = Wire::to(&serving);
    half.send(&call("before", ""));
    assert_eq!(half.receive().text(), echoed("before"));
    let late = call("late", "");
    half.send(&late[..late.len() - 20]);
    std::thread::sleep(Duration::from_millis(300));
    serving.terminate();
    std::thread::sleep(Duration::from_millis(300));
    half.send(&late[late.len() - 20..]);
    let response = half.receive();
    assert_eq!((response.status, response.header("connection")), (503, Some("close")), "{response:?}");
    assert_eq!(running.receive().text(), "{}");
}
