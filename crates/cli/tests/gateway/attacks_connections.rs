//! One address holds connections without using them: half-sent heads, half-sent messages, idle ones. When no descriptor is
//! left, its connections are closed first, and other addresses are served immediately. No test waits for a timeout of the
//! server: the timeouts are longer than a test may take.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::process::Resource;
use toolhub_testkit::scripted::Script;

use crate::hub_faults::limit;
use crate::serving::{Serving, TEST_TIMEOUT};
use crate::wire::{Wire, call, echoed};

const OTHER: [u8; 4] = [127, 0, 0, 2];

fn serving(settings: &str) -> Serving {
    Serving::before(&Script::both().plain_tool("echo"), settings)
}

/// A gateway that has opened all the descriptors it needs, with room for `more`.
fn with_descriptors(more: u64) -> Serving {
    let serving = serving("[serve]\nheader_timeout = \"10m\"\n");
    let mut wire = Wire::to(&serving);
    wire.send(&call("first", "Connection: close\r\n"));
    assert_eq!(wire.receive().text(), echoed("first"));
    assert!(wire.is_over());
    let open = fs::read_dir(format!("/proc/{}/fd", serving.pid())).unwrap().count() as u64;
    limit(&serving, Resource::Nofile, Some(open + more));
    serving
}

/// Connections that send only this text.
fn holding(serving: &Serving, count: usize, sent: &str) -> Vec<Wire> {
    let hold = || {
        let mut wire = Wire::to(serving);
        // The server may have closed it already.
        let _ = wire.stream.write_all(sent.as_bytes());
        wire
    };
    (0..count).map(|_| hold()).collect()
}

/// Checks that another address is served, with a new connection for each call.
fn served_elsewhere(serving: &Serving) {
    for turn in ["one", "two", "three"] {
        let mut wire = Wire::from_address(serving, OTHER);
        wire.send(&call(turn, ""));
        assert_eq!(wire.receive().text(), echoed(turn));
    }
}

#[test]
fn partial_heads_do_not_block_other_addresses() {
    let serving = with_descriptors(12);
    let _held = holding(&serving, 60, "POST /mcp HTTP/1.1\r\nHost: loc");
    served_elsewhere(&serving);
}

#[test]
fn silent_connections_do_not_block_other_addresses() {
    let serving = with_descriptors(12);
    let _held = holding(&serving, 60, "");
    served_elsewhere(&serving);
}

#[test]
fn partial_bodies_do_not_block_other_addresses() {
    let serving = with_descriptors(12);
    let message = call("x", "");
    let _short = holding(&serving, 30, &message[..message.len() - 5]);
    let long = call("x", "").replace("Content-Length: ", "Content-Length: 10");
    let _long = holding(&serving, 30, &long);
    served_elsewhere(&serving);
}

#[test]
fn idle_connections_do_not_block_other_addresses() {
    let serving = with_descriptors(12);
    let mut held = Vec::new();
    for _ in 0..30 {
        let mut wire = Wire::to(&serving);
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(wire.receive().status, 200);
        held.push(wire);
    }
    served_elsewhere(&serving);
}

/// An incomplete message counts as an upload, even if it would be too short to count once complete.
#[test]
fn partial_short_bodies_count_as_uploads() {
    let serving = serving("[serve]\nbody_bytes = 1048576\n[serve.limits]\nupload_bytes = 1048576\n");
    let long = call(&"x".repeat(60_000), "");
    let mut held = holding(&serving, 60, &long[..50_000]);
    let since = Instant::now();
    let mut refused = 0;
    while refused == 0 {
        assert!(since.elapsed() < TEST_TIMEOUT, "3 MB wait, and none is refused");
        for wire in &mut held {
            wire.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            refused += usize::from(wire.stream.peek(&mut [0]).is_ok());
        }
    }
    served_elsewhere(&serving);
    // Below the limit such a message is served once it is complete.
    let mut wire = Wire::from_address(&serving, OTHER);
    wire.stream.write_all(&long.as_bytes()[..50_000]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    wire.stream.write_all(&long.as_bytes()[50_000..]).unwrap();
    assert_eq!(wire.receive().text(), echoed(&"x".repeat(60_000)));
}

/// With a duplicate header, a proxy may use the last value and the gateway the first.
#[test]
fn rejects_duplicate_framing_headers() {
    let serving = serving("");
    for more in [
        "Mcp-Method: tools/list\r\n",
        "mcp-name: other\r\n",
        "MCP-Protocol-Version: 2025-11-25\r\n",
        "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n",
    ] {
        let mut wire = Wire::to(&serving);
        wire.send(&call("one", ""));
        assert_eq!(wire.receive().text(), echoed("one"));
        wire.send(&call("two", more));
        assert_eq!(wire.receive().status, 400, "{more}");
    }
}

/// The attacking address is served, too, if its requests are complete.
#[test]
fn serves_address_with_partial_connections_if_request_is_complete() {
    let serving = with_descriptors(12);
    let _held = holding(&serving, 60, "POST /mcp HTTP/1.1\r\nHost: loc");
    let mut served = 0;
    let since = Instant::now();
    while served < 3 {
        assert!(since.elapsed() < TEST_TIMEOUT, "it is not served");
        let mut wire = Wire::to(&serving);
        let _ = wire.stream.write_all(call("whole", "").as_bytes());
        // This connection may itself be closed to free a descriptor.
        served += usize::from(wire.status_line().starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn bounds_connections_without_a_request_per_address() {
    let serving = serving("[serve]\nheader_timeout = \"10m\"\n[serve.limits]\nunproven_connections = 5\n");
    let held = holding(&serving, 40, "POST");
    served_elsewhere(&serving);
    // Refused connections are closed; the number of open ones stays within the limit.
    for wire in &held {
        wire.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    }
    let since = Instant::now();
    while held.iter().filter(|wire| !wire.is_closed()).count() > 5 {
        assert!(since.elapsed() < TEST_TIMEOUT, "more are left than may be");
    }
    // A connection that completes its request is served.
    let mut wire = Wire::from_address(&serving, OTHER);
    wire.send("POST");
    wire.send(&call("late", "")["POST".len()..]);
    assert_eq!(wire.receive().text(), echoed("late"));
}

/// Single bytes do not extend the header timeout.
#[test]
fn closes_connection_with_trickling_head() {
    let serving = serving("[serve]\nheader_timeout = \"1s\"\n");
    for before in ["", "GET /mcp"] {
        let mut wire = Wire::to(&serving);
        wire.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        wire.send(before);
        let since = Instant::now();
        let text = call("slow", "");
        let mut bytes = text.bytes().cycle();
        while !wire.is_closed() {
            assert!(since.elapsed() < TEST_TIMEOUT, "it is still waited for");
            let _ = wire.stream.write_all(&[bytes.next().unwrap()]);
        }
    }
    let mut wire = Wire::to(&serving);
    wire.send(&call("fast", ""));
    assert_eq!(wire.receive().text(), echoed("fast"));
}
