//! A browser without a screen: HTTP/1.1 over connections that are kept, with the cookie of a session.
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// Maximum time for a response or an event.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A session of the console.
pub(super) struct Browser {
    /// Host and port of the link. The name is resolved as browsers do: to this machine.
    host: String,
    cookie: String,
    csrf: String,
}

pub(super) struct Response {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Browser {
    /// Opens a session with a one-time link.
    pub(super) fn open(link: &str) -> Result<Self> {
        let (host, path) =
            link.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("not an http link")?;
        let mut browser = Self { host: host.to_owned(), cookie: String::new(), csrf: String::new() };
        let opened = browser.connect()?.get(&format!("/{path}"))?;
        let cookie = opened.header("set-cookie").context("the link opened no session")?;
        browser.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let home = browser.connect()?.get("/console/")?.text();
        let csrf = home.split("name=\"csrf-token\" content=\"").nth(1).context("no token in the page")?;
        browser.csrf = csrf.split('"').next().unwrap_or_default().to_owned();
        Ok(browser)
    }

    pub(super) fn connect(&self) -> Result<Connection<'_>> {
        let (_, port) = self.host.rsplit_once(':').context("no port in the link")?;
        let stream = TcpStream::connect(("127.0.0.1", port.parse()?))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Connection { browser: self, stream: BufReader::new(stream) })
    }

    /// Opens the stream of changes, as a page does.
    pub(super) fn follow(&self) -> Result<EventStream<'_>> {
        let mut connection = self.connect()?;
        connection.send("GET /api/v1/events", "accept: text/event-stream\r\n", "")?;
        let head = connection.read_head()?;
        ensure!(status_of(&head)? == 200, "no stream: {head}");
        let mut stream = EventStream { connection };
        stream.next_event(|_| true)?;
        Ok(stream)
    }
}

/// A connection that is kept between requests.
pub(super) struct Connection<'a> {
    browser: &'a Browser,
    stream: BufReader<TcpStream>,
}

impl Connection<'_> {
    pub(super) fn get(&mut self, path: &str) -> Result<Response> {
        self.send(&format!("GET {path}"), "accept-encoding: gzip\r\n", "")?;
        self.read_response()
    }

    /// Sends JSON as a script of a page does.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<Response> {
        let Browser { host, csrf, .. } = self.browser;
        let headers =
            format!("origin: http://{host}\r\nx-csrf-token: {csrf}\r\ncontent-type: application/json\r\n");
        self.send(&format!("POST {path}"), &headers, body)?;
        self.read_response()
    }

    fn send(&mut self, request: &str, headers: &str, body: &str) -> Result<()> {
        let Browser { host, cookie, .. } = self.browser;
        let length = body.len();
        let text = format!(
            "{request} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        Ok(self.stream.get_mut().write_all(text.as_bytes())?)
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the connection was closed");
        Ok(line)
    }

    fn read_head(&mut self) -> Result<String> {
        let mut head = String::new();
        loop {
            let line = self.read_line()?;
            if line == "\r\n" {
                return Ok(head);
            }
            head.push_str(&line);
        }
    }

    fn read_response(&mut self) -> Result<Response> {
        let head = self.read_head()?;
        let mut body = Vec::new();
        if let Some(length) = field(&head, "content-length") {
            body.resize(length.parse()?, 0);
            self.stream.read_exact(&mut body)?;
        } else if field(&head, "transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(self.read_line()?.trim(), 16)?;
                let start = body.len();
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..])?;
                ensure!(self.read_line()? == "\r\n", "a chunk is too long");
                if size == 0 {
                    break;
                }
            }
        }
        Ok(Response { status: status_of(&head)?, head, body })
    }
}

/// An open stream of changes.
pub(super) struct EventStream<'a> {
    connection: Connection<'a>,
}

impl EventStream<'_> {
    /// Reads until the data of an event is the expected one. Chunk sizes stand in lines of their own, which are skipped.
    pub(super) fn next_event(&mut self, is_expected: impl Fn(&str) -> bool) -> Result<()> {
        loop {
            let line = self.connection.read_line()?;
            if line.strip_prefix("data: ").is_some_and(|data| is_expected(data.trim())) {
                return Ok(());
            }
        }
    }
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
