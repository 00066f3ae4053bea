//! A minimal trace collector: accepts OTLP over HTTP and makes the spans available to tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::serving::TEST_TIMEOUT;

/// A received span.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) nanos: (u128, u128),
    pub(crate) facts: HashMap<String, Value>,
    /// The message of its status, if that is an error.
    pub(crate) error: Option<String>,
    pub(crate) state: Option<String>,
}

impl Span {
    fn read(span: &Value) -> Self {
        let text = |key: &str| span[key].as_str().unwrap_or_else(|| panic!("no {key} in {span}")).to_owned();
        let some = |key: &str| span[key].as_str().map(str::to_owned);
        let facts = span["attributes"].as_array().unwrap().iter().map(|fact| {
            let value = fact["value"].as_object().unwrap();
            assert_eq!(value.len(), 1, "{fact}");
            let (kind, value) = value.iter().next().unwrap();
            let value = match kind.as_str() {
                "stringValue" | "boolValue" => value.clone(),
                "intValue" => json!(value.as_str().unwrap().parse::<i64>().unwrap()),
                "arrayValue" => {
                    value["values"].as_array().unwrap().iter().map(|one| one["stringValue"].clone()).collect()
                }
                other => panic!("{other} in {span}"),
            };
            (fact["key"].as_str().unwrap().to_owned(), value)
        });
        let error =
            (span["status"]["code"] == 2).then(|| span["status"]["message"].as_str().unwrap().to_owned());
        Self {
            trace: text("traceId"),
            id: text("spanId"),
            parent: some("parentSpanId"),
            name: text("name"),
            kind: span["kind"].as_u64().unwrap(),
            nanos: (text("startTimeUnixNano").parse().unwrap(), text("endTimeUnixNano").parse().unwrap()),
            facts: facts.collect(),
            error,
            state: some("traceState"),
        }
    }
}

#[derive(Debug, Default)]
struct Received {
    spans: Vec<Span>,
    services: Vec<String>,
    /// Everything received, as text.
    text: String,
}

/// A collector that runs until this is dropped.
pub(crate) struct Collector {
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
    _serving: JoinSet<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Received>>::default();
        let taking = Arc::clone(&received);
        let mut serving = JoinSet::new();
        serving.spawn(accept_all(listener, taking));
        Self { url, received, _serving: serving }
    }

    /// Waits until the spans satisfy `enough`, and returns them.
    pub(crate) async fn spans_once(&self, enough: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let since = Instant::now();
        loop {
            let spans = self.received.lock().unwrap().spans.clone();
            if enough(&spans) {
                return spans;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "only {spans:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The spans received so far.
    pub(crate) fn so_far(&self) -> Vec<Span> {
        self.received.lock().unwrap().spans.clone()
    }

    /// The service names of the senders.
    pub(crate) fn services(&self) -> Vec<String> {
        self.received.lock().unwrap().services.clone()
    }

    /// Everything received, as text.
    pub(crate) fn text(&self) -> String {
        self.received.lock().unwrap().text.clone()
    }
}

async fn accept_all(listener: TcpListener, received: Arc<Mutex<Received>>) {
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        serving.spawn(accept_request(stream, Arc::clone(&received)));
    }
}

/// Serves one connection.
async fn accept_request(mut stream: TcpStream, received: Arc<Mutex<Received>>) {
    let mut read = Vec::new();
    loop {
        let head_end = loop {
            if let Some(index) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break index + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(read[..head_end].to_vec()).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length = length.trim().parse::<usize>().unwrap();
        while read.len() < head_end + length {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let body = String::from_utf8(read[head_end..head_end + length].to_vec()).unwrap();
        read.drain(..head_end + length);
        record(&mut received.lock().unwrap(), &head, &body);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

fn record(received: &mut Received, head: &str, body: &str) {
    received.text += head;
    received.text += body;
    let message: Value = serde_json::from_str(body).unwrap();
    for resource in message["resourceSpans"].as_array().unwrap() {
        for fact in resource["resource"]["attributes"].as_array().unwrap() {
            if fact["key"] == "service.name" {
                received.services.push(fact["value"]["stringValue"].as_str().unwrap().to_owned());
            }
        }
        for scope in resource["scopeSpans"].as_array().unwrap() {
            received.spans.extend(scope["spans"].as_array().unwrap().iter().map(Span::read));
        }
    }
}
