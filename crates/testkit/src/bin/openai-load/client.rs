//! Clients that stream: each over a connection of its own, one request after another. Every text is compared with its plan.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::chunked::Connection;
use crate::plan::Plan;

/// How long streams are held open.
const HOLD_MILLIS: u64 = 6_000;
/// The model of the hub; the model server ignores it.
const MODEL: &str = "toolhub/default";

/// Which API is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
}

impl Api {
    pub(crate) fn parse(name: &str) -> Result<Self> {
        match name {
            "chat" => Ok(Self::Chat),
            "responses" => Ok(Self::Responses),
            other => bail!("`{other}` is not `chat` or `responses`"),
        }
    }

    fn request(self, plan: Plan) -> (&'static str, Value) {
        let text = plan.request();
        match self {
            Self::Chat => {
                let messages = json!([{"role": "user", "content": text}]);
                ("chat/completions", json!({"model": MODEL, "messages": messages, "stream": true}))
            }
            Self::Responses => {
                ("responses", json!({"model": MODEL, "input": text, "stream": true, "store": false}))
            }
        }
    }

    /// The text of an event.
    fn delta(self, event: &Value) -> &str {
        match self {
            Self::Chat => event["choices"][0]["delta"]["content"].as_str(),
            Self::Responses if event["type"] == "response.output_text.delta" => event["delta"].as_str(),
            Self::Responses => None,
        }
        .unwrap_or_default()
    }
}

/// A load.
pub(crate) struct Load<'a> {
    /// `http://ADDRESS/v1`
    pub(crate) url: &'a str,
    pub(crate) api: Api,
    pub(crate) clients: usize,
    /// The number of requests of each client.
    pub(crate) requests: usize,
    pub(crate) plan: Plan,
}

impl Load<'_> {
    /// Prints the number of tokens, the median and the 99th percentile of the time to the first token in microseconds, and the
    /// whole time in seconds.
    #[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the figures")]
    pub(crate) async fn run(self) -> Result<()> {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..self.clients {
            let mut client = Client::open(self.url, self.api).await?;
            let (plan, requests) = (self.plan, self.requests);
            tasks.spawn(async move {
                let mut times = Vec::with_capacity(requests);
                for _ in 0..requests {
                    times.push(client.stream(plan, None).await?);
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            times.extend(joined??);
        }
        times.sort_unstable();
        let micros = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        let (tokens, seconds) = (times.len() * self.plan.tokens, started.elapsed().as_secs_f64());
        println!("{}", json!({"tokens": tokens, "p50": micros(50), "p99": micros(99), "seconds": seconds}));
        Ok(())
    }
}

/// Opens streams, prints a line when each has its first token, and reads them to the end.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the line")]
pub(crate) async fn hold(url: &str, api: Api, clients: usize) -> Result<()> {
    let plan = Plan { tokens: 2, pause_micros: 0, hold_millis: HOLD_MILLIS };
    let (sender, mut open) = watch::channel(0_usize);
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (mut client, sender) = (Client::open(url, api).await?, sender.clone());
        tasks.spawn(async move { client.stream(plan, Some(&sender)).await });
    }
    let all_open = open.wait_for(|open| *open == clients);
    tokio::time::timeout(Duration::from_millis(HOLD_MILLIS), all_open).await.context("not all began")??;
    println!("open");
    while let Some(joined) = tasks.join_next().await {
        joined??;
    }
    Ok(())
}

struct Client {
    connection: Connection,
    address: String,
    api: Api,
}

impl Client {
    async fn open(url: &str, api: Api) -> Result<Self> {
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1"));
        let address = address.with_context(|| format!("`{url}` is not http://ADDRESS/v1"))?.to_owned();
        Ok(Self { connection: Connection::open(&address).await?, address, api })
    }

    /// Streams a reply. Returns the time to its first token.
    async fn stream(&mut self, plan: Plan, open: Option<&watch::Sender<usize>>) -> Result<Duration> {
        let (path, body) = self.api.request(plan);
        let (address, body) = (&self.address, body.to_string());
        let request = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let started = Instant::now();
        self.connection.stream.get_mut().write_all(request.as_bytes()).await?;
        let head = self.connection.head().await?.context("no response")?;
        if !head.first_line.contains(" 200 ") || !head.is_chunked() {
            let body = self.connection.body(&head).await.unwrap_or_default();
            bail!("{}: {}", head.first_line, String::from_utf8_lossy(&body));
        }
        let (mut buffer, mut text, mut first) = (Vec::new(), String::new(), None);
        loop {
            let has_more = self.connection.chunk(&mut buffer).await?;
            while let Some(end) = buffer.windows(2).position(|window| window == b"\n\n") {
                let delta = self.delta(&buffer[..end])?;
                buffer.drain(..end + 2);
                if !delta.is_empty() && first.is_none() {
                    first = Some(started.elapsed());
                    if let Some(open) = open {
                        open.send_modify(|open| *open += 1);
                    }
                }
                text.push_str(&delta);
            }
            if !has_more {
                break;
            }
        }
        ensure!(text == plan.text(), "the text is `{text}` and not `{}`", plan.text());
        first.context("no token")
    }

    /// The text of a frame.
    fn delta(&self, frame: &[u8]) -> Result<String> {
        let frame = std::str::from_utf8(frame)?;
        let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or("[DONE]");
        if data == "[DONE]" {
            return Ok(String::new());
        }
        let event: Value = serde_json::from_str(data)?;
        let is_failed = event["error"].is_object() || event["type"] == "response.failed";
        ensure!(!is_failed, "the stream failed: {data}");
        Ok(self.api.delta(&event).to_owned())
    }
}
