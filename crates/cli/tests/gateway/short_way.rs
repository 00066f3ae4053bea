//! Ordinary messages (fast path) and everything else that HTTP allows (general path) over one connection, in any order and
//! split at any position.

use std::net::Shutdown;
use std::time::Duration;

use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::door::for_two_with;
use crate::serving::Serving;
use crate::wire::{Wire, call, chunked, message, meta, said};

fn serving() -> Serving {
    Serving::before(&Script::both().plain_tool("echo"), "")
}

/// One connection serves both paths in any order.
#[test]
fn the_long_way_begins_where_something_is_unusual() {
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
            assert_eq!(wire.hear().text(), said(turn));
        }
        wire.send(other);
        let heard = wire.hear();
        assert!((200..300).contains(&heard.status), "{other}: {heard:?}");
        assert_eq!(
            heard.header("access-control-allow-origin").is_some(),
            other.contains("Origin"),
            "{heard:?}"
        );
        wire.send(&call("three", ""));
        assert_eq!(wire.hear().text(), said("three"), "after {other}");
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
        assert_eq!(wire.hear().text(), said("one"));
        wire.send(&refused);
        assert!((400..500).contains(&wire.hear().status), "{refused}");
    }
}

#[test]
fn messages_may_come_in_pieces_and_several_at_once() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    // Split into two writes at every tenth byte, so that all kinds of prefixes occur.
    let message = call("in pieces", "");
    for place in (1..message.len()).step_by(10) {
        wire.send(&message[..place]);
        std::thread::sleep(Duration::from_millis(5));
        wire.send(&message[place..]);
        assert_eq!(wire.hear().text(), said("in pieces"), "{place}");
    }
    let several: String = (0..20).map(|turn| call(&turn.to_string(), "")).collect();
    wire.send(&several);
    for turn in 0..20 {
        assert_eq!(wire.hear().text(), said(&turn.to_string()));
    }
    // Ordinary, chunked and ordinary messages, all sent before a response is read.
    wire.send(&[call("a", ""), chunked(&call("b", "")), call("c", "")].concat());
    for turn in ["a", "b", "c"] {
        assert_eq!(wire.hear().text(), said(turn));
    }
}

/// A repeated, byte-identical head is authorized from the cache. A different head on the same connection is authorized anew,
/// even if it arrives before the body.
#[test]
fn who_comes_next_is_looked_at() {
    let (serving, [ann, bob]) = for_two_with(&Script::both().plain_tool("echo"), "");
    let shows = |token: &str, turn: &str| call(turn, &format!("Authorization: Bearer {token}\r\n"));
    let mut wire = Wire::to(&serving);
    for token in [&ann, &ann, &bob, &bob, &ann] {
        wire.send(&shows(token, "known"));
        assert_eq!(wire.hear().text(), said("known"));
    }
    let stranger = shows(&"x".repeat(ann.len()), "unknown");
    let end = stranger.find("\r\n\r\n").unwrap() + 4;
    for _ in 0..2 {
        wire.send(&stranger[..end]);
        std::thread::sleep(Duration::from_millis(50));
        wire.send(&stranger[end..]);
        assert_eq!(wire.hear().status, 401);
    }
    wire.send(&shows(&ann, "again"));
    assert_eq!(wire.hear().text(), said("again"));
}

#[test]
fn answers_are_whole_whatever_their_length() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    for length in [0, 1, 1_000, 15_000, 16_384, 17_000, 60_000] {
        let long = "长x".repeat(length / 4);
        wire.send(&call(&long, ""));
        let heard = wire.hear();
        assert_eq!((heard.status, heard.header("content-type")), (200, Some("application/json")));
        assert!(heard.header("date").is_some_and(|date| date.ends_with(" GMT")), "{:?}", heard.headers);
        assert_eq!(heard.text(), said(&long), "{length}");
    }
}

#[test]
fn connections_end_when_they_are_told_to() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    wire.send(&call("last", "Connection: close\r\n"));
    assert_eq!(wire.hear().text(), said("last"));
    assert!(wire.is_over());
    let mut wire = Wire::to(&serving);
    wire.send(&call("one", ""));
    assert_eq!(wire.hear().text(), said("one"));
    wire.send("POST /mcp HTTP/1.1\r\nHost: loc");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(wire.is_over());
}

/// Progress turns a response into a stream; the next message on the same connection is still answered.
#[test]
fn a_stream_ends_and_the_next_message_is_answered() {
    let slow = json!([{"progress": {"progress": 1}}, {"delay_ms": 50}, {"text": "counted"}]);
    let script = Script::both().plain_tool("count").on("tools/call:count", slow).plain_tool("echo");
    let serving = Serving::before(&script, "");
    let mut wire = Wire::to(&serving);
    for turn in ["one", "two"] {
        let mut meta = meta();
        meta["progressToken"] = json!("p");
        wire.send(&message("count", &json!({"name": "count", "arguments": {}, "_meta": meta}), ""));
        let heard = wire.hear();
        assert_eq!(heard.header("content-type"), Some("text/event-stream"), "{heard:?}");
        let (before, after) =
            heard.body.split_once("notifications/progress").unwrap_or_else(|| panic!("{heard:?}"));
        assert!(!before.contains("counted") && after.contains("counted"), "{heard:?}");
        wire.send(&call(turn, ""));
        assert_eq!(wire.hear().text(), said(turn));
    }
}

/// A request that is refused before its body has arrived gets the reason, and the next message is still processed.
#[test]
fn a_refusal_waits_for_the_rest_of_the_message() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "[serve]\nper_second = 1\n");
    let mut wire = Wire::to(&serving);
    let message = call("again", "");
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let mut refused = 0;
    for _ in 0..6 {
        wire.send(&format!("{head}\r\n\r\n"));
        std::thread::sleep(Duration::from_millis(20));
        wire.send(body);
        let heard = wire.hear();
        assert!([200, 429].contains(&heard.status), "{heard:?}");
        refused += usize::from(heard.status == 429);
    }
    assert!(refused > 2, "{refused}");
    let mut wire = Wire::to(&serving);
    for _ in 0..3 {
        wire.send(&format!("{}\r\n\r\n", head.replace("Host: localhost", "Host: evil.example")));
        std::thread::sleep(Duration::from_millis(20));
        wire.send(body);
        assert_eq!(wire.hear().status, 403);
    }
}

/// A message that is half sent when the shutdown begins is answered with 503.
#[test]
fn what_was_half_sent_at_the_end_is_answered() {
    let held = json!([{"delay_ms": 3_000}]);
    let script = Script::both().plain_tool("echo").plain_tool("held").on("tools/call:held", held);
    let serving = Serving::before(&script, "");
    let mut running = Wire::to(&serving);
    running.send(&message("held", &json!({"name": "held", "arguments": {}, "_meta": meta()}), ""));
    let mut half = Wire::to(&serving);
    half.send(&call("before", ""));
    assert_eq!(half.hear().text(), said("before"));
    let late = call("late", "");
    half.send(&late[..late.len() - 20]);
    std::thread::sleep(Duration::from_millis(300));
    serving.terminate();
    std::thread::sleep(Duration::from_millis(300));
    half.send(&late[late.len() - 20..]);
    let heard = half.hear();
    assert_eq!((heard.status, heard.header("connection")), (503, Some("close")), "{heard:?}");
    assert_eq!(running.hear().text(), "{}");
}
