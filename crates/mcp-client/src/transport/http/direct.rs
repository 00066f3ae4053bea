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
use toolhub_core::Digits;
use toolhub_core::lang::LocalizedText;
use toolhub_core::read_buffer::with_read_buffer;
use toolhub_core::worker::PerWorker;
use toolhub_core::write_buffer::WriteBuffer;
use toolhub_http1::{CachedResponse, Framing, FramingError, Part, ResponseHead, write_content_length};
use toolhub_mcp_wire::McpError;
use toolhub_oauth::http_client::root_cause;
use url::Url;

use super::answer::{read_body, too_large};
use super::connect::{ConnectError, Stream, has_proxy};
use crate::transport::MAX_RESULT_BYTES;

/// Maximum number of idle connections per worker, and the idle timeout.
const KEPT: usize = 64;
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Maximum size of a body that is written together with its head.
pub(super) const SHORT: usize = 16 << 10;
/// Minimum free space for a read if the response does not arrive in one piece, and the size reserved if there is less.
const LEAST: usize = 2 << 10;
const ROOM: usize = 8 << 10;

/// The client for one endpoint.
#[derive(Debug)]
pub(super) struct DirectClient {
    uri: Uri,
    /// Host and port, for errors.
    place: String,
    /// Set after a failed TLS handshake: all requests use the general client.
    disabled: AtomicBool,
    /// The value of the `Host` header.
    pub(super) authority: String,
    /// The request target (path and query).
    pub(super) target: String,
    /// Idle connections per worker: a connection is reused only by the worker that opened it, so that its I/O wakes no other
    /// one.
    idle: PerWorker<Mutex<Vec<Wire>>>,
    /// The head of the last response. Responses repeat it over all connections.
    known: PerWorker<Mutex<Option<Box<CachedResponse>>>>,
}

/// A connection and its unread bytes.
#[derive(Debug)]
struct Wire {
    stream: Stream,
    there: BytesMut,
    /// When the last request was sent.
    used: Instant,
}

/// A response.
pub(super) enum Answer {
    /// The complete response, and its connection.
    Whole(ResponseHead, Bytes, Kept),
    /// The head, and the body as a stream.
    Stream(Response),
}

/// A connection whose response has been read. Closed on drop, unless the response is verified and `give_back` is called.
pub(super) struct Kept(Option<Wire>);

impl Kept {
    fn of(stays: bool, wire: Wire) -> Self {
        Self((stays && wire.there.is_empty()).then_some(wire))
    }

    /// Returns the connection to the pool.
    pub(super) fn give_back(self, direct: Option<&Arc<DirectClient>>) {
        if let (Some(wire), Some(direct)) = (self.0, direct) {
            direct.keep(wire);
        }
    }
}

impl Answer {
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
    pub(super) fn far(self) -> Response {
        match self {
            Self::Whole(head, body, _) => response(&head, Body::from(body)),
            Self::Stream(response) => response,
        }
    }

    /// Ends an exchange without a response body. Returns the connection to the pool if the body is empty.
    pub(super) fn done(self, direct: Option<&Arc<DirectClient>>) {
        if let Self::Whole(_, body, kept) = self
            && body.trim_ascii().is_empty()
        {
            kept.give_back(direct);
        }
    }
}

fn response(head: &ResponseHead, body: Body) -> Response {
    let mut whole = http::Response::new(body);
    (*whole.status_mut(), *whole.headers_mut()) = (head.status, head.headers());
    Response::from(whole)
}

/// A message was not sent, or possibly in part.
enum Unsent {
    Whole,
    Part(io::Error),
}

impl Wire {
    /// Whether it can be reused: no unsolicited bytes have arrived, and it is not closed.
    fn is_fit(&mut self) -> bool {
        self.there.is_empty() && self.stream.is_silent()
    }

    /// Sends a message.
    async fn send(&mut self, parts: [&[u8]; 2]) -> Result<(), Unsent> {
        let mut begun = false;
        for mut part in parts {
            while !part.is_empty() {
                match self.stream.write(part).await {
                    Ok(0) if begun => return Err(Unsent::Part(ErrorKind::WriteZero.into())),
                    Ok(sent) if sent > 0 => (begun, part) = (true, &part[sent..]),
                    Err(error) if begun => return Err(Unsent::Part(error)),
                    // The idle connection was closed by the server, which has received nothing of this message.
                    Ok(_) | Err(_) => return Err(Unsent::Whole),
                }
            }
        }
        // TLS may have buffered the data. After an error here, the server may have received the message.
        self.stream.flush().await.map_err(Unsent::Part)
    }

    /// Reads more bytes. Returns `false` at the end of the stream.
    async fn more(&mut self) -> io::Result<bool> {
        // No buffer is allocated: reads into the shared buffer of this thread, since most responses arrive in one piece.
        if self.there.capacity() == 0 {
            let stream = &mut self.stream;
            let reading = poll_fn(|context| {
                let (read, came) =
                    with_read_buffer(|basin| poll_read_buf(Pin::new(&mut *stream), context, basin));
                read.map_ok(|_| came)
            });
            self.there = reading.await?;
            return Ok(!self.there.is_empty());
        }
        if self.there.capacity() - self.there.len() < LEAST {
            self.there.reserve(ROOM);
        }
        Ok(self.stream.read_buf(&mut self.there).await? > 0)
    }

    /// Reads the head of a response.
    async fn head(&mut self, direct: &DirectClient) -> Result<ResponseHead, McpError> {
        loop {
            if !self.more().await.map_err(|error| lost(&error))? {
                return Err(lost(&broken_off()));
            }
            let mut known = direct.known.current().lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(head) = ResponseHead::take(&mut self.there, &mut known).map_err(unreadable)? {
                return Ok(head);
            }
        }
    }

    /// Reads the complete body.
    async fn body(&mut self, mut framing: Framing) -> Result<Bytes, McpError> {
        if let Framing::Length(length) = framing {
            let length = usize::try_from(length).ok().filter(|length| *length <= MAX_RESULT_BYTES);
            let length = length.ok_or_else(|| too_large(MAX_RESULT_BYTES))?;
            while self.there.len() < length {
                match self.there.is_empty() && length <= ROOM {
                    // The body may arrive in one piece, in a separate segment from the head.
                    true => self.there = BytesMut::new(),
                    false => self.there.reserve((length - self.there.len()).clamp(LEAST, 1 << 20)),
                }
                if !self.more().await.map_err(|error| lost(&error))? {
                    return Err(lost(&broken_off()));
                }
            }
            // Takes the whole buffer if nothing follows, so that the connection does not keep the allocation alive.
            let body =
                if self.there.len() == length { take(&mut self.there) } else { self.there.split_to(length) };
            return Ok(body.freeze());
        }
        let mut all = BytesMut::new();
        loop {
            match framing.take(&mut self.there).map_err(unreadable)? {
                Part::Data(data) => all.extend_from_slice(&data),
                Part::End => return Ok(all.freeze()),
                Part::Wait => match self.more().await.map_err(|error| lost(&error))? {
                    true => {}
                    false if framing.ends_with_connection() => return Ok(all.freeze()),
                    false => return Err(lost(&broken_off())),
                },
            }
            if all.len() > MAX_RESULT_BYTES {
                return Err(too_large(MAX_RESULT_BYTES));
            }
        }
    }
}

/// A response body that is streamed.
struct Coming {
    /// `None` after the end.
    wire: Option<Wire>,
    framing: Framing,
    /// The pool that the connection returns to at the end, if it can be reused.
    home: Option<Arc<DirectClient>>,
}

impl Coming {
    /// Ends the body and returns the connection to the pool. A caller that detects a wrong response drops the body earlier.
    fn ends(&mut self) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let (Some(wire), Some(home)) = (self.wire.take(), &self.home)
            && wire.there.is_empty()
        {
            home.keep(wire);
        }
        Poll::Ready(None)
    }
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let coming = self.get_mut();
        loop {
            let Some(wire) = &mut coming.wire else { return Poll::Ready(None) };
            match coming.framing.take(&mut wire.there) {
                Ok(Part::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Part::End) => return coming.ends(),
                Ok(Part::Wait) => {}
                Err(FramingError(why)) => return Poll::Ready(Some(Err(io::Error::other(why)))),
            }
            match ready!(pin!(wire.more()).poll(context)) {
                Ok(true) => {}
                Ok(false) if coming.framing.ends_with_connection() => return Poll::Ready(None),
                Ok(false) => return Poll::Ready(Some(Err(broken_off()))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// Decompresses a response that the server compressed although no encoding was accepted.
async fn unpacked(mut response: Response) -> Result<Response, McpError> {
    let packing = response.headers_mut().remove(CONTENT_ENCODING);
    if packing.as_ref().is_none_or(|packing| !["gzip", "x-gzip"].contains(&packing.to_str().unwrap_or(""))) {
        return Err(McpError::unreadable(format!("it packs its answers unasked: {packing:?}")));
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let packed = read_body(response, MAX_RESULT_BYTES).await?;
    // Protects against decompression bombs: limits the output to the maximum result size.
    let most = MAX_RESULT_BYTES as u64 + 1;
    let unpack = move || {
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).take(most).read_to_end(&mut body).map(|_| body)
    };
    let body =
        tokio::task::spawn_blocking(unpack).await.map_err(|error| McpError::unreadable(error.to_string()))?;
    let body = body.map_err(|error| McpError::unreadable(format!("it cannot be unpacked: {error}")))?;
    let mut whole = http::Response::new(Body::from(body));
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(Response::from(whole))
}

impl DirectClient {
    /// The client for an endpoint; `None` if its requests must use the general client.
    pub(super) fn to(url: &Url) -> Option<Self> {
        if !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let uri: Uri = url.as_str().split('#').next()?.parse().ok()?;
        let place = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
        (!has_proxy(&uri)).then_some(Self {
            authority: uri.authority()?.as_str().to_owned(),
            target: uri.path_and_query()?.as_str().to_owned(),
            uri,
            place,
            disabled: AtomicBool::new(false),
            idle: PerWorker::default(),
            known: PerWorker::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Wire>> {
        self.idle.current().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an open idle connection from the pool, if there is one.
    fn kept(&self, now: Instant) -> Option<Wire> {
        loop {
            let mut wire = self.idle().pop()?;
            if now.duration_since(wire.used) < KEPT_FOR && wire.is_fit() {
                wire.used = now;
                return Some(wire);
            }
        }
    }

    fn keep(&self, mut wire: Wire) {
        // Releases the read buffer while the connection is idle.
        wire.there = BytesMut::new();
        let mut idle = self.idle();
        // The oldest is first. If it has expired, it is removed; otherwise only if the pool is full.
        let old = idle.first().is_some_and(|first| wire.used.duration_since(first.used) >= KEPT_FOR);
        let gone = (old || idle.len() >= KEPT).then(|| idle.remove(0));
        idle.push(wire);
        drop(idle);
        drop(gone);
    }

    /// Opens a new connection; `None` if the general client has to be used.
    async fn connect(&self) -> Result<Option<Wire>, McpError> {
        match Stream::connect(&self.uri).await {
            Ok(stream) => Ok(Some(Wire { stream, there: BytesMut::new(), used: Instant::now() })),
            Err(ConnectError::Unreachable(why)) => {
                Err(McpError::connect(LocalizedText::from(format!("{why} ({})", self.place))))
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
    ) -> Result<Option<Answer>, McpError> {
        if self.disabled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        write_content_length(Digits::of(body.len() as u64).as_str(), &mut head);
        let parts = if body.len() <= SHORT {
            head.extend_from_slice(body.as_bytes());
            [&head[..], &[]]
        } else {
            [&head[..], body.as_bytes()]
        };
        // Rarely used futures are boxed, to keep the common one small.
        let kept = match self.kept(Instant::now()) {
            None => Box::pin(self.connect()).await?,
            kept => kept,
        };
        let Some(mut wire) = kept else { return Ok(None) };
        let sent = match wire.send(parts).await {
            Err(Unsent::Whole) => {
                let Some(other) = Box::pin(self.connect()).await? else { return Ok(None) };
                wire = other;
                wire.send(parts).await
            }
            sent => sent,
        };
        if let Err(unsent) = sent {
            let cause = match unsent {
                Unsent::Part(error) => error,
                Unsent::Whole => ErrorKind::BrokenPipe.into(),
            };
            return Err(self.placed(lost(&cause)));
        }
        drop(head);
        self.answer(wire).await.map(Some).map_err(|error| self.placed(error))
    }

    async fn answer(self: &Arc<Self>, mut wire: Wire) -> Result<Answer, McpError> {
        let head = wire.head(self).await?;
        if !head.plain_json {
            return Box::pin(self.odd_answer(head, wire)).await;
        }
        let body = wire.body(head.body).await?;
        let kept = Kept::of(head.reusable, wire);
        Ok(Answer::Whole(head, body, kept))
    }

    /// Reads a response that is not plain JSON.
    async fn odd_answer(self: &Arc<Self>, head: ResponseHead, mut wire: Wire) -> Result<Answer, McpError> {
        let headers = head.headers();
        let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let endless = b"text/event-stream";
        if kind.get(..endless.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(endless)) {
            let home = head.reusable.then(|| Arc::clone(self));
            let coming = Coming { wire: Some(wire), framing: head.body, home };
            return Ok(Answer::Stream(response(&head, Body::wrap(coming))));
        }
        let body = wire.body(head.body).await?;
        if headers.contains_key(CONTENT_ENCODING) {
            return Ok(Answer::Stream(unpacked(response(&head, Body::from(body))).await?));
        }
        let kept = Kept::of(head.reusable, wire);
        Ok(Answer::Whole(head, body, kept))
    }

    /// Adds host and port to an error.
    fn placed(&self, error: McpError) -> McpError {
        match error {
            McpError::Lost { cause, stderr, .. } => {
                let cause = LocalizedText::from(format!("{cause} ({})", self.place));
                McpError::Lost { cause, stderr, exit: None }
            }
            other => other,
        }
    }
}

fn broken_off() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed before the answer was there")
}

fn lost(error: &io::Error) -> McpError {
    McpError::Lost { cause: LocalizedText::from(root_cause(error)), stderr: Vec::new(), exit: None }
}

fn unreadable(FramingError(why): FramingError) -> McpError {
    McpError::unreadable(why)
}
