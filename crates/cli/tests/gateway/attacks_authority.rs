//! Requests with a wrong host, or with a host that two parsers would read differently: they are refused on both paths, and
//! legitimate requests are served.

use toolhub_testkit::scripted::Script;

use crate::serving::Serving;
use crate::wire::{Wire, call, chunked, echoed};

const SETTINGS: &str = "[serve]\nhosts = [\"hub.example\", \"fd00::1\"]\n";

fn serving() -> Serving {
    Serving::before(&Script::both().plain_tool("echo"), SETTINGS)
}

/// The same call in its ordinary form (fast path) and chunked (general path).
fn both_ways(lines: &str) -> [String; 2] {
    let usual = call("x", "").replace("Host: localhost\r\n", lines);
    [chunked(&usual), usual]
}

/// The status of a call with these host lines: the same on both paths, also after an accepted call on the connection.
fn status(serving: &Serving, lines: &str) -> u16 {
    let mut found = Vec::new();
    for message in both_ways(lines) {
        let mut wire = Wire::to(serving);
        wire.send(&message);
        found.push(wire.receive().status);
        let mut wire = Wire::to(serving);
        wire.send(&call("before", ""));
        assert_eq!(wire.receive().text(), echoed("before"));
        wire.send(&message);
        found.push(wire.receive().status);
    }
    assert!(found.iter().all(|status| *status == found[0]), "{lines:?}: {found:?}");
    found[0]
}

#[test]
fn rejects_malformed_and_foreign_hosts_on_both_paths() {
    let serving = serving();
    for broken in [
        "[::1]evil.example",
        "[::1].evil.example",
        "[::1]:80@evil.example",
        "user@localhost",
        "user:pass@localhost",
        "localhost@evil.example",
        "localhost, evil.example",
        "localhost evil.example",
        "localhost:80abc",
        "localhost:99999",
        "localhost:",
        "localhost:0",
        "[::1%25lo]",
        "%6cocalhost",
        "localhost/x",
        "http://localhost",
        "",
    ] {
        assert_eq!(status(&serving, &format!("Host: {broken}\r\n")), 400, "{broken:?}");
    }
    for lines in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: evil.example\r\nHOST: localhost\r\n",
        "X-Forwarded-Host: localhost\r\n",
    ] {
        assert_eq!(status(&serving, lines), 400, "{lines:?}");
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "localhost.",
        "127.1",
        "0x7f.0.0.1",
        "127.0.0.1.evil.example",
        "hub.example.evil.example",
        "[::2]",
        "[::ffff:127.0.0.1]:7460",
        "evil.example\r\nX-Forwarded-Host: localhost",
        "evil.example\r\nForwarded: host=localhost",
    ] {
        assert_eq!(status(&serving, &format!("Host: {foreign}\r\n")), 403, "{foreign:?}");
    }
}

#[test]
fn accepts_every_valid_form_of_host() {
    let serving = serving();
    for host in [
        "localhost",
        "localhost:7460",
        "LocalHost:7460",
        "127.0.0.1",
        "127.0.0.1:7460",
        "127.0.0.2:80",
        "[::1]",
        "[::1]:7460",
        "[0:0:0:0:0:0:0:1]:7460",
        "hub.example",
        "HUB.EXAMPLE:443",
        "[fd00::1]:7460",
        " localhost \t",
        "localhost\r\nX-Forwarded-Host: evil.example",
    ] {
        assert_eq!(status(&serving, &format!("Host: {host}\r\n")), 200, "{host:?}");
    }
}

#[test]
fn absolute_form_target_must_name_allowed_host() {
    let serving = serving();
    let check = |target: &str, host: &str, expect: u16| {
        let message = call("x", "").replace("POST /mcp ", &format!("POST {target} "));
        let message = message.replace("Host: localhost\r\n", &format!("Host: {host}\r\n"));
        let mut wire = Wire::to(&serving);
        wire.send(&message);
        assert_eq!(wire.receive().status, expect, "{target} {host}");
    };
    check("http://localhost/mcp", "localhost", 200);
    check("http://LOCALHOST:7460/mcp", "localhost:7460", 200);
    check("http://hub.example/mcp", "hub.example", 200);
    check("http://evil.example/mcp", "localhost", 400);
    check("http://evil.example/mcp", "evil.example", 403);
    check("http://localhost:7461/mcp", "localhost:7460", 400);
    check("http://user@localhost/mcp", "localhost", 400);
    check("http://localhost/mcp", "evil.example", 400);
    let mut wire = Wire::to(&serving);
    let old = call("x", "").replace("HTTP/1.1", "HTTP/1.0").replace("Host: localhost\r\n", "");
    wire.send(&old);
    assert_eq!(wire.receive().status, 400, "HTTP/1.0 without a host");
    let mut wire = Wire::to(&serving);
    wire.send(&call("x", "").replace("HTTP/1.1", "HTTP/1.0"));
    assert_eq!(wire.receive().text(), echoed("x"));
    // Probes are answered for any host, since they reveal only that the gateway runs.
    let mut wire = Wire::to(&serving);
    wire.send("GET /healthz HTTP/1.0\r\n\r\n");
    let response = wire.receive();
    assert!(response.status == 200 && !response.body.contains("degraded"), "{response:?}");
}

#[test]
fn rejects_malformed_and_foreign_origins() {
    let serving = serving();
    let check = |origin: &str, expect: u16| {
        let mut wire = Wire::to(&serving);
        wire.send(&call("x", &format!("Origin: {origin}\r\n")));
        let response = wire.receive();
        assert_eq!(response.status, expect, "{origin}");
        assert_eq!(response.header("access-control-allow-origin").is_some(), expect == 200, "{origin}");
    };
    for allowed in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5173"] {
        check(allowed, 200);
    }
    for foreign in [
        "null",
        "http://localhost.evil.example",
        "http://[::1].evil.example",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost:3000/",
        "http://localhost:3000, http://evil.example",
        "http://localhost:3000\r\nOrigin: http://evil.example",
        "ftp://localhost",
        "HTTP://localhost",
        "localhost",
    ] {
        check(foreign, 403);
    }
}
