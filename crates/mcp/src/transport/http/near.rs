//! The short way to a server on this machine: plain HTTP, with no proxy, no redirect and no compression on it, over
//! connections that whoever calls drives itself, so that an exchange wakes nobody else. What it cannot do is left to the
//! long way.

use std::future::poll_fn;
use std::io::Read as _;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::rt::Executor as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::{Body, Response};
use tokio::net::TcpStream;
use toolhub_core::lang::Text;
use url::Url;

use super::answer::{read_body, too_large};
use super::client::{CONNECT_DEADLINE, root_cause};
use crate::error::McpError;
use crate::transport::MAX_RESULT_BYTES;

/// Connections that are kept for the next message, and for how long.
const KEPT: usize = 64;
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The way to one endpoint.
#[derive(Debug)]
pub(super) struct Near {
    host: String,
    port: u16,
    /// Host and port as the server is told them.
    authority: HeaderValue,
    /// What is asked for there.
    target: Uri,
    idle: Mutex<Vec<(Instant, Wire)>>,
}

/// A connection and its driver.
#[derive(Debug)]
struct Wire {
    sender: SendRequest<Body>,
    /// Not there any more once it has ended.
    connection: Option<Connection<TokioIo<TcpStream>, Body>>,
}

/// What came back.
pub(super) enum Answer {
    /// All of it.
    Whole(http::Response<Bytes>),
    /// Its head, and a stream.
    Stream(Response),
}

/// Why an exchange failed, and the message, where it never left.
type Failed = (McpError, Option<Request<Body>>);

impl Wire {
    /// Runs `work` and the connection that it needs.
    async fn drive<T>(
        connection: &mut Option<Connection<TokioIo<TcpStream>, Body>>,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        poll_fn(|context| {
            if let Some(running) = connection
                && Pin::new(running).poll(context).is_ready()
            {
                // Whoever waits for something of it hears that nothing comes any more.
                *connection = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }

    /// Whether the next message may go over it: a server that ended it has been heard by now.
    async fn is_fit(&mut self) -> bool {
        let Self { sender, connection } = self;
        Self::drive(connection, pin!(std::future::ready(()))).await;
        connection.is_some() && sender.is_ready()
    }

    /// One message and the head of its answer.
    async fn send(&mut self, request: Request<Body>) -> Result<http::Response<Incoming>, Failed> {
        let Self { sender, connection } = self;
        let sending = pin!(sender.try_send_request(request));
        Self::drive(connection, sending).await.map_err(|mut failed| {
            let unsent = failed.take_message();
            (lost(failed.error()), unsent)
        })
    }

    /// All of a body.
    async fn read(&mut self, body: Incoming) -> Result<Bytes, McpError> {
        let mut body = pin!(body);
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        loop {
            let frame = pin!(poll_fn(|context| body.as_mut().poll_frame(context)));
            let Some(frame) = Self::drive(&mut self.connection, frame).await else { break };
            let Ok(data) = frame.map_err(|error| lost(&error))?.into_data() else { continue };
            match (first.is_empty(), all.is_empty()) {
                (true, true) => first = data,
                (false, true) => {
                    all.extend_from_slice(&first);
                    all.extend_from_slice(&data);
                }
                (_, false) => all.extend_from_slice(&data),
            }
            if all.len().max(first.len()) > MAX_RESULT_BYTES {
                return Err(too_large(MAX_RESULT_BYTES));
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }

    /// From now on the connection runs by itself, as long as somebody reads what comes over it.
    fn let_go(self) {
        let Self { sender, connection } = self;
        if let Some(connection) = connection {
            TokioExecutor::new().execute(async move {
                let _ = connection.await;
                drop(sender);
            });
        }
    }
}

/// What a server packed though nobody asked it to.
async fn unpacked(mut response: Response) -> Result<Response, McpError> {
    let packing = response.headers_mut().remove(CONTENT_ENCODING);
    if packing.as_ref().is_none_or(|packing| !["gzip", "x-gzip"].contains(&packing.to_str().unwrap_or(""))) {
        return Err(McpError::unreadable(format!("it packs its answers unasked: {packing:?}")));
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let packed = read_body(response, MAX_RESULT_BYTES).await?;
    // It may be a bomb: no more is unpacked than may be read.
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

impl Near {
    /// The short way to an endpoint, where there is one.
    pub(super) fn to(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let here = host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        let uri: Uri = url.as_str().split('#').next()?.parse().ok()?;
        let (target, authority) = (uri.path_and_query()?.clone(), uri.authority()?.as_str().parse().ok()?);
        (here && plain).then_some(Self {
            host: bare.to_owned(),
            port: url.port_or_known_default()?,
            authority,
            target: Uri::from(target),
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Wire)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is open, where one is kept.
    async fn kept(&self) -> Option<Wire> {
        loop {
            let (since, mut wire) = self.idle().pop()?;
            if since.elapsed() < KEPT_FOR && wire.is_fit().await {
                return Some(wire);
            }
        }
    }

    fn keep(&self, wire: Wire) {
        if wire.connection.is_none() {
            return;
        }
        let mut idle = self.idle();
        // The oldest stand first; where those below are too old, so is nobody's use for them.
        let old = idle.first().is_some_and(|(since, _)| since.elapsed() >= KEPT_FOR);
        let gone = (old || idle.len() >= KEPT).then(|| idle.remove(0));
        idle.push((Instant::now(), wire));
        drop(idle);
        drop(gone);
    }

    async fn connect(&self) -> Result<Wire, McpError> {
        let failed = |why: &dyn std::fmt::Display| {
            McpError::connect(Text::from(format!("{why} ({}:{})", self.host, self.port)))
        };
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = match tokio::time::timeout(CONNECT_DEADLINE, connecting).await {
            Ok(stream) => stream.map_err(|error| failed(&root_cause(&error)))?,
            Err(_) => return Err(failed(&"it does not answer")),
        };
        // A message is one small write, and is not to wait for another.
        let _ = stream.set_nodelay(true);
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&root_cause(&error)))?;
        Ok(Wire { sender, connection: Some(connection) })
    }

    /// Posts one message.
    pub(super) async fn post(&self, mut headers: HeaderMap, body: Bytes) -> Result<Answer, McpError> {
        headers.insert(HOST, self.authority.clone());
        let mut request = Request::new(Body::from(body));
        (*request.method_mut(), *request.uri_mut()) = (Method::POST, self.target.clone());
        *request.headers_mut() = headers;
        let mut wire = match self.kept().await {
            Some(wire) => wire,
            // What is seldom needed stands in boxes of its own, so that what always is stays small.
            None => Box::pin(self.connect()).await?,
        };
        let response = loop {
            match wire.send(request).await {
                Ok(response) => break response,
                // It was ended while nobody looked, and the server has seen nothing of this.
                Err((_, Some(unsent))) => (wire, request) = (Box::pin(self.connect()).await?, unsent),
                Err((error, None)) => return Err(self.placed(error)),
            }
        };
        let (parts, body) = response.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let endless = b"text/event-stream";
        if kind.get(..endless.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(endless)) {
            wire.let_go();
            return Ok(Answer::Stream(Response::from(http::Response::from_parts(parts, Body::wrap(body)))));
        }
        let body = wire.read(body).await.map_err(|error| self.placed(error))?;
        self.keep(wire);
        let packed = parts.headers.contains_key(CONTENT_ENCODING);
        let response = http::Response::from_parts(parts, body);
        if packed {
            Ok(Answer::Stream(Box::pin(unpacked(far(response))).await?))
        } else {
            Ok(Answer::Whole(response))
        }
    }

    /// The same error, with the place where it happened.
    fn placed(&self, error: McpError) -> McpError {
        match error {
            McpError::Lost { cause, stderr } => {
                let cause = Text::from(format!("{cause} ({}:{})", self.host, self.port));
                McpError::Lost { cause, stderr }
            }
            other => other,
        }
    }
}

/// The same answer as the long way gives it.
pub(super) fn far(response: http::Response<Bytes>) -> Response {
    Response::from(response.map(Body::from))
}

fn lost(error: &hyper::Error) -> McpError {
    McpError::Lost { cause: Text::from(root_cause(error)), stderr: Vec::new() }
}
