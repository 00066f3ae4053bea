//! Over one connection: messages as clients send them nearly always, and whatever else HTTP allows, in any order and in
//! pieces of any size.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::serving::{PATIENCE, Serving};

/// A connection whose every byte is our own.
struct Wire {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// What a request was answered with.
#[derive(Debug)]
struct Heard {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> String {
        let body: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        body["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

impl Wire {
    fn to(serving: &Serving) -> Self {
        let stream = TcpStream::connect(serving.root.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn hear(&mut self) -> Heard {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut heard = Heard { status, headers, body: String::new() };
        if let Some(length) = heard.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut body).unwrap();
            heard.body = String::from_utf8(body).unwrap();
        } else if heard.header("transfer-encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(&self.line(), 16).unwrap();
                let mut chunk = vec![0; length + 2];
                self.reader.read_exact(&mut chunk).unwrap();
                assert_eq!(chunk.split_off(length), b"\r\n");
                if length == 0 {
                    break;
                }
                heard.body.push_str(&String::from_utf8(chunk).unwrap());
            }
        }
        heard
    }

    fn is_over(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 16]), Ok(0) | Err(_))
    }
}

/// The members that every modern request has in its `_meta`.
fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

/// A call of `echo`, with headers beside the usual ones.
fn call(said: &str, more: &str) -> String {
    message("echo", &json!({"name": "echo", "arguments": {"said": said}, "_meta": meta()}), more)
}

fn message(tool: &str, params: &Value, more: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    )
}

fn chunked(message: &str) -> String {
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let head: Vec<_> = head.split("\r\n").filter(|line| !line.starts_with("Content-Length")).collect();
    let (one, two) = body.split_at(10);
    let head = head.join("\r\n");
    format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", two.len())
}

fn serving() -> Serving {
    Serving::before(&Script::both().plain_tool("echo"), "")
}

fn said(said: &str) -> String {
    json!({"said": said}).to_string()
}

/// One connection serves both ways, whichever comes first.
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
            wire.say(&call(turn, ""));
            assert_eq!(wire.hear().text(), said(turn));
        }
        wire.say(other);
        let heard = wire.hear();
        assert!((200..300).contains(&heard.status), "{other}: {heard:?}");
        assert_eq!(
            heard.header("access-control-allow-origin").is_some(),
            other.contains("Origin"),
            "{heard:?}"
        );
        wire.say(&call("three", ""));
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
        wire.say(&call("one", ""));
        assert_eq!(wire.hear().text(), said("one"));
        wire.say(&refused);
        assert!((400..500).contains(&wire.hear().status), "{refused}");
    }
}

#[test]
fn messages_may_come_in_pieces_and_several_at_once() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    // In two pieces at every tenth place, so that all kinds of beginnings are seen.
    let message = call("in pieces", "");
    for place in (1..message.len()).step_by(10) {
        wire.say(&message[..place]);
        std::thread::sleep(Duration::from_millis(5));
        wire.say(&message[place..]);
        assert_eq!(wire.hear().text(), said("in pieces"), "{place}");
    }
    let several: String = (0..20).map(|turn| call(&turn.to_string(), "")).collect();
    wire.say(&several);
    for turn in 0..20 {
        assert_eq!(wire.hear().text(), said(&turn.to_string()));
    }
    // The usual, the unusual and the usual again, all sent before anything is read.
    wire.say(&[call("a", ""), chunked(&call("b", "")), call("c", "")].concat());
    for turn in ["a", "b", "c"] {
        assert_eq!(wire.hear().text(), said(turn));
    }
}

#[test]
fn answers_are_whole_whatever_their_length() {
    let serving = serving();
    let mut wire = Wire::to(&serving);
    for length in [0, 1, 1_000, 15_000, 16_384, 17_000, 60_000] {
        let long = "长x".repeat(length / 4);
        wire.say(&call(&long, ""));
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
    wire.say(&call("last", "Connection: close\r\n"));
    assert_eq!(wire.hear().text(), said("last"));
    assert!(wire.is_over());
    let mut wire = Wire::to(&serving);
    wire.say(&call("one", ""));
    assert_eq!(wire.hear().text(), said("one"));
    wire.say("POST /mcp HTTP/1.1\r\nHost: loc");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(wire.is_over());
}

/// Progress makes a stream of an answer; what follows it over the same connection is answered all the same.
#[test]
fn a_stream_ends_and_the_next_message_is_answered() {
    let slow = json!([{"progress": {"progress": 1}}, {"delay_ms": 50}, {"text": "counted"}]);
    let script = Script::both().plain_tool("count").on("tools/call:count", slow).plain_tool("echo");
    let serving = Serving::before(&script, "");
    let mut wire = Wire::to(&serving);
    for turn in ["one", "two"] {
        let mut meta = meta();
        meta["progressToken"] = json!("p");
        wire.say(&message("count", &json!({"name": "count", "arguments": {}, "_meta": meta}), ""));
        let heard = wire.hear();
        assert_eq!(heard.header("content-type"), Some("text/event-stream"), "{heard:?}");
        let (before, after) =
            heard.body.split_once("notifications/progress").unwrap_or_else(|| panic!("{heard:?}"));
        assert!(!before.contains("counted") && after.contains("counted"), "{heard:?}");
        wire.say(&call(turn, ""));
        assert_eq!(wire.hear().text(), said(turn));
    }
}
