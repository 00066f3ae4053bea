//! The HTTP+SSE transport (2024-11-05): one stream carries all messages of the server; ours are POSTs to the endpoint that it
//! names.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use toolhub_client_config::HttpSpec;
use toolhub_core::event_stream::{SseEvent, SseParser};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson};
use toolhub_mcp_wire::{McpError, jsonrpc};
use toolhub_oauth::Authorizer;
use url::Url;

use super::http::answer::status_error;
use super::http::client::{header_map, http_client, interrupted_response, parse_url, send_error};
use super::mux::{MAX_QUEUED_MESSAGES, Mux, MuxHandle};
use super::{MAX_RESULT_BYTES, OutgoingRequest, Repeat, ServerMessageHandler, Transport};
use crate::config::PermittedSpec;

/// Timeout of a POST.
const POST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of concurrent POSTs.
const MAX_POSTS: usize = 32;

/// The transport to an HTTP+SSE server.
#[derive(Debug)]
pub(crate) struct Sse {
    handle: MuxHandle<mpsc::Sender<String>>,
}

impl Sse {
    /// Opens the stream and waits for its `endpoint` event. The caller applies the timeout.
    pub(crate) async fn open(
        spec: &PermittedSpec<HttpSpec>,
        authorizer: Option<Arc<dyn Authorizer>>,
        inbox: Arc<dyn ServerMessageHandler>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        let (url, headers, client) = (parse_url(&spec.url)?, header_map(&spec.headers)?, http_client()?);
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let wrong = |error: &reqwest::Error| send_error(error, &url);
        let response = toolhub_oauth::send(request, authorizer.as_ref(), Repeat::Safe, wrong).await?;
        if !response.status().is_success() {
            return Err(status_error(response, None).await);
        }
        let mut events = Events::new(response);
        let endpoint = loop {
            match events.next().await? {
                Some(event) if event.kind == "endpoint" => break same_origin(&url, &event.data)?,
                Some(_) => {}
                None => return Err(McpError::connect("the stream ended before it named an endpoint")),
            }
        };
        let (outbound, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let (handle, mux) = MuxHandle::new(outbound, inbox);
        let sender = Sender { client, endpoint, headers, authorizer };
        tasks.spawn(Actor { events, mux, messages, sender }.run());
        Ok(Self { handle })
    }
}

/// Resolves the endpoint and checks its origin: otherwise a server could make us post secrets to other hosts.
fn same_origin(url: &Url, named: &str) -> Result<Url, McpError> {
    let endpoint = url.join(named.trim()).map_err(|error| {
        McpError::permanent(format!("the endpoint that it names (`{named}`) is no address: {error}"))
    })?;
    if endpoint.origin() == url.origin() {
        return Ok(endpoint);
    }
    Err(McpError::permanent(format!(
        "the endpoint that it names (`{named}`) is of another origin, which is refused"
    )))
}

fn closed_error() -> McpError {
    McpError::connect(LocalizedText::new("its stream has ended", "它的事件流已结束"))
}

impl Transport for Sse {
    fn request<'a>(&'a self, request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        self.handle.request(request, closed_error)
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(self.handle.notify(body, closed_error)))
    }

    fn is_open(&self) -> bool {
        self.handle.is_open()
    }
}

/// The stream as events.
struct Events {
    bytes: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    parser: SseParser,
    ready: std::collections::VecDeque<SseEvent>,
}

impl Events {
    fn new(response: Response) -> Self {
        Self {
            bytes: response.bytes_stream().boxed(),
            parser: SseParser::default(),
            ready: Default::default(),
        }
    }

    /// Returns the next event; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Result<Option<SseEvent>, McpError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.bytes.next().await {
                None => return Ok(None),
                Some(chunk) => {
                    self.ready
                        .extend(self.parser.push(&chunk.map_err(|error| interrupted_response(&error))?));
                }
            }
            if self.parser.buffered_bytes() > MAX_RESULT_BYTES {
                return Err(McpError::unreadable(format!(
                    "an event of more than {} MiB",
                    MAX_RESULT_BYTES >> 20
                )));
            }
        }
    }
}

#[derive(Clone)]
struct Sender {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
}

impl Sender {
    /// Posts one message. If it was not accepted, returns it with the error, to fail the request that waits for it.
    async fn post(self, body: String) -> Option<(String, McpError)> {
        let request =
            self.client.post(self.endpoint).headers(self.headers).header(CONTENT_TYPE, "application/json");
        let request = request.body(body.clone());
        let sent = async {
            let repeat = Repeat::IfUnprocessed;
            let response =
                toolhub_oauth::send(request, self.authorizer.as_ref(), repeat, interrupted_response).await?;
            match response.status().is_success() {
                true => Ok(()),
                false => Err(status_error(response, jsonrpc::extract_id(body.as_bytes())).await),
            }
        };
        match tokio::time::timeout(POST_TIMEOUT, sent).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some((body, error)),
            Err(_) => {
                let seconds = POST_TIMEOUT.as_secs();
                let cause = LocalizedText::new(
                    format!("it did not take a message for {seconds} s"),
                    format!("它有 {seconds} 秒没有接收消息"),
                );
                Some((body, McpError::Lost { cause, stderr: Vec::new(), exit: None }))
            }
        }
    }
}

struct Actor {
    events: Events,
    mux: Mux<mpsc::Sender<String>>,
    messages: mpsc::Receiver<String>,
    sender: Sender,
}

impl Actor {
    async fn run(mut self) {
        let mut posts = JoinSet::new();
        let handle_dropped = self.mux.handle_dropped();
        let error = loop {
            tokio::select! {
                () = handle_dropped.cancelled() => break None,
                Some(message) = self.messages.recv(), if posts.len() < MAX_POSTS => {
                    posts.spawn(self.sender.clone().post(message));
                }
                Some(posted) = posts.join_next() => {
                    if let Ok(Some((message, error))) = posted {
                        self.mux.fail_rejected(&message, error);
                    }
                }
                event = self.events.next() => match event {
                    Ok(Some(event)) if matches!(event.kind.as_str(), "" | "message") => {
                        let _ = self.mux.receive(&event.data.into());
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break Some(McpError::Lost { cause: LocalizedText::new("its stream ended", "它的事件流结束了"), stderr: Vec::new(), exit: None }),
                    Err(error) => break Some(error),
                },
            }
        };
        self.mux.end();
        match error {
            Some(error) => self.mux.fail_all(&error),
            // Sends the queued messages, such as cancellations.
            None => {
                let flush = async {
                    while let Ok(message) = self.messages.try_recv() {
                        posts.spawn(self.sender.clone().post(message));
                    }
                    while posts.join_next().await.is_some() {}
                };
                let _ = tokio::time::timeout(Duration::from_secs(2), flush).await;
            }
        }
    }
}
