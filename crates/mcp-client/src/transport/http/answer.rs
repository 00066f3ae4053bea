//! Reads responses: bodies and event streams, with size limits; resumes interrupted streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use toolhub_core::RawJson;
use toolhub_core::error::Effect;
use toolhub_core::event_stream::{SseEvent, SseParser};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::jsonrpc::{self, MessageError, ServerMessage};
use toolhub_oauth::{ResponseTo, is_unprocessed};
use url::Url;

use super::HttpInner;
use super::client::{interrupted_response, record_mismatch};
use crate::transport::{MAX_RESULT_BYTES, Repeat, RequestObserver, progress_token};

/// How much of an error body is read (bytes) and shown (characters).
const ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_CHARS: usize = 300;
/// The JSON-RPC codes that servers send with status 404 for an unknown session: invalid request (Python SDK), and "session not
/// found" (TypeScript and C# SDKs, this gateway).
const SESSION_CODES: [i64; 2] = [-32600, -32001];
/// How long a stream may take to end after its answer, and how many streams may do so at a time. Otherwise the stream is
/// dropped and its connection closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const MAX_DRAINING_STREAMS: usize = 64;
/// Maximum number of resumptions of one stream.
const MAX_RESUMPTIONS: u32 = 5;
/// The pause before a resumption, if the server does not specify one, and its upper limit.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(30);
/// Upper limit for `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The request whose answer is awaited.
#[derive(Clone, Copy)]
pub(super) struct AwaitedRequest<'a> {
    pub(super) id: u64,
    pub(super) listener: Option<&'a Arc<dyn RequestObserver>>,
}

/// The meaning of a message for the awaited request.
pub(super) enum ReceivedMessage {
    /// Its response.
    Answer(Result<RawJson, McpError>),
    /// A response to another request, or an invalid message: requests and responses are out of step.
    Mismatch(McpError),
    /// Another message, which was processed.
    Other,
}

impl ReceivedMessage {
    pub(super) fn is_match(&self) -> bool {
        matches!(self, Self::Answer(_))
    }

    /// The result if the body contains nothing else.
    pub(super) fn into_result(self) -> Result<RawJson, McpError> {
        match self {
            Self::Answer(answer) => answer,
            Self::Mismatch(error) => Err(error),
            Self::Other => Err(McpError::unreadable("the body contains no response to the request")),
        }
    }
}

impl HttpInner {
    /// Reads the answer from a complete body.
    pub(super) fn parse_answer(
        self: &Arc<Self>,
        awaited: AwaitedRequest<'_>,
        body: &Bytes,
    ) -> ReceivedMessage {
        self.receive(body, Some(awaited))
    }

    pub(super) async fn read_answer(
        self: &Arc<Self>,
        awaited: AwaitedRequest<'_>,
        response: Response,
    ) -> Result<RawJson, McpError> {
        match content_type(&response).as_str() {
            "text/event-stream" => self.stream_answer(awaited, response).await,
            "application/json" => {
                let body = read_body(response, MAX_RESULT_BYTES).await?;
                let answer = self.parse_answer(awaited, &body.into());
                if !answer.is_match() {
                    record_mismatch(&self.url);
                }
                answer.into_result()
            }
            other => {
                let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
                let what = if body.is_empty() { "an empty body".to_owned() } else { format!("`{other}`") };
                Err(McpError::unreadable(format!("{what} where JSON or an event stream was expected")))
            }
        }
    }

    /// Reads a stream up to its answer. An interrupted legacy stream is resumed if its events have ids (2025-11-25, transports:
    /// resumability).
    async fn stream_answer(
        self: &Arc<Self>,
        awaited: AwaitedRequest<'_>,
        response: Response,
    ) -> Result<RawJson, McpError> {
        let mut cursor = Cursor::default();
        let mut reading = Ok(response);
        for _ in 0..=MAX_RESUMPTIONS {
            let broken = match reading {
                Ok(response) => match self.read_events(response, &mut cursor, Some(awaited)).await {
                    Ok(Some(answer)) => return answer,
                    Ok(None) => "the stream ended before the answer".to_owned(),
                    Err(error @ McpError::Unreadable { .. }) => return Err(error),
                    Err(error) => error.to_string(),
                },
                Err(McpError::Lost { cause, .. } | McpError::Connect { cause, .. }) => cause.to_string(),
                Err(error) => return Err(error),
            };
            let Some(last) = cursor.id.clone().filter(|_| !self.is_modern()) else {
                return Err(McpError::Lost { cause: broken.into(), stderr: Vec::new(), exit: None });
            };
            self.inbox
                .report_anomaly(format!("a stream that broke off ({broken}); taking it up after `{last}`"));
            tokio::time::sleep(cursor.pause).await;
            reading = self.resume(&last).await;
        }
        let cause = format!("the stream broke off {} times before the answer", MAX_RESUMPTIONS + 1);
        Err(McpError::Lost { cause: cause.into(), stderr: Vec::new(), exit: None })
    }

    /// Reads events until the answer arrives or the stream ends.
    pub(super) async fn read_events(
        self: &Arc<Self>,
        response: Response,
        cursor: &mut Cursor,
        awaited: Option<AwaitedRequest<'_>>,
    ) -> Result<Option<Result<RawJson, McpError>>, McpError> {
        let mut parser = SseParser::default();
        let mut bytes = response.bytes_stream();
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk.map_err(|error| interrupted_response(&error))?;
            let mut events = parser.push(&chunk).into_iter();
            while let Some(event) = events.next() {
                cursor.update(&event);
                // Events of other types, and the empty event that only sets the id for resumption, carry no message.
                if !matches!(event.kind.as_str(), "" | "message") || event.data.is_empty() {
                    continue;
                }
                match self.receive(&event.data.into(), awaited) {
                    ReceivedMessage::Other => {}
                    ReceivedMessage::Answer(answer) => {
                        // With events left, the stream is dropped, which closes its connection.
                        if events.all(|event| event.data.is_empty()) {
                            self.drain_stream(bytes);
                        }
                        return Ok(Some(answer));
                    }
                    ReceivedMessage::Mismatch(error) => {
                        record_mismatch(&self.url);
                        return Ok(Some(Err(error)));
                    }
                }
            }
            if parser.buffered_bytes() > MAX_RESULT_BYTES {
                return Err(too_large(MAX_RESULT_BYTES));
            }
        }
        Ok(None)
    }

    /// Reads the stream to its end after the answer, so that its connection can be reused. Drops the stream, and with it the
    /// connection, if anything but whitespace follows.
    fn drain_stream(&self, mut stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + Unpin + 'static) {
        let blank = |chunk: &Bytes| chunk.trim_ascii().is_empty();
        match stream.next().now_or_never() {
            Some(None | Some(Err(_))) => return,
            Some(Some(Ok(chunk))) if !blank(&chunk) => return,
            Some(Some(Ok(_))) | None => {}
        }
        let Ok(permit) = Arc::clone(&self.drain_permits).try_acquire_owned() else { return };
        self.spawn_while_open(async move {
            let ended = async {
                while stream.next().await.is_some_and(|chunk| chunk.is_ok_and(|chunk| blank(&chunk))) {}
            };
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, ended).await;
            drop(permit);
        });
    }

    /// Processes one message. A response to another request is discarded and fails the awaited request.
    fn receive(self: &Arc<Self>, message: &Bytes, awaited: Option<AwaitedRequest<'_>>) -> ReceivedMessage {
        let id = awaited.map(|awaited| awaited.id);
        match jsonrpc::read(message) {
            Ok(ServerMessage::Response { id: answered, outcome }) if Some(answered) == id => {
                return ReceivedMessage::Answer(outcome);
            }
            // The GET stream does not answer any request.
            Ok(ServerMessage::Response { id: other, .. }) if awaited.is_none() => {
                self.inbox.report_anomaly(format!("an answer to request {other} where it does not belong"));
            }
            Ok(ServerMessage::Response { id: other, .. }) => {
                let detail = format!("an answer to request {other} where it does not belong");
                self.inbox.report_anomaly(detail.clone());
                return ReceivedMessage::Mismatch(McpError::unreadable(detail));
            }
            Ok(ServerMessage::Notification { method, params }) if method == "notifications/progress" => {
                let listener = awaited.and_then(|awaited| awaited.listener);
                if let (Some(params), Some(listener)) = (params, listener)
                    && progress_token(&params) == id
                {
                    listener.progress(&params);
                }
            }
            Ok(ServerMessage::Notification { method, params }) => {
                self.inbox.notification(&method, params.as_ref(), id);
            }
            Ok(ServerMessage::Request { id: server_request_id, method, params }) => {
                self.answer_server_request(server_request_id, method, params, id);
            }
            // Only one request is answered here, so an invalid message counts as its answer.
            Err(MessageError::Malformed { detail, .. }) => {
                return ReceivedMessage::Mismatch(McpError::unreadable(detail));
            }
            Err(MessageError::NotJsonRpc) => {
                return ReceivedMessage::Mismatch(McpError::unreadable("the answer is not JSON"));
            }
        }
        ReceivedMessage::Other
    }
}

/// The position in a stream, for resumption.
pub(super) struct Cursor {
    pub(super) id: Option<String>,
    pub(super) pause: Duration,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { id: None, pause: RESUME_PAUSE }
    }
}

impl Cursor {
    fn update(&mut self, event: &SseEvent) {
        if let Some(id) = &event.id {
            self.id = Some(id.clone());
        }
        if let Some(retry) = event.retry {
            self.pause = retry.min(MAX_RESUME_PAUSE);
        }
    }
}

impl HttpInner {
    /// Opens the stream after the event with this id.
    async fn resume(&self, last: &str) -> Result<Response, McpError> {
        let request = self.client()?.get(self.url.clone()).header(ACCEPT, "text/event-stream");
        let request = self.with_headers(request).header("Last-Event-ID", last);
        let response = self.send(request, Repeat::Safe).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(McpError::Lost {
                cause: format!("the stream broke off and cannot be taken up again (HTTP status {status})")
                    .into(),
                stderr: Vec::new(),
                exit: None,
            }),
        }
        .map_err(|error| match error {
            // A refusal is final; only an interrupted connection is retried.
            McpError::Lost { cause, .. } => McpError::unreadable(cause.to_string()),
            other => other,
        })
    }

    /// Converts an error status of `url` into an error. A body with the result of the request counts as its answer, whatever the status.
    pub(super) async fn error_status(
        &self,
        response: Response,
        url: &Url,
        request: Option<u64>,
    ) -> Result<Response, McpError> {
        let head = ErrorHead::of(&response, url);
        let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
        if request.is_some_and(|id| jsonrpc::is_result_of(&body, id)) {
            let json = http::Response::builder().header(CONTENT_TYPE, "application/json");
            return json
                .body(body)
                .map(Response::from)
                .map_err(|error| McpError::unreadable(error.to_string()));
        }
        let in_session = self.request_head.load().session.is_some();
        Err(match head.status {
            StatusCode::NOT_FOUND if in_session => session_error(&body, request),
            _ => head.error(&body, request),
        })
    }
}

/// The meaning of status 404 for a request with a session id. The specification defines it as "the session has ended, start a
/// new one" (2025-11-25, transports: session management), but frameworks and proxies send 404 for other reasons too, even after
/// a call took effect. It counts as refused before processing only if the body is a JSON-RPC error with one of
/// [`SESSION_CODES`], as the SDKs send it. Any other error with the id of the request is its answer; with any other body it is
/// unknown whether the request took effect.
fn session_error(body: &[u8], request: Option<u64>) -> McpError {
    match jsonrpc::error_in(body) {
        Some((McpError::Rpc { code, .. }, named))
            if SESSION_CODES.contains(&code) && named.is_none_or(|named| Some(named) == request) =>
        {
            McpError::SessionExpired { effect: Effect::None }
        }
        Some((error, Some(named))) if Some(named) == request => error,
        _ => McpError::SessionExpired { effect: Effect::Unknown },
    }
}

/// Converts an error status into an error; `request` is the id of the answered request, if any.
pub(in crate::transport) async fn status_error(response: Response, request: Option<u64>) -> McpError {
    let head = ErrorHead::of(&response, response.url());
    let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
    head.error(&body, request)
}

/// The head of a response with an error status.
struct ErrorHead {
    status: StatusCode,
    location: Option<String>,
    /// Whether `location` is another origin.
    leads_away: bool,
    retry_after: Option<Duration>,
    effect: Effect,
}

impl ErrorHead {
    fn of(response: &Response, url: &Url) -> Self {
        let (status, headers) = (response.status(), response.headers());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let is_unprocessed = is_unprocessed(ResponseTo { url, status, headers });
        let effect = if is_unprocessed { Effect::None } else { Effect::Unknown };
        let retry_after = header("retry-after").and_then(|text| toolhub_http1::retry_after(&text));
        let location = header("location");
        let leads_away = location
            .as_deref()
            .and_then(|to| url.join(to).ok())
            .is_some_and(|to| to.origin() != url.origin());
        Self { status, location, leads_away, retry_after, effect }
    }

    fn error(self, body: &[u8], request: Option<u64>) -> McpError {
        let Self { status, location, leads_away, retry_after, effect } = self;
        // Servers explain errors in the body. Without the request's id the error may come from a proxy, which reveals nothing
        // about the server behind it.
        if let Some((error, named)) = jsonrpc::error_in(body) {
            let refusal = status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429);
            if named.map_or(refusal, |named| Some(named) == request) {
                return error;
            }
        }
        let mut text: String = String::from_utf8_lossy(body).chars().take(ERROR_BODY_CHARS).collect();
        text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(location) = location {
            text = match leads_away {
                true => format!("it points to {location}, which is not followed to another origin"),
                false => format!("it points to {location}: a call is sent on once, and not to the same URL"),
            };
        }
        let retry_after = retry_after.map(|span| span.min(MAX_RETRY_AFTER));
        McpError::Http { status: status.as_u16(), body: text, retry_after, effect }
    }
}

pub(super) fn content_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|error| interrupted_response(&error))?);
        if body.len() > limit {
            return Err(too_large(limit));
        }
    }
    Ok(body)
}

pub(super) fn too_large(limit: usize) -> McpError {
    McpError::unreadable(format!("the answer has more than {} MiB", limit >> 20))
}
