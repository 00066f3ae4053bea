//! A client over a socket with a minimal HTTP implementation that exposes every byte.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};
use toolhub_testkit::scripted::HttpServer;

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body came to its proper end.
    pub(crate) complete: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The messages of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let text = self.text();
        let data =
            text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).expect("an event contains JSON")).collect()
    }
}

/// Sends a request and returns the open connection.
pub(crate) fn open(server: &HttpServer, start: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let address = ("127.0.0.1", server.port());
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut request = format!("{start} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).expect("the server reads");
    stream
}

/// The answer, or nothing if the connection breaks before one.
pub(crate) fn read(mut stream: TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    // A reset also ends it.
    _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let rest = &bytes[end + 4..];
    let (body, complete) =
        if head.contains("transfer-encoding: chunked") { unchunk(rest) } else { (rest.to_vec(), true) };
    Some(Reply { status, head, body, complete })
}

/// All that comes of a connection that then stays open and silent. However slow the machine, silence counts only once
/// what must come has come.
pub(crate) fn read_until_silence(mut stream: TcpStream, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), [0; 65_536]);
    while !enough(&bytes) {
        let read = stream.read(&mut part).expect("more must come");
        assert_ne!(read, 0, "it ended: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&part[..read]);
    }
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let error = stream.read_to_end(&mut bytes).expect_err("silence");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    bytes
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        let chunk = rest.get(end + 2..end + 2 + size).expect("whole chunks");
        body.extend(chunk);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    (body, false)
}

const NEGOTIATION: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

pub(crate) fn start_post(server: &HttpServer, headers: &[(&str, &str)], message: &Value) -> TcpStream {
    let headers = [&NEGOTIATION, headers].concat();
    open(server, "POST /mcp", &headers, &message.to_string())
}

pub(crate) fn post(server: &HttpServer, headers: &[(&str, &str)], message: &Value) -> Reply {
    read(start_post(server, headers, message)).expect("an answer")
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn call(id: u64, tool: &str) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": {"n": id}}))
}

/// A legacy client after its handshake.
pub(crate) struct Session<'a> {
    pub(crate) server: &'a HttpServer,
    pub(crate) id: String,
}

impl<'a> Session<'a> {
    pub(crate) fn open(server: &'a HttpServer) -> Self {
        let answer = post(server, &[], &request(0, "initialize", json!({"protocolVersion": "2025-11-25"})));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.header("mcp-session-id").expect("a session").to_owned();
        let session = Self { server, id };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let reply = session.post(&initialized);
        assert_eq!((reply.status, reply.header("content-length")), (202, Some("0")));
        session
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", "2025-11-25")]
    }

    pub(crate) fn post(&self, message: &Value) -> Reply {
        post(self.server, &self.headers(), message)
    }

    pub(crate) fn start_post(&self, message: &Value) -> TcpStream {
        start_post(self.server, &self.headers(), message)
    }
}
