//! Streamable HTTP: every message is a POST of its own. Reading what comes back is left to `answer`.

pub(super) mod answer;
pub(crate) mod client;
mod near;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolhub_core::{BoxFuture, RawJson, RawObject};
use url::Url;

use super::{Inbox, OutgoingRequest, Transport};
use crate::config::HttpSpec;
use crate::era::MODERN;
use crate::error::McpError;
use crate::headers;
use crate::oauth::{self, Authorizer};
use crate::wire;
use answer::{Cursor, Waiting, content_type};
use client::{CONNECT_DEADLINE, client, header_map, parse_url, send_error};
use near::{Answer, Near};

/// How long saying goodbye may take: a cancellation, the end of a session.
const FAREWELL: Duration = Duration::from_secs(2);

const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The way to an HTTP endpoint.
pub(crate) struct Http {
    inner: Arc<Inner>,
    /// Ends what runs on the transport's behalf when the transport goes.
    _closing: DropGuard,
}

struct Inner {
    client: Client,
    url: Url,
    near: Option<Near>,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// What a legacy server calls our session.
    session: ArcSwapOption<String>,
    /// The version both sides agreed on; before that no header names one.
    version: ArcSwapOption<String>,
    inbox: Arc<dyn Inbox>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.inner.url.as_str()).finish_non_exhaustive()
    }
}

impl Http {
    /// A way to an endpoint; nothing is sent yet. `authorizer` has the tokens it may want.
    pub(crate) fn new(
        spec: &HttpSpec,
        authorizer: Option<Arc<dyn Authorizer>>,
        inbox: Arc<dyn Inbox>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        let (url, headers, client) = (parse_url(&spec.url)?, header_map(&spec.headers)?, client()?);
        let (session, version) = (ArcSwapOption::empty(), ArcSwapOption::empty());
        let (tasks, closing) = (tasks.clone(), CancellationToken::new());
        let guard = closing.clone().drop_guard();
        let near = Near::to(&url);
        let inner = Inner { client, url, near, headers, authorizer, session, version, inbox, tasks, closing };
        let inner = Arc::new(inner);
        Ok(Self { inner, _closing: guard })
    }

    /// From now on every request names this version, or none.
    pub(crate) fn speak(&self, version: Option<&str>) {
        self.inner.version.store(version.map(|version| Arc::new(version.to_owned())));
    }

    /// Opens the stream on which a legacy server speaks unasked (2025-11-25, transports: listening), and keeps it
    /// open. A server that has none says so, and is left alone.
    pub(crate) fn listen(&self) {
        let inner = Arc::clone(&self.inner);
        self.inner.while_open(async move {
            let mut cursor = Cursor::default();
            while let Some(response) = inner.open_stream(cursor.id.as_deref()).await {
                let _ = inner.read_events(response, &mut cursor, None).await;
                tokio::time::sleep(cursor.pause).await;
            }
        });
    }

    /// Ends the session that a legacy server keeps for us (2025-11-25, transports: session management).
    pub(crate) fn end_session(&self) {
        let inner = Arc::clone(&self.inner);
        if inner.session.load().is_some() {
            self.inner.farewell(async move {
                let _ = inner.send(inner.dressed(inner.client.delete(inner.url.clone()))).await;
            });
        }
    }
}

impl Transport for Http {
    fn request(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<RawJson, McpError>> {
        Box::pin(async move {
            let mut headers = HeaderMap::new();
            if self.inner.is_modern() {
                if let Ok(method) = HeaderValue::from_str(&request.method) {
                    headers.insert(MCP_METHOD, method);
                }
                let name = request.name.as_deref().map(headers::encode);
                if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
                    headers.insert(MCP_NAME, name);
                }
                for (key, value) in &request.headers {
                    if let (Ok(key), Ok(value)) = (key.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                        headers.insert(key, value);
                    }
                }
            }
            // A modern server sees the closed stream; a legacy one is told (2025-11-25, utilities/cancellation).
            let told =
                !self.inner.is_modern() && !matches!(&*request.method, "initialize" | "server/discover");
            let mut guard = CancelOnDrop { http: self, id: told.then_some(request.id) };
            request.leaves();
            let answer = match self.inner.post(request.body, headers).await {
                Ok(answer) => answer,
                Err(error) => {
                    guard.id = None;
                    return Err(error);
                }
            };
            if request.method == "initialize" {
                self.inner.join_session(match &answer {
                    Answer::Whole(response) => response.headers(),
                    Answer::Stream(response) => response.headers(),
                });
            }
            let waiting = Waiting { id: request.id, on_progress: request.on_progress.as_ref() };
            let answer = match answer {
                Answer::Whole(response) => self.inner.whole_answer_to(waiting, response).await,
                Answer::Stream(response) => Box::pin(self.inner.answer_to(waiting, response)).await,
            };
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
        self.http.inner.farewell(async move {
            let _ = inner.post(body, HeaderMap::new()).await;
        });
    }
}

impl Inner {
    fn is_modern(&self) -> bool {
        self.version.load().as_deref().is_some_and(|version| MODERN.contains(&version.as_str()))
    }

    /// Runs something that ends with the transport.
    fn while_open(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Runs `farewell` after the transport is gone, if there is still somebody to run it.
    fn farewell(&self, farewell: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let bounded = async move {
                let _ = tokio::time::timeout(FAREWELL, farewell).await;
            };
            self.tasks.spawn_on(bounded, &runtime);
        }
    }

    /// Answers a question of the server's own.
    fn question(
        self: &Arc<Self>,
        id: RawJson,
        (method, params): (String, Option<RawJson>),
        via: Option<u64>,
    ) {
        let inner = Arc::clone(self);
        self.while_open(async move {
            let outcome = inner.inbox.request(method, params, via).await;
            let sent = inner.post(wire::answer(id, &outcome), HeaderMap::new());
            let _ = tokio::time::timeout(CONNECT_DEADLINE, sent).await;
        });
    }

    /// What every request carries.
    fn dressed(&self, mut request: RequestBuilder) -> RequestBuilder {
        request = request.headers(self.headers.clone());
        if let Some(session) = self.session.load().as_deref() {
            request = request.header("Mcp-Session-Id", session);
        }
        if let Some(version) = self.version.load().as_deref() {
            request = request.header("MCP-Protocol-Version", version);
        }
        request
    }

    /// Sends a request, with a token where the server wants one.
    async fn send(&self, request: RequestBuilder) -> Result<Response, McpError> {
        oauth::send(request, self.authorizer.as_ref(), |error| send_error(error, &self.url)).await
    }

    /// What a message on the short way carries.
    fn dress(&self, headers: &mut HeaderMap) {
        for (key, value) in &self.headers {
            headers.insert(key, value.clone());
        }
        let text = |text: &str| HeaderValue::from_str(text).ok();
        if let Some(session) = self.session.load().as_deref().and_then(|session| text(session)) {
            headers.insert(MCP_SESSION_ID, session);
        }
        if let Some(version) = self.version.load().as_deref().and_then(|version| text(version)) {
            headers.insert(MCP_PROTOCOL_VERSION, version);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(client::USER_AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }

    /// Posts one message; an error status is an error.
    async fn post(&self, body: String, extra: HeaderMap) -> Result<Answer, McpError> {
        let body = Bytes::from(body);
        let stranger = self.authorizer.as_ref().is_none_or(|authorizer| authorizer.is_stranger());
        if let Some(near) = self.near.as_ref().filter(|_| stranger) {
            let mut headers = extra.clone();
            self.dress(&mut headers);
            let answer = near.post(headers, body.clone()).await?;
            let status = match &answer {
                Answer::Whole(response) => response.status(),
                Answer::Stream(response) => response.status(),
            };
            if status.is_success() {
                return Ok(answer);
            }
            // One that wants to know who is calling, or is elsewhere by now, did not look at the message.
            if !matches!(status.as_u16(), 401 | 403) && !status.is_redirection() {
                let response = match answer {
                    Answer::Whole(response) => near::far(response),
                    Answer::Stream(response) => response,
                };
                return Err(Box::pin(self.status_error(response)).await);
            }
        }
        Box::pin(self.post_far(body, extra)).await.map(Answer::Stream)
    }

    async fn post_far(&self, body: Bytes, extra: HeaderMap) -> Result<Response, McpError> {
        let request = self
            .dressed(self.client.post(self.url.clone()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let response = self.send(request.headers(extra).body(body)).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            _ => Err(self.status_error(response).await),
        }
    }

    /// The stream of what the server says unasked; `None` where it has none.
    async fn open_stream(&self, last: Option<&str>) -> Option<Response> {
        let mut request = self.dressed(self.client.get(self.url.clone())).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = self.send(request).await.ok()?;
        (response.status().is_success() && content_type(&response) == "text/event-stream").then_some(response)
    }

    /// Takes the session that `initialize` began. Other answers may name one too, as some servers do of a probe
    /// they refuse; that one is not ours.
    fn join_session(&self, headers: &HeaderMap) {
        let named = headers.get("mcp-session-id").and_then(|value| value.to_str().ok());
        self.session.store(named.map(|session| Arc::new(session.to_owned())));
    }
}
