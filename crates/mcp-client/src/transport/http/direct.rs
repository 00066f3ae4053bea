//! HTTP/1.1 client for calls, with pooled connections, with or without TLS. Each connection is driven by the task of the call,
//! so that a request wakes no other task. Proxies, redirects, logins, compression and HTTP/2 are handled by the general client,
//! `client`, which is used when a server needs them.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read as _};
use std::mem::take;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use hyper::body::Frame;
use reqwest::{Body, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::io::poll_read_buf;
use toolhub_core::io_thread::PerIoThread;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::read_buffer::with_read_buffer;
use toolhub_core::write_buffer::WriteBuffer;
use toolhub_http1::{BodyPart, CachedResponse, Framing, FramingError, ResponseHead, write_content_length};
use toolhub_mcp_wire::McpError;
use toolhub_oauth::http_client::root_cause;
use url::Url;

use super::answer::{read_body, too_large};
use super::connect::{ConnectError, HttpStream, has_proxy, refused_text};
use crate::transport::MAX_RESULT_BYTES;

/// Maximum number of idle connections per I/O thread, and the idle timeout.
const MAX_IDLE_CONNECTIONS: usize = 64;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a body that is written together with its head.
pub(super) const MAX_INLINE_BODY_BYTES: usize = 16 << 10;
/// Minimum free space for a read if the response does not arrive in one piece, and the size reserved if there is less.
const MIN_FREE_CAPACITY: usize = 2 << 10;
const READ_CAPACITY: usize = 8 << 10;

/// The client for one endpoint.
#[derive(Debug)]
pub(super) struct DirectClient {
    uri: Uri,
    /// Host and port, for errors.
    host_and_port: String,
    /// Set after a failed TLS handshake: all requests use the general client.
    disabled: AtomicBool,
    /// The value of the `Host` header.
    pub(super) authority: String,
    /// The request target (path and query).
    pub(super) target: String,
    /// Idle connections per I/O thread: a connection is reused only by the thread that opened it, so that its I/O wakes no other
    /// one.
    idle: PerIoThread<Mutex<Vec<HttpConnection>>>,
    /// The head of the last response. Responses repeat it over all connections.
    head_cache: PerIoThread<Mutex<Option<Box<CachedResponse>>>>,
}

/// A connection and its unread bytes.
#[derive(Debug)]
struct HttpConnection {
    stream: HttpStream,
    unread: BytesMut,
    /// When the last request was sent.
    used: Instant,
}

/// A response.
pub(super) enum DirectResponse {
    /// The complete response, and its connection.
    Whole(ResponseHead, Bytes, ReusableConnection),
    /// The head, and the body as a stream.
    Stream(Response),
}

/// A connection whose response has been read. Closed on drop, unless the response is verified and `return_to_pool` is called.
pub(super) struct ReusableConnection(Option<HttpConnection>);

impl ReusableConnection {
    fn of(keep_alive: bool, connection: HttpConnection) -> Self {
        Self((keep_alive && connection.unread.is_empty()).then_some(connection))
    }

    /// Returns the connection to the pool.
    pub(super) fn return_to_pool(self, direct: Option<&Arc<DirectClient>>) {
        if let (Some(connection), Some(direct)) = (self.0, direct) {
            direct.return_idle(connection);
        }
    }
}

impl DirectResponse {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Whole(head, ..) => head.status,
            Self::Stream(response) => response.status(),
        }
    }

    pub(super) fn headers(&self) -> HeaderMap {
        match self {
            Self::Whole(head, ..) => head.headers(),
            Self::Stream(response) => response.headers().clone(),
        }
    }

    /// Converts it into the response type of the general client. The connection is not reused.
    pub(super) fn into_response(self) -> Response {
        match self {
            Self::Whole(head, body, _) => response(&head, Body::from(body)),
            Self::Stream(response) => response,
        }
    }

    /// Ends an exchange without a response body. Returns the connection to the pool if the body is empty.
    pub(super) fn done(self, direct: Option<&Arc<DirectClient>>) {
        if let Self::Whole(_, body, reusable) = self
            && body.trim_ascii().is_empty()
        {
            reusable.return_to_pool(direct);
        }
    }
}

fn response(head: &ResponseHead, body: Body) -> Response {
    let mut response = http::Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers());
    Response::from(response)
}

/// A message was not sent, or possibly in part.
enum SendError {
    Whole,
    Part(io::Error),
}

impl HttpConnection {
    /// Whether it can be reused: no unsolicited bytes have arrived, and it is not closed.
    fn is_reusable(&mut self) -> bool {
        self.unread.is_empty() && self.stream.is_silent()
    }

    /// Sends a message.
    async fn send(&mut self, parts: [&[u8]; 2]) -> Result<(), SendError> {
        let mut started = false;
        for mut part in parts {
            while !part.is_empty() {
                match self.stream.write(part).await {
                    Ok(0) if started => return Err(SendError::Part(ErrorKind::WriteZero.into())),
                    Ok(sent) if sent > 0 => (started, part) = (true, &part[sent..]),
                    Err(error) if started => return Err(SendError::Part(error)),
                    // The idle connection was closed by the server, which has received nothing of this message.
                    Ok(_) | Err(_) => return Err(SendError::Whole),
                }
            }
        }
        // TLS may have buffered the data. After an error here, the server may have received the message.
        self.stream.flush().await.map_err(SendError::Part)
    }

    /// Reads more bytes. Returns `false` at the end of the stream.
    async fn read_more(&mut self) -> io::Result<bool> {
        // No buffer is allocated: reads into the shared buffer of this thread, since most responses arrive in one piece.
        if self.unread.capacity() == 0 {
            let stream = &mut self.stream;
            let reading = poll_fn(|context| {
                let (read, bytes) =
                    with_read_buffer(|buffer| poll_read_buf(Pin::new(&mut *stream), context, buffer));
                read.map_ok(|_| bytes)
            });
            self.unread = reading.await?;
            return Ok(!self.unread.is_empty());
        }
        if self.unread.capacity() - self.unread.len() < MIN_FREE_CAPACITY {
            self.unread.reserve(READ_CAPACITY);
        }
        Ok(self.stream.read_buf(&mut self.unread).await? > 0)
    }

    /// Reads the head of a response.
    async fn head(&mut self, direct: &DirectClient) -> Result<ResponseHead, McpError> {
        loop {
            if !self.read_more().await.map_err(|error| lost(&error))? {
                return Err(lost(&unexpected_eof()));
            }
            let mut head_cache = direct.head_cache.current().lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(head) = ResponseHead::take(&mut self.unread, &mut head_cache).map_err(unreadable)? {
                return Ok(head);
            }
        }
    }

    /// Reads the complete body.
    async fn body(&mut self, mut framing: Framing) -> Result<Bytes, McpError> {
        if let Framing::Length(length) = framing {
            let length = usize::try_from(length).ok().filter(|length| *length <= MAX_RESULT_BYTES);
            let length = length.ok_or_else(|| too_large(MAX_RESULT_BYTES))?;
            while self.unread.len() < length {
                match self.unread.is_empty() && length <= READ_CAPACITY {
                    // The body may arrive in one piece, in a separate segment from the head.
                    true => self.unread = BytesMut::new(),
                    false => {
                        self.unread.reserve((length - self.unread.len()).clamp(MIN_FREE_CAPACITY, 1 << 20));
                    }
                }
                if !self.read_more().await.map_err(|error| lost(&error))? {
                    return Err(lost(&unexpected_eof()));
                }
            }
            // Takes the whole buffer if nothing follows, so that the connection does not keep the allocation alive.
            let body = if self.unread.len() == length {
                take(&mut self.unread)
            } else {
                self.unread.split_to(length)
            };
            return Ok(body.freeze());
        }
        let mut bytes = BytesMut::new();
        loop {
            match framing.take(&mut self.unread).map_err(unreadable)? {
                BodyPart::Data(data) => bytes.extend_from_slice(&data),
                BodyPart::End => return Ok(bytes.freeze()),
                BodyPart::Wait => match self.read_more().await.map_err(|error| lost(&error))? {
                    true => {}
                    false if framing.ends_with_connection() => return Ok(bytes.freeze()),
                    false => return Err(lost(&unexpected_eof())),
                },
            }
            if bytes.len() > MAX_RESULT_BYTES {
                return Err(too_large(MAX_RESULT_BYTES));
            }
        }
    }
}

/// A response body that is streamed.
struct StreamingBody {
    /// `None` after the end.
    connection: Option<HttpConnection>,
    framing: Framing,
    /// The pool that the connection returns to at the end, if it can be reused.
    pool: Option<Arc<DirectClient>>,
}

impl StreamingBody {
    /// Ends the body and returns the connection to the pool. A caller that detects a wrong response drops the body earlier.
    fn finish(&mut self) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let (Some(connection), Some(pool)) = (self.connection.take(), &self.pool)
            && connection.unread.is_empty()
        {
            pool.return_idle(connection);
        }
        Poll::Ready(None)
    }
}

impl hyper::body::Body for StreamingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let streaming_body = self.get_mut();
        loop {
            let Some(connection) = &mut streaming_body.connection else { return Poll::Ready(None) };
            match streaming_body.framing.take(&mut connection.unread) {
                Ok(BodyPart::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(BodyPart::End) => return streaming_body.finish(),
                Ok(BodyPart::Wait) => {}
                Err(FramingError(why)) => return Poll::Ready(Some(Err(io::Error::other(why)))),
            }
            match ready!(pin!(connection.read_more()).poll(context)) {
                Ok(true) => {}
                Ok(false) if streaming_body.framing.ends_with_connection() => return Poll::Ready(None),
                Ok(false) => return Poll::Ready(Some(Err(unexpected_eof()))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// Decompresses a response that the server compressed although no encoding was accepted.
async fn decompress(mut response: Response) -> Result<Response, McpError> {
    let encoding = response.headers_mut().remove(CONTENT_ENCODING);
    if encoding.as_ref().is_none_or(|encoding| !["gzip", "x-gzip"].contains(&encoding.to_str().unwrap_or("")))
    {
        return Err(McpError::unreadable(format!("it packs its answers unasked: {encoding:?}")));
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let compressed = read_body(response, MAX_RESULT_BYTES).await?;
    // Protects against decompression bombs: limits the output to the maximum result size.
    let limit = MAX_RESULT_BYTES as u64 + 1;
    let decode = move || {
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&compressed[..]).take(limit).read_to_end(&mut body).map(|_| body)
    };
    let body =
        tokio::task::spawn_blocking(decode).await.map_err(|error| McpError::unreadable(error.to_string()))?;
    let body = body.map_err(|error| McpError::unreadable(format!("it cannot be unpacked: {error}")))?;
    let mut response = http::Response::new(Body::from(body));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(Response::from(response))
}

impl DirectClient {
    /// The client for an endpoint; `None` if its requests must use the general client.
    pub(super) fn to(url: &Url) -> Option<Self> {
        if !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let uri: Uri = url.as_str().split('#').next()?.parse().ok()?;
        let host_and_port = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
        (!has_proxy(&uri)).then_some(Self {
            authority: uri.authority()?.as_str().to_owned(),
            target: uri.path_and_query()?.as_str().to_owned(),
            uri,
            host_and_port,
            disabled: AtomicBool::new(false),
            idle: PerIoThread::default(),
            head_cache: PerIoThread::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        self.idle.current().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an open idle connection from the pool, if there is one.
    fn reusable(&self, now: Instant) -> Option<HttpConnection> {
        loop {
            let mut connection = self.idle().pop()?;
            if now.duration_since(connection.used) < IDLE_TIMEOUT && connection.is_reusable() {
                connection.used = now;
                return Some(connection);
            }
        }
    }

    fn return_idle(&self, mut connection: HttpConnection) {
        // Releases the read buffer while the connection is idle.
        connection.unread = BytesMut::new();
        let mut idle = self.idle();
        // The oldest is first. If it has expired, it is removed; otherwise only if the pool is full.
        let old =
            idle.first().is_some_and(|first| connection.used.duration_since(first.used) >= IDLE_TIMEOUT);
        let evicted = (old || idle.len() >= MAX_IDLE_CONNECTIONS).then(|| idle.remove(0));
        idle.push(connection);
        drop(idle);
        drop(evicted);
    }

    /// Opens a new connection; `None` if the general client has to be used.
    async fn connect(&self) -> Result<Option<HttpConnection>, McpError> {
        match HttpStream::connect(&self.uri).await {
            Ok(stream) => Ok(Some(HttpConnection { stream, unread: BytesMut::new(), used: Instant::now() })),
            Err(ConnectError::Refused(cause)) => {
                Err(McpError::connect(refused_text(&self.host_and_port, &cause)))
            }
            Err(ConnectError::Unreachable(cause)) => {
                let address = &self.host_and_port;
                Err(McpError::connect(LocalizedText::new(
                    format!("{} ({address})", cause.localize(Lang::En)),
                    format!("{}（{address}）", cause.localize(Lang::Zh)),
                )))
            }
            Err(ConnectError::Tls) => {
                self.disabled.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    /// Posts one message. `head` holds all header lines except `Content-Length`. Returns `None` if nothing was sent and the
    /// general client has to be used.
    pub(super) async fn post(
        self: &Arc<Self>,
        mut head: WriteBuffer,
        body: &str,
    ) -> Result<Option<DirectResponse>, McpError> {
        if self.disabled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        write_content_length(itoa::Buffer::new().format(body.len()), &mut head);
        let parts = if body.len() <= MAX_INLINE_BODY_BYTES {
            head.extend_from_slice(body.as_bytes());
            [&head[..], &[]]
        } else {
            [&head[..], body.as_bytes()]
        };
        // Rarely used futures are boxed, to keep the common one small.
        let reusable = match self.reusable(Instant::now()) {
            None => Box::pin(self.connect()).await?,
            reusable => reusable,
        };
        let Some(mut connection) = reusable else { return Ok(None) };
        let sent = match connection.send(parts).await {
            Err(SendError::Whole) => {
                let Some(other) = Box::pin(self.connect()).await? else { return Ok(None) };
                connection = other;
                connection.send(parts).await
            }
            sent => sent,
        };
        if let Err(error) = sent {
            let cause = match error {
                SendError::Part(error) => error,
                SendError::Whole => ErrorKind::BrokenPipe.into(),
            };
            return Err(self.with_host(lost(&cause)));
        }
        drop(head);
        self.answer(connection).await.map(Some).map_err(|error| self.with_host(error))
    }

    async fn answer(self: &Arc<Self>, mut connection: HttpConnection) -> Result<DirectResponse, McpError> {
        let head = connection.head(self).await?;
        if !head.plain_json {
            return Box::pin(self.read_other_answer(head, connection)).await;
        }
        let body = connection.body(head.body).await?;
        let reusable = ReusableConnection::of(head.reusable, connection);
        Ok(DirectResponse::Whole(head, body, reusable))
    }

    /// Reads a response that is not plain JSON.
    async fn read_other_answer(
        self: &Arc<Self>,
        head: ResponseHead,
        mut connection: HttpConnection,
    ) -> Result<DirectResponse, McpError> {
        let headers = head.headers();
        let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let endless = b"text/event-stream";
        if kind.get(..endless.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(endless)) {
            let pool = head.reusable.then(|| Arc::clone(self));
            let streaming_body = StreamingBody { connection: Some(connection), framing: head.body, pool };
            return Ok(DirectResponse::Stream(response(&head, Body::wrap(streaming_body))));
        }
        let body = connection.body(head.body).await?;
        if headers.contains_key(CONTENT_ENCODING) {
            return Ok(DirectResponse::Stream(decompress(response(&head, Body::from(body))).await?));
        }
        let reusable = ReusableConnection::of(head.reusable, connection);
        Ok(DirectResponse::Whole(head, body, reusable))
    }

    /// Adds host and port to an error.
    fn with_host(&self, error: McpError) -> McpError {
        match error {
            McpError::Lost { cause, stderr, .. } => {
                let cause = LocalizedText::from(format!("{cause} ({})", self.host_and_port));
                McpError::Lost { cause, stderr, exit: None }
            }
            other => other,
        }
    }
}

fn unexpected_eof() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed before the answer was there")
}

fn lost(error: &io::Error) -> McpError {
    McpError::Lost { cause: LocalizedText::from(root_cause(error)), stderr: Vec::new(), exit: None }
}

fn unreadable(FramingError(why): FramingError) -> McpError {
    McpError::unreadable(why)
}
