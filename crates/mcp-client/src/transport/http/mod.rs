//! Streamable HTTP transport: every message is a POST request. `answer` reads the responses.

pub(super) mod answer;
pub(crate) mod client;
mod connect;
mod direct;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod request_head;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, RequestBuilder, Response};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolhub_client_config::HttpSpec;
use toolhub_core::ports::boxed;
use toolhub_core::{BoxFuture, Effect, RawJson, RawObject};
use toolhub_mcp_wire::headers::{PROTOCOL_VERSION, SESSION_ID};
use toolhub_mcp_wire::{McpError, jsonrpc};
use toolhub_oauth::http_client::CONNECT_TIMEOUT;
use toolhub_oauth::{Authorizer, ResponseTo};
use url::Url;

use super::{OutgoingRequest, Repeat, ServerMessageHandler, Transport};
use crate::config::PermittedSpec;
use answer::{AwaitedRequest, Cursor, MAX_DRAINING_STREAMS, content_type};
use client::client_for;
use client::header_map;
use client::parse_url;
use client::send_error;
use direct::{DirectClient, DirectResponse, MAX_INLINE_BODY_BYTES};
use request_head::RequestHead;

/// How often the pause before the GET stream is reopened doubles while the server cannot be reached: 500 ms to 32 s.
const MAX_DOUBLINGS: u32 = 6;
/// Timeout for cancellations and for ending a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The transport to an HTTP endpoint.
pub(crate) struct Http {
    inner: Arc<HttpInner>,
    /// Cancels the background tasks on drop.
    _closing: DropGuard,
}

struct HttpInner {
    url: Url,
    direct: Option<Arc<DirectClient>>,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// The negotiated version and session, with the headers that follow from them.
    request_head: ArcSwap<RequestHead>,
    inbox: Arc<dyn ServerMessageHandler>,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Limits the streams that are drained after their answer.
    drain_permits: Arc<Semaphore>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.inner.url.as_str()).finish_non_exhaustive()
    }
}

impl Http {
    /// Creates the transport without sending anything. `authorizer` provides access tokens.
    pub(crate) fn new(
        spec: &PermittedSpec<HttpSpec>,
        authorizer: Option<Arc<dyn Authorizer>>,
        inbox: Arc<dyn ServerMessageHandler>,
        tasks: &TaskTracker,
    ) -> Result<Self, McpError> {
        let (url, headers) = (parse_url(&spec.url)?, header_map(&spec.headers)?);
        client_for(&url)?;
        let (tasks, closing) = (tasks.clone(), CancellationToken::new());
        let guard = closing.clone().drop_guard();
        let drain_permits = Arc::new(Semaphore::new(MAX_DRAINING_STREAMS));
        let direct = DirectClient::to(&url).map(Arc::new);
        let request_head = ArcSwap::from_pointee(RequestHead::new(direct.as_deref(), &headers));
        let inner = HttpInner {
            url,
            direct,
            headers,
            authorizer,
            request_head,
            inbox,
            tasks,
            closing,
            drain_permits,
        };
        Ok(Self { inner: Arc::new(inner), _closing: guard })
    }

    /// Sets the `MCP-Protocol-Version` header of all further requests.
    pub(crate) fn set_protocol_version(&self, version: Option<&str>) {
        self.inner.update_request_head(|request_head| request_head.version = version.map(str::to_owned));
    }

    /// Opens the GET stream for unsolicited messages of a legacy server (2025-11-25, transports: listening) and reopens it when
    /// it ends or cannot be reached. Stops if the server does not offer one.
    pub(crate) fn listen(&self) {
        let inner = Arc::clone(&self.inner);
        self.inner.spawn_while_open(async move {
            let mut cursor = Cursor::default();
            let mut failures = 0;
            loop {
                match inner.open_stream(cursor.id.as_deref()).await {
                    Ok(Some(response)) => {
                        failures = 0;
                        let _ = inner.read_events(response, &mut cursor, None).await;
                    }
                    Ok(None) => break,
                    Err(_) => failures += 1,
                }
                let backoff = cursor.pause.saturating_mul(1 << failures.min(MAX_DOUBLINGS));
                tokio::time::sleep(backoff).await;
            }
        });
    }

    /// Whether the server has assigned a session.
    pub(crate) fn has_session(&self) -> bool {
        self.inner.request_head.load().session.is_some()
    }

    /// Ends the session of a legacy server with DELETE (2025-11-25, transports: session management).
    pub(crate) fn end_session(&self) {
        let inner = Arc::clone(&self.inner);
        if self.has_session() {
            self.inner.spawn_with_timeout(async move {
                if let Ok(client) = inner.client() {
                    let request = inner.with_headers(client.delete(inner.url.clone()));
                    let _ = inner.send(request, Repeat::Safe).await;
                }
            });
        }
    }
}

impl Transport for Http {
    fn request<'a>(&'a self, mut request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        boxed(|| async move {
            let cancellable = !matches!(request.method, "initialize" | "server/discover");
            let mut guard = CancelOnDrop { http: self, id: cancellable.then_some(request.id) };
            request.on_send();
            let body = std::mem::take(&mut request.body);
            let answer = match self.inner.post(body, Some(&request)).await {
                Ok(answer) => answer,
                Err(error) => {
                    guard.id = None;
                    return Err(error);
                }
            };
            if request.method == "initialize" {
                self.inner.join_session(&answer.headers());
            }
            let awaited = AwaitedRequest { id: request.id, listener: request.listener };
            let answer = match answer {
                DirectResponse::Whole(head, body, reusable) if head.plain_json => {
                    let answer = self.inner.parse_answer(awaited, &body);
                    // The connection is reused only after a matching response: a mismatch means that requests and responses are
                    // out of step.
                    if answer.is_match() {
                        reusable.return_to_pool(self.inner.direct.as_ref());
                    }
                    answer.into_result()
                }
                other => Box::pin(self.inner.read_answer(awaited, other.into_response())).await,
            };
            guard.id = None;
            answer
        })
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(async move {
            self.inner.post(body, None).await?.done(self.inner.direct.as_ref());
            Ok(())
        })
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// Under which conditions a message may be repeated; notifications and responses only if they were refused unprocessed.
fn repeat_of(outgoing: Option<&OutgoingRequest<'_>>) -> Repeat {
    outgoing.map_or(Repeat::IfUnprocessed, |request| request.repeat)
}

struct CancelOnDrop<'a> {
    http: &'a Http,
    id: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // A modern server detects the closed stream; a legacy one needs a notification (2025-11-25, utilities/cancellation).
        let Some(id) = self.id.filter(|_| !self.http.inner.is_modern()) else { return };
        let params =
            RawObject::default().with("requestId", id).with("reason", "the caller cancelled the request");
        let body = jsonrpc::notification("notifications/cancelled", &params);
        let inner = Arc::clone(&self.http.inner);
        self.http.inner.spawn_with_timeout(async move {
            if let Ok(answer) = inner.post(body, None).await {
                answer.done(inner.direct.as_ref());
            }
        });
    }
}

impl HttpInner {
    fn is_modern(&self) -> bool {
        self.request_head.load().is_modern()
    }

    /// Changes the negotiated values.
    fn update_request_head(&self, change: impl Fn(&mut RequestHead)) {
        self.request_head.rcu(|request_head| {
            let mut request_head = RequestHead::clone(request_head);
            change(&mut request_head);
            request_head.serialize_lines(self.direct.as_deref(), &self.headers);
            request_head
        });
    }

    /// Spawns a task that is cancelled when the transport is dropped.
    fn spawn_while_open(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Spawns `spawn_with_timeout` with a timeout; it may outlive the transport. Does nothing outside a runtime.
    fn spawn_with_timeout(&self, spawn_with_timeout: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let bounded = async move {
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, spawn_with_timeout).await;
            };
            self.tasks.spawn_on(bounded, &runtime);
        }
    }

    /// Answers a request of the server.
    fn answer_server_request(
        self: &Arc<Self>,
        id: RawJson,
        method: String,
        params: Option<RawJson>,
        via: Option<u64>,
    ) {
        let inner = Arc::clone(self);
        self.spawn_while_open(async move {
            let outcome = inner.inbox.request(method, params, via).await;
            let sent = inner.post(jsonrpc::answer(id, &outcome), None);
            if let Ok(Ok(answer)) = tokio::time::timeout(CONNECT_TIMEOUT, sent).await {
                answer.done(inner.direct.as_ref());
            }
        });
    }

    /// Adds the headers that every request carries.
    fn with_headers(&self, mut request: RequestBuilder) -> RequestBuilder {
        request = request.headers(self.headers.clone());
        let request_head = self.request_head.load();
        if let Some(session) = &request_head.session {
            request = request.header(SESSION_ID, session);
        }
        if let Some(version) = &request_head.version {
            request = request.header(PROTOCOL_VERSION, version);
        }
        request
    }

    /// The client for requests to the endpoint.
    fn client(&self) -> Result<Client, McpError> {
        client_for(&self.url)
    }

    /// Sends a request, with an access token if the server requires one.
    async fn send(&self, request: RequestBuilder, repeat: Repeat) -> Result<Response, McpError> {
        toolhub_oauth::send(request, self.authorizer.as_ref(), repeat, |error| send_error(error, &self.url))
            .await
    }

    /// Posts one message; an error status is an error. `outgoing` is the request, or `None` for notifications and responses.
    async fn post(
        &self,
        body: String,
        outgoing: Option<&OutgoingRequest<'_>>,
    ) -> Result<DirectResponse, McpError> {
        let without_token = self.authorizer.as_ref().is_none_or(|authorizer| authorizer.has_no_token());
        if let Some(direct) = self.direct.as_ref().filter(|_| without_token) {
            let body_capacity = if body.len() <= MAX_INLINE_BODY_BYTES { body.len() } else { 0 };
            let head = self.request_head.load().head(outgoing, body_capacity);
            if let Some(answer) = direct.post(head, &body).await? {
                let status = answer.status();
                if status.is_success() {
                    return Ok(answer);
                }
                // Logins and redirects are handled by the general client.
                let headers = answer.headers();
                let first = ResponseTo { url: &self.url, status, headers: &headers };
                let again = match status.as_u16() {
                    307 | 308 | 401 | 403 => Box::pin(self.post_again(body, outgoing, first)).await?,
                    _ => None,
                };
                return match again {
                    Some(response) => self.checked(response, outgoing).await.map(DirectResponse::Stream),
                    None => {
                        let id = outgoing.map(|request| request.id);
                        let response = answer.into_response();
                        Box::pin(self.error_status(response, &self.url, id)).await.map(DirectResponse::Stream)
                    }
                };
            }
        }
        Box::pin(self.post_general(body, outgoing)).await.map(DirectResponse::Stream)
    }

    /// The request that posts a message with the general client.
    fn general_post(
        &self,
        body: String,
        outgoing: Option<&OutgoingRequest<'_>>,
    ) -> Result<RequestBuilder, McpError> {
        let extra_headers = self.request_head.load().extra_headers(outgoing);
        let request = self
            .with_headers(self.client()?.post(self.url.clone()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        Ok(request.headers(extra_headers).body(body))
    }

    async fn post_general(
        &self,
        body: String,
        outgoing: Option<&OutgoingRequest<'_>>,
    ) -> Result<Response, McpError> {
        let response = self.send(self.general_post(body, outgoing)?, repeat_of(outgoing)).await?;
        self.checked(response, outgoing).await
    }

    /// Posts a message again, to another URL or with a token, if its first response requires it; `None` if that is final.
    async fn post_again(
        &self,
        body: String,
        outgoing: Option<&OutgoingRequest<'_>>,
        first: ResponseTo<'_>,
    ) -> Result<Option<Response>, McpError> {
        let request = self.general_post(body, outgoing)?;
        let repeat = repeat_of(outgoing);
        let wrong = |error: &reqwest::Error| send_error(error, &self.url);
        toolhub_oauth::send_again(request, self.authorizer.as_ref(), repeat, first, wrong).await
    }

    /// A response with an error status becomes an error.
    async fn checked(
        &self,
        response: Response,
        outgoing: Option<&OutgoingRequest<'_>>,
    ) -> Result<Response, McpError> {
        match response.status() {
            status if status.is_success() => Ok(response),
            _ => {
                let (url, id) = (response.url().clone(), outgoing.map(|request| request.id));
                Box::pin(self.error_status(response, &url, id)).await
            }
        }
    }

    /// Opens the GET stream. Returns `None` if the server does not offer one, and an error if it cannot be reached at the moment.
    async fn open_stream(&self, last: Option<&str>) -> Result<Option<Response>, McpError> {
        let request = self.client()?.get(self.url.clone());
        let mut request = self.with_headers(request).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = self.send(request, Repeat::Safe).await?;
        let status = response.status();
        if matches!(status.as_u16(), 502..=504) {
            let (body, retry_after, effect) = (String::new(), None, Effect::None);
            return Err(McpError::Http { status: status.as_u16(), body, retry_after, effect });
        }
        let offered = status.is_success() && content_type(&response) == "text/event-stream";
        Ok(offered.then_some(response))
    }

    /// Takes the session id from the response to `initialize`. Some servers also send one with the error to the probe; that one
    /// is ignored.
    fn join_session(&self, headers: &HeaderMap) {
        let named = headers.get(SESSION_ID).and_then(|value| value.to_str().ok());
        self.update_request_head(|request_head| request_head.session = named.map(str::to_owned));
    }
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;
