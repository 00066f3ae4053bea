//! Calls over HTTP, as fast as answers come: a client that costs little, so that the machine is the server's.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::wire;

/// Calls by so many callers for so long; prints calls per second, and the median and the 99th percentile in
/// microseconds.
#[expect(clippy::print_stdout, reason = "the figures are for the benchmark that started it")]
pub(crate) async fn run(url: &str, callers: usize, seconds: f64) -> Result<()> {
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(seconds);
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let mut caller = Caller::new(url).await?;
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let started = Instant::now();
                caller.call().await?;
                times.push(started.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended??);
    }
    let took = began.elapsed();
    println!("{}", report(&mut times, took)?);
    Ok(())
}

/// The figures, as they are printed.
pub(crate) fn report(times: &mut [Duration], took: Duration) -> Result<String> {
    ensure!(!times.is_empty(), "not one call was answered");
    times.sort_unstable();
    let micros = |share: f64| {
        let place = ((times.len() - 1) as f64 * share) as usize;
        times[place].as_secs_f64() * 1e6
    };
    let rate = times.len() as f64 / took.as_secs_f64();
    Ok(format!(
        r#"{{"calls":{},"rate":{rate:.1},"p50":{:.1},"p99":{:.1}}}"#,
        times.len(),
        micros(0.5),
        micros(0.99)
    ))
}

/// Lists the tools so many times; prints the same.
#[expect(clippy::print_stdout, reason = "the figures are for the benchmark that started it")]
pub(crate) async fn list(url: &str, times: usize) -> Result<()> {
    let mut caller = Caller::new(url).await?;
    let began = Instant::now();
    let mut taken = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        let body = caller.ask("tools/list", None, &wire::list(1)).await?;
        ensure!(memchr(body, b"echo_9"), "the list has no tools");
        taken.push(started.elapsed());
    }
    println!("{}", report(&mut taken, began.elapsed())?);
    Ok(())
}

fn memchr(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

/// One connection that is kept.
pub(crate) struct Caller {
    stream: TcpStream,
    host: String,
    path: String,
    count: u64,
    buffer: Vec<u8>,
}

impl Caller {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("not an http url")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (host, path) = (host.to_owned(), format!("/{path}"));
        Ok(Self { stream, host, path, count: 0, buffer: Vec::with_capacity(1 << 16) })
    }

    async fn call(&mut self) -> Result<()> {
        self.count += 1;
        let id = self.count;
        let body = self.ask("tools/call", Some(wire::TOOL), &wire::call(id)).await?;
        let expected = format!(r#""id":{id},"#);
        ensure!(
            memchr(body, b"hello hello hello") && memchr(body, expected.as_bytes()),
            "wrong answer: {}",
            String::from_utf8_lossy(body)
        );
        Ok(())
    }

    pub(crate) async fn ask(&mut self, method: &str, name: Option<&str>, body: &str) -> Result<&[u8]> {
        let (host, path, length) = (&self.host, &self.path, body.len());
        let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}content-length: \
             {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection was closed");
            let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&self.buffer[..end])?;
            if !head.starts_with("HTTP/1.1 200") {
                bail!("refused: {}", String::from_utf8_lossy(&self.buffer));
            }
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .context("no content-length")?;
            let whole = end + 4 + length.1.trim().parse::<usize>()?;
            while self.buffer.len() < whole {
                ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
            }
            return Ok(&self.buffer[end + 4..whole]);
        }
    }
}
