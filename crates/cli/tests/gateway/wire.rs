//! A raw TCP connection to the gateway, and messages to send over it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::serving::{Serving, TEST_TIMEOUT};

/// A raw TCP connection to the gateway.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// A parsed HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        let body: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        body["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

impl Wire {
    pub(crate) fn to(serving: &Serving) -> Self {
        Self::over(TcpStream::connect(serving.root.strip_prefix("http://").unwrap()).unwrap())
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the head of a response and leaves the body unread.
    pub(crate) fn head(&mut self) -> HttpResponse {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        HttpResponse { status, headers, body: String::new() }
    }

    pub(crate) fn receive(&mut self) -> HttpResponse {
        let mut response = self.head();
        self.body_of(&mut response);
        response
    }

    /// Reads the body of a response whose head was read.
    pub(crate) fn body_of(&mut self, response: &mut HttpResponse) {
        if let Some(length) = response.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        } else if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(&self.line(), 16).unwrap();
                let mut chunk = vec![0; length + 2];
                self.reader.read_exact(&mut chunk).unwrap();
                assert_eq!(chunk.split_off(length), b"\r\n");
                if length == 0 {
                    break;
                }
                response.body.push_str(&String::from_utf8(chunk).unwrap());
            }
        }
    }

    pub(crate) fn is_over(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 16]), Ok(0) | Err(_))
    }
}

/// The `_meta` members that every modern request has.
pub(crate) fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

/// A call of `echo` with additional headers.
pub(crate) fn call(echoed: &str, more: &str) -> String {
    message("echo", &json!({"name": "echo", "arguments": {"said": echoed}, "_meta": meta()}), more)
}

pub(crate) fn message(tool: &str, params: &Value, more: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    )
}

pub(crate) fn chunked(message: &str) -> String {
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let head: Vec<_> = head.split("\r\n").filter(|line| !line.starts_with("Content-Length")).collect();
    let (one, two) = body.split_at(10);
    let head = head.join("\r\n");
    format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", two.len())
}

/// The result of `echo` for such a call.
pub(crate) fn echoed(echoed: &str) -> String {
    json!({"said": echoed}).to_string()
}

impl Wire {
    /// Connects from another local address. Not for tests that run in a runtime.
    pub(crate) fn from_address(serving: &Serving, address: [u8; 4]) -> Self {
        let to: SocketAddr = serving.root.strip_prefix("http://").unwrap().parse().unwrap();
        let connecting = async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from((address, 0))).unwrap();
            socket.connect(to).await.unwrap().into_std().unwrap()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self::over(runtime.block_on(connecting))
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    /// Waits for the first line of a response, and leaves the rest unread.
    pub(crate) fn status_line(&mut self) -> String {
        self.line()
    }

    /// Whether the peer has closed the connection; waits at most for the read timeout.
    pub(crate) fn is_closed(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => {
                !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
            }
        }
    }

    /// Reads until an SSE line with this prefix and returns the rest of the line.
    pub(crate) fn event_line(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line();
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }
}

/// Any HTTP request, with headers in addition to `Host`.
pub(crate) fn request(verb: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// The `Authorization` header with this token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
