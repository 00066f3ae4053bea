//! A client of replicas over HTTP/1.1, with one connection that is kept: stateless calls (2026-07-28), or a session (2025-11-25).
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// Maximum time for a response: calls wait for the lease of a lost worker.
const READ_TIMEOUT: Duration = Duration::from_secs(90);
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
/// Texts for clients of calls of which it is unknown whether they ran.
const UNKNOWN_EFFECT: [&str; 2] = ["whether it took effect is unknown", "may have had its effect"];

/// The result of a call for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    Failed {
        text: String,
        /// Whether it may have taken effect.
        may_have_run: bool,
    },
}

pub(super) struct Client {
    /// Host and port.
    host: String,
    path: String,
    session: Option<String>,
    connection: Option<BufReader<TcpStream>>,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

/// A header block, the name of a tool and a body.
struct Request<'a> {
    method: &'a str,
    tool: Option<&'a str>,
    body: String,
}

impl Client {
    /// A client without a session.
    pub(super) fn new(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("not an http url")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self { host: host.to_owned(), path: format!("/{path}"), session: None, connection: None })
    }

    /// A client with a new session.
    pub(super) fn with_session(url: &str) -> Result<Self> {
        let mut client = Self::new(url)?;
        client.open_session()?;
        Ok(client)
    }

    /// Begins another session; the previous one is left open.
    pub(super) fn open_session(&mut self) -> Result<()> {
        self.session = Some(String::new());
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let response = self.send(&Request { method: "initialize", tool: None, body })?;
        ensure!(response.status == 200, "no session: {} {}", response.status, response.body);
        let id = field(&response.head, "mcp-session-id").context("no session id")?;
        self.session = Some(id.to_owned());
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        let response = self.send(&Request { method: "notifications/initialized", tool: None, body })?;
        ensure!(response.status == 202, "no session: {} {}", response.status, response.body);
        Ok(())
    }

    /// Uses the same session at another replica.
    pub(super) fn move_to(self, url: &str) -> Result<Self> {
        Ok(Self { session: self.session, ..Self::new(url)? })
    }

    /// Opens the stream of events of the session, on a connection of its own.
    pub(super) fn listen(&self) -> Result<TcpStream> {
        let Self { host, path, session, .. } = self;
        let session = session.as_deref().context("no session")?;
        let mut stream = BufReader::new(connect(host)?);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\nmcp-protocol-version: {LEGACY}\r\n\
             mcp-session-id: {session}\r\n\r\n"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let head = read_head(&mut stream)?;
        ensure!(status_of(&head)? == 200, "no stream: {head}");
        Ok(stream.into_inner())
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Outcome {
        if self.connection.is_none() {
            match connect(&self.host) {
                Ok(stream) => self.connection = Some(BufReader::new(stream)),
                Err(error) => return Outcome::Failed { text: error.to_string(), may_have_run: false },
            }
        }
        let body = self.call_body(tool, arguments);
        match self.send(&Request { method: "tools/call", tool: Some(tool), body }) {
            Ok(response) => outcome(response.status, &response.body),
            Err(error) => {
                self.connection = None;
                Outcome::Failed { text: format!("{error:#}"), may_have_run: true }
            }
        }
    }

    /// A page without authentication, such as `/metrics`.
    pub(super) fn page(&mut self, path: &str) -> Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        let response = self.exchange(request.as_bytes())?;
        ensure!(response.status == 200, "`{path}`: {} {}", response.status, response.body);
        Ok(response.body)
    }

    fn call_body(&self, tool: &str, arguments: &Value) -> String {
        let mut params = json!({"name": tool, "arguments": arguments});
        if self.session.is_none() {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {}});
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    }

    fn send(&mut self, request: &Request<'_>) -> Result<Response> {
        let Request { method, tool, body } = request;
        let variant = match self.session.as_deref() {
            None => {
                let name = tool.map(|tool| format!("mcp-name: {tool}\r\n")).unwrap_or_default();
                format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{name}")
            }
            Some("") => String::new(),
            Some(session) => format!("mcp-protocol-version: {LEGACY}\r\nmcp-session-id: {session}\r\n"),
        };
        let (host, path, length) = (&self.host, &self.path, body.len());
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\n{variant}content-length: {length}\r\n\r\n{body}"
        );
        self.exchange(text.as_bytes())
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(connect(&self.host)?),
        };
        connection.get_mut().write_all(request)?;
        let head = read_head(&mut connection)?;
        let body = read_body(&mut connection, &head)?;
        let is_kept = !field(&head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if is_kept {
            self.connection = Some(connection);
        }
        Ok(Response { status: status_of(&head)?, head, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

fn connect(host: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    Ok(stream)
}

fn outcome(status: u16, body: &str) -> Outcome {
    if status == 200 && body.contains("\"result\"") && !body.contains("\"isError\":true") {
        return Outcome::Succeeded;
    }
    let may_have_run = UNKNOWN_EFFECT.iter().any(|text| body.contains(text));
    Outcome::Failed { text: format!("{status} {body}"), may_have_run }
}

fn read_line(connection: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    ensure!(connection.read_line(&mut line)? > 0, "the connection was closed");
    Ok(line)
}

fn read_head(connection: &mut BufReader<TcpStream>) -> Result<String> {
    let mut head = String::new();
    loop {
        let line = read_line(connection)?;
        if line == "\r\n" {
            return Ok(head);
        }
        head.push_str(&line);
    }
}

fn read_body(connection: &mut BufReader<TcpStream>, head: &str) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if let Some(length) = field(head, "content-length") {
        body.resize(length.parse()?, 0);
        connection.read_exact(&mut body)?;
    } else if field(head, "transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(read_line(connection)?.trim(), 16)?;
            let start = body.len();
            body.resize(start + size, 0);
            connection.read_exact(&mut body[start..])?;
            ensure!(read_line(connection)? == "\r\n", "a chunk is too long");
            if size == 0 {
                break;
            }
        }
    }
    Ok(body)
}

fn status_of(head: &str) -> Result<u16> {
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let Some(status) = status else { bail!("not a response: {head}") };
    Ok(status)
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_successful_calls_from_failed_ones() {
        let failed = |may_have_run| move |outcome: &Outcome| matches!(outcome, Outcome::Failed { may_have_run: found, .. } if *found == may_have_run);
        assert_eq!(outcome(200, r#"{"id":1,"result":{"content":[]}}"#), Outcome::Succeeded);
        for (status, body, expected) in [
            (200, r#"{"result":{"isError":true}}"#.to_owned(), false),
            (200, format!(r#"{{"result":{{"isError":true,"text":"{}"}}}}"#, UNKNOWN_EFFECT[0]), true),
            (200, r#"{"error":{"code":-32603}}"#.to_owned(), false),
            (503, r#"{"result":{}}"#.to_owned(), false),
        ] {
            assert!(failed(expected)(&outcome(status, &body)), "{status} {body}");
        }
    }
}
