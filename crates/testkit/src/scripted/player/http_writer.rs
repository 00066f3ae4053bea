//! The response to an HTTP request while its actions run: the head is sent with the first part of the body.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, oneshot};

use super::{body_part::Part, resume::StreamLog};

/// How messages are encoded in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Json,
    Events,
    /// The response to a notification has no messages.
    None,
}

/// Status and headers of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) has_body: bool,
}

/// The receiving side, from which the HTTP handler builds a response.
#[derive(Debug)]
pub(super) struct Pending {
    /// An error means that the connection is aborted before any response.
    pub(super) head: oneshot::Receiver<Head>,
    pub(super) parts: mpsc::Receiver<Part>,
}

/// A response in progress.
#[derive(Debug)]
pub(super) struct HttpResponseWriter {
    /// `None` after it was sent.
    head: Option<oneshot::Sender<Head>>,
    status: StatusCode,
    status_is_scripted: bool,
    headers: HeaderMap,
    framing: Framing,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Direct(mpsc::Sender<Part>),
    /// The stream outlives the connection; a task copies it to the current reader.
    Logged(Arc<StreamLog>),
}

impl HttpResponseWriter {
    pub(super) fn direct(framing: Framing) -> (Self, Pending) {
        let (sender, parts) = mpsc::channel(16);
        Self::new(framing, Body::Direct(sender), parts)
    }

    /// Also returns the sender for the task that copies the log.
    pub(super) fn logged(log: Arc<StreamLog>) -> (Self, Pending, mpsc::Sender<Part>) {
        let (sender, parts) = mpsc::channel(16);
        let (out, pending) = Self::new(Framing::Events, Body::Logged(log), parts);
        (out, pending, sender)
    }

    fn new(framing: Framing, body: Body, parts: mpsc::Receiver<Part>) -> (Self, Pending) {
        let (sender, head) = oneshot::channel();
        let status = if framing == Framing::None { StatusCode::ACCEPTED } else { StatusCode::OK };
        let (headers, head_sender) = (HeaderMap::new(), Some(sender));
        let out = Self { head: head_sender, status, status_is_scripted: false, headers, framing, body };
        (out, Pending { head, parts })
    }

    /// Sets the scripted status.
    pub(super) fn set_status(&mut self, code: u16) {
        self.suggest_status(code);
        self.status_is_scripted = true;
    }

    /// Sets the status of a response, unless the script has set one.
    pub(super) fn suggest_status(&mut self, code: u16) {
        if let Some(status) = StatusCode::from_u16(code).ok().filter(|_| !self.status_is_scripted) {
            self.status = status;
        }
    }

    pub(super) fn header(&mut self, name: &str, value: &str) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            self.headers.append(name, value);
        }
    }

    pub(super) fn content_type(&mut self, kind: &str) {
        self.headers.remove(header::CONTENT_TYPE);
        self.header("content-type", kind);
        if kind.starts_with("text/event-stream") {
            self.framing = Framing::Events;
        }
    }

    /// Sends a JSON-RPC message: the body itself, or an event in it.
    pub(super) async fn message(&mut self, text: &str) {
        self.begin(true);
        match (self.framing, &self.body) {
            (Framing::None, _) => {}
            (Framing::Json, _) => self.push(text.as_bytes().to_vec()).await,
            (Framing::Events, Body::Direct(_)) => self.push(event(text).into_bytes()).await,
            (Framing::Events, Body::Logged(log)) => log.event(text),
        }
    }

    pub(super) async fn bytes(&mut self, bytes: Vec<u8>) {
        self.begin(true);
        self.push(bytes).await;
    }

    /// Sends the start of an event or body that stays open.
    pub(super) async fn endless(&mut self, bytes: Vec<u8>) {
        self.begin(true);
        if self.framing == Framing::Events {
            self.push(b"data: ".to_vec()).await;
        }
        for chunk in bytes.chunks(64 * 1024) {
            self.push(chunk.to_vec()).await;
        }
    }

    /// Aborts the connection; before the head if nothing was sent. A resumable stream first sends the id to resume
    /// from.
    pub(super) async fn cut(&mut self) {
        match &self.body {
            Body::Logged(log) => {
                let log = Arc::clone(log);
                self.begin(true);
                log.cut();
            }
            Body::Direct(parts) => {
                _ = parts.send(Part::Cut).await;
                self.head = None;
            }
        }
    }

    /// Ends the response after the last action; one without a body is sent now.
    pub(super) fn finish(&mut self) {
        self.begin(false);
        self.end();
    }

    /// Ends the response of a cancelled request: an event stream ends, a JSON response is not sent.
    pub(super) fn abandon(&mut self) {
        if self.framing == Framing::Events {
            self.begin(true);
        }
        self.end();
    }

    fn end(&mut self) {
        if let Body::Logged(log) = &self.body {
            log.finish();
        }
    }

    fn begin(&mut self, has_body: bool) {
        let Some(sender) = self.head.take() else { return };
        let mut headers = std::mem::take(&mut self.headers);
        if has_body && !headers.contains_key(header::CONTENT_TYPE) {
            let kind = if self.framing == Framing::Events { "text/event-stream" } else { "application/json" };
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if has_body && self.framing == Framing::Events {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        }
        if let Body::Logged(log) = &self.body {
            log.prime();
        }
        // Fails if the client has disconnected.
        _ = sender.send(Head { status: self.status, headers, has_body });
    }

    async fn push(&self, bytes: Vec<u8>) {
        match &self.body {
            Body::Direct(parts) => _ = parts.send(Part::Data(bytes.into())).await,
            Body::Logged(log) => log.raw(bytes),
        }
    }
}

fn event(text: &str) -> String {
    format!("event: message\ndata: {text}\n\n")
}
