//! A cheap HTTP load generator, so that most CPU time is left for the server.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::wire;

/// Runs `callers` concurrent callers for `seconds`; prints calls per second, and median, 99th percentile and maximum
/// latency in microseconds.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the figures")]
pub(crate) async fn run(url: &str, callers: usize, seconds: f64, mode: CallMode<'_>) -> Result<()> {
    let mut all = Vec::new();
    for _ in 0..callers {
        all.push(Caller::of(url, mode).await?);
    }
    let run_started = Instant::now();
    let until = run_started + Duration::from_secs_f64(seconds);
    let mut tasks = JoinSet::new();
    let tool = mode.tool();
    for mut caller in all {
        let tool = tool.to_owned();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let started = Instant::now();
                caller.call(&tool).await?;
                times.push(started.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        times.extend(joined??);
    }
    let took = run_started.elapsed();
    println!("{}", report(&mut times, took)?);
    Ok(())
}

/// Formats the figures.
pub(crate) fn report(times: &mut [Duration], took: Duration) -> Result<String> {
    ensure!(!times.is_empty(), "not one call was answered");
    times.sort_unstable();
    let micros = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times[index].as_secs_f64() * 1e6
    };
    let rate = times.len() as f64 / took.as_secs_f64();
    Ok(format!(
        r#"{{"calls":{},"rate":{rate:.1},"p50":{:.1},"p99":{:.1},"max":{:.1}}}"#,
        times.len(),
        micros(0.5),
        micros(0.99),
        micros(1.0)
    ))
}

/// Lists the tools `times` times; prints the same figures.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the figures")]
pub(crate) async fn list(url: &str, times: usize, mode: CallMode<'_>) -> Result<()> {
    let mut caller = Caller::of(url, mode).await?;
    let run_started = Instant::now();
    let mut taken = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        let list_request = if caller.session.is_some() { wire::list_in_session(1) } else { wire::list(1) };
        let body = caller.ask("tools/list", None, &list_request).await?;
        ensure!(memchr(body, b"echo_9"), "the list has no tools");
        taken.push(started.elapsed());
    }
    println!("{}", report(&mut taken, run_started.elapsed())?);
    Ok(())
}

/// The protocol variant of the calls.
#[derive(Clone, Copy)]
pub(crate) enum CallMode<'a> {
    /// Stateless requests (2026-07-28).
    Stateless {
        /// The tool to call.
        tool: &'a str,
    },
    /// A session per caller, for gateways without stateless requests.
    Session {
        /// The requested protocol revision.
        version: &'a str,
        /// The name of the tool at that gateway.
        tool: &'a str,
    },
}

impl<'a> CallMode<'a> {
    pub(crate) fn of(words: &[&'a str]) -> Result<Self> {
        match words {
            [] => Ok(Self::Stateless { tool: wire::TOOL }),
            ["alone", tool] => Ok(Self::Stateless { tool }),
            ["session", version, tool] => Ok(Self::Session { version, tool }),
            _ => bail!("{words:?} is no manner: nothing, `alone TOOL`, or `session VERSION TOOL`"),
        }
    }

    fn tool(self) -> &'a str {
        match self {
            Self::Stateless { tool } | Self::Session { tool, .. } => tool,
        }
    }
}

/// The negotiated session.
struct SessionInfo {
    version: String,
    id: Option<String>,
}

fn memchr(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

/// A keep-alive connection.
pub(crate) struct Caller {
    stream: TcpStream,
    host: String,
    path: String,
    count: u64,
    buffer: Vec<u8>,
    /// The head of the last response.
    head: String,
    session: Option<SessionInfo>,
    /// The header with the token, if there is one.
    authorization: String,
}

impl Caller {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("not an http url")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (host, path) = (host.to_owned(), format!("/{path}"));
        Ok(Self {
            stream,
            host,
            path,
            count: 0,
            buffer: Vec::with_capacity(1 << 16),
            head: String::new(),
            session: None,
            authorization: std::env::var("LOAD_TOKEN")
                .map(|token| format!("authorization: Bearer {token}\r\n"))
                .unwrap_or_default(),
        })
    }

    async fn of(url: &str, mode: CallMode<'_>) -> Result<Self> {
        let mut caller = Self::new(url).await?;
        if let CallMode::Session { version, .. } = mode {
            caller.session = Some(SessionInfo { version: version.to_owned(), id: None });
            caller.ask("initialize", None, &wire::initialize(version)).await?;
            let id = field(&caller.head, "mcp-session-id").map(str::to_owned);
            caller.session = Some(SessionInfo { version: version.to_owned(), id });
            caller.ask("notifications/initialized", None, wire::INITIALIZED).await?;
            caller.await_tools().await?;
        }
        Ok(caller)
    }

    /// Lists the tools until the list is not empty: a gateway may serve before its servers do.
    async fn await_tools(&mut self) -> Result<()> {
        for _ in 0..100 {
            let listed = self.ask("tools/list", None, &wire::list_in_session(0)).await?;
            if memchr(listed, wire::TOOL.as_bytes()) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("its list of tools stays empty")
    }

    async fn call(&mut self, tool: &str) -> Result<()> {
        self.count += 1;
        let id = self.count;
        let list_request =
            if self.session.is_some() { wire::call_in_session(id, tool) } else { wire::call(id, tool) };
        let body = self.ask("tools/call", Some(tool), &list_request).await?;
        // Gateways differ in the order of members, so either may follow the id.
        let expected = [format!(r#""id":{id},"#), format!(r#""id":{id}}}"#)];
        ensure!(
            memchr(body, b"hello hello hello")
                && expected.iter().any(|expected| memchr(body, expected.as_bytes())),
            "wrong answer: {}",
            String::from_utf8_lossy(body)
        );
        Ok(())
    }

    /// Sends a message and returns the raw body of the response, with chunk or event framing.
    pub(crate) async fn ask(&mut self, method: &str, name: Option<&str>, body: &str) -> Result<&[u8]> {
        let (host, path, length, authorization) = (&self.host, &self.path, body.len(), &self.authorization);
        let session_header = match &self.session {
            None => {
                let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}")
            }
            Some(SessionInfo { id: None, .. }) => String::new(),
            Some(SessionInfo { version, id: Some(id) }) => {
                format!("mcp-protocol-version: {version}\r\nmcp-session-id: {id}\r\n")
            }
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\n{authorization}{session_header}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        let end = loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection was closed");
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        if !head.starts_with("HTTP/1.1 20") {
            bail!("refused: {}", String::from_utf8_lossy(&self.buffer));
        }
        self.head.clear();
        self.head.push_str(head);
        match field(&self.head, "content-length") {
            Some(length) => {
                let total_length = end + length.parse::<usize>()?;
                while self.buffer.len() < total_length {
                    ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
                }
            }
            None if field(&self.head, "transfer-encoding").is_some() => {
                while !self.buffer[end..].ends_with(b"0\r\n\r\n") {
                    ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
                }
            }
            None => {
                ensure!(self.head.starts_with("HTTP/1.1 202"), "neither a length nor chunks: {}", self.head);
            }
        }
        Ok(&self.buffer[end..])
    }
}

/// A header of a response.
fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
