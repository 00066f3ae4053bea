//! Streamable HTTP: every message is a POST of its own, answered with JSON or with a stream of events.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use tokio_util::task::TaskTracker;
use toolhub_core::{BoxFuture, RawJson, RawObject};
use url::Url;

use super::sse::SseParser;
use super::stdio::progress_token;
use super::{Inbox, MAX_RESULT_BYTES, OnProgress, OutgoingRequest, Transport};
use crate::error::McpError;
use crate::headers;
use crate::wire::{self, Incoming, NotAMessage};

/// How long reaching the machine itself may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// How much of an error's body is read and shown.
const ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_CHARS: usize = 300;
const MAX_REDIRECTS: usize = 3;

/// The way to an HTTP endpoint.
pub(crate) struct Http {
    inner: Arc<Inner>,
    tasks: TaskTracker,
}

struct Inner {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// What a legacy server calls our session.
    session: ArcSwapOption<String>,
    /// The version both sides agreed on; before that no header names one.
    version: ArcSwapOption<String>,
    inbox: Arc<dyn Inbox>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.inner.url.as_str()).finish_non_exhaustive()
    }
}

impl Http {
    /// A way to `url`; nothing is sent yet.
    pub(crate) fn new(
        url: &str,
        headers: &[(String, String)],
        inbox: Arc<dyn Inbox>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        let url = Url::parse(url).map_err(|error| McpError::connect(format!("its url is wrong: {error}")))?;
        let headers = header_map(headers)?;
        let client = client()?;
        let (session, version) = (ArcSwapOption::empty(), ArcSwapOption::empty());
        let inner = Arc::new(Inner { client, url, headers, session, version, inbox });
        Ok(Self { inner, tasks: tasks.clone() })
    }

    /// From now on every request names this version, or none.
    pub(crate) fn speak(&self, version: Option<&str>) {
        self.inner.version.store(version.map(|version| Arc::new(version.to_owned())));
    }

    fn is_modern(&self) -> bool {
        self.inner
            .version
            .load()
            .as_deref()
            .is_some_and(|version| crate::era::MODERN.contains(&version.as_str()))
    }
}

/// One client for all servers: it keeps the pools, and its certificates take a while to load.
fn client() -> Result<Client, McpError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        // Fails only where somebody installed another provider before, which will do as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let same_origin = Policy::custom(|attempt| {
            let from = attempt.previous().last().map(Url::origin);
            if from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        Client::builder()
            .user_agent(concat!("toolhub/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_DEADLINE)
            .redirect(same_origin)
            .build()
            .map_err(|error| root_cause(&error))
    });
    client.clone().map_err(McpError::connect)
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, McpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong =
            |what: &str| McpError::connect(format!("header `{name}` in its config has a wrong {what}"));
        let key: HeaderName = name.parse().map_err(|_| wrong("name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

impl Transport for Http {
    fn request(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let mut headers = HeaderMap::new();
            let name = request.name.as_deref().map(|name| ("Mcp-Name".to_owned(), headers::encode(name)));
            if self.is_modern() {
                let method = ("Mcp-Method".to_owned(), request.method.to_owned());
                for (key, value) in [method].into_iter().chain(name).chain(request.headers.iter().cloned()) {
                    if let (Ok(key), Ok(value)) = (key.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                        headers.insert(key, value);
                    }
                }
            }
            // A modern server sees the closed stream; a legacy one is told (2025-11-25, utilities/cancellation).
            let told =
                !self.is_modern() && request.method != "initialize" && request.method != "server/discover";
            let mut guard = CancelOnDrop { http: self, id: told.then_some(request.id) };
            let response = self.inner.post(request.body, headers).await?;
            if request.method == "initialize" {
                self.inner.join_session(&response);
            }
            let answer = self.answer_to(request.id, response, request.on_progress.as_ref()).await;
            guard.id = None;
            answer
        })
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(async move {
            self.inner.post(body, HeaderMap::new()).await?;
            Ok(())
        })
    }

    fn is_open(&self) -> bool {
        true
    }
}

struct CancelOnDrop<'a> {
    http: &'a Http,
    id: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let params = RawObject::default().with("requestId", id).with("reason", "the caller went away");
        let body = wire::notification("notifications/cancelled", &params);
        let inner = Arc::clone(&self.http.inner);
        // The runtime may be going down, and then nobody is left to tell.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let tell = async move {
                let _ =
                    tokio::time::timeout(Duration::from_secs(2), inner.post(body, HeaderMap::new())).await;
            };
            self.http.tasks.spawn_on(tell, &runtime);
        }
    }
}

impl Inner {
    /// Posts one message; an error status is an error.
    async fn post(&self, body: String, extra: HeaderMap) -> Result<Response, McpError> {
        let mut request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = self.session.load().as_deref() {
            request = request.header("Mcp-Session-Id", session);
        }
        if let Some(version) = self.version.load().as_deref() {
            request = request.header("MCP-Protocol-Version", version);
        }
        let response =
            request.headers(extra).body(body).send().await.map_err(|error| self.send_error(&error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(self.status_error(status, response).await),
        }
    }

    /// Takes the session that `initialize` began. Other answers may name one too, as some servers do of a probe
    /// they refuse; that one is not ours.
    fn join_session(&self, response: &Response) {
        let named = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
        self.session.store(named.map(|session| Arc::new(session.to_owned())));
    }

    fn send_error(&self, error: &reqwest::Error) -> McpError {
        let place = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or_default();
        let cause = format!("{} ({place}:{port})", root_cause(error));
        if error.is_connect() || error.is_builder() {
            McpError::connect(cause)
        } else {
            McpError::Lost { cause, stderr: Vec::new() }
        }
    }

    async fn status_error(&self, status: StatusCode, response: Response) -> McpError {
        let location =
            response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
        // Legacy servers say 404 of a session they forgot (2025-11-25, transports: session management).
        if status == StatusCode::NOT_FOUND && self.session.load().is_some() {
            return McpError::SessionExpired;
        }
        // A modern server explains itself in the body, under an id or none.
        if let Some(error) = wire::error_in(&body) {
            return error;
        }
        let mut text: String = String::from_utf8_lossy(&body).chars().take(ERROR_BODY_CHARS).collect();
        text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(location) = location {
            text = format!("it points to {location}, which is not followed to another origin");
        }
        McpError::Http { status: status.as_u16(), body: text }
    }
}

impl Http {
    async fn answer_to(
        &self,
        id: u64,
        response: Response,
        on_progress: Option<&OnProgress>,
    ) -> Result<RawJson, McpError> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "text/event-stream" => self.stream_answer(id, response, on_progress).await,
            "application/json" => {
                let body = read_body(response, MAX_RESULT_BYTES).await?;
                self.receive(&body, id, on_progress)
                    .unwrap_or_else(|| Err(McpError::unreadable("the body holds no answer to the request")))
            }
            other => {
                let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
                let what = if body.is_empty() { "an empty body".to_owned() } else { format!("`{other}`") };
                Err(McpError::unreadable(format!("{what} where JSON or an event stream was expected")))
            }
        }
    }

    async fn stream_answer(
        &self,
        id: u64,
        response: Response,
        on_progress: Option<&OnProgress>,
    ) -> Result<RawJson, McpError> {
        let mut parser = SseParser::default();
        let mut bytes = response.bytes_stream();
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk.map_err(|error| lost(&error))?;
            for event in parser.push(&chunk) {
                // Events of other kinds, and the empty one that only primes resumption, carry no message.
                if !matches!(event.kind.as_str(), "" | "message") || event.data.is_empty() {
                    continue;
                }
                if let Some(answer) = self.receive(event.data.as_bytes(), id, on_progress) {
                    return answer;
                }
            }
            if parser.held() > MAX_RESULT_BYTES {
                return Err(too_large(MAX_RESULT_BYTES));
            }
        }
        Err(McpError::Lost { cause: "the stream ended before the answer".to_owned(), stderr: Vec::new() })
    }

    /// Takes one message in; the answer to request `id`, if that is what it is.
    fn receive(
        &self,
        message: &[u8],
        id: u64,
        on_progress: Option<&OnProgress>,
    ) -> Option<Result<RawJson, McpError>> {
        match wire::read(message) {
            Ok(Incoming::Response { id: answered, outcome }) if answered == id => return Some(outcome),
            Ok(Incoming::Response { id: other, .. }) => {
                self.inner
                    .inbox
                    .oddity(format!("an answer to request {other} in the stream of request {id}"));
            }
            Ok(Incoming::Notification { method, params }) if method == "notifications/progress" => {
                if let (Some(params), Some(on_progress)) = (params, on_progress)
                    && progress_token(&params) == Some(id)
                {
                    on_progress(&params);
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                self.inner.inbox.notification(&method, params.as_ref());
            }
            Ok(Incoming::Request { id, method, params }) => {
                let body = wire::answer(id, &self.inner.inbox.request(&method, params.as_ref()));
                let inner = Arc::clone(&self.inner);
                self.tasks.spawn(async move {
                    let _ = tokio::time::timeout(CONNECT_DEADLINE, inner.post(body, HeaderMap::new())).await;
                });
            }
            // Only one request is answered here, so what cannot be read is its answer.
            Err(NotAMessage::Odd { detail, .. }) => return Some(Err(McpError::unreadable(detail))),
            Err(NotAMessage::Noise) => return Some(Err(McpError::unreadable("the answer is not JSON"))),
        }
        None
    }
}

async fn read_body(response: Response, most: usize) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|error| lost(&error))?);
        if body.len() > most {
            return Err(too_large(most));
        }
    }
    Ok(body)
}

fn too_large(most: usize) -> McpError {
    McpError::unreadable(format!("the answer has more than {} MiB", most >> 20))
}

fn lost(error: &reqwest::Error) -> McpError {
    McpError::Lost { cause: root_cause(error), stderr: Vec::new() }
}

/// The innermost reason: `connection refused` rather than the layers around it. Never the url, which may hold secrets.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
