//! The account of one request: kept until the last byte of its answer is gone, and then told. Where nobody listens, none
//! is kept.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use toolhub_core::access_record::AccessTrace;
use toolhub_core::{AccessRecord, Event, EventKind, EventSink, RequestWay, TraceContext};
use toolhub_mcp::gateway::{Body as Said, HeaderLookup, Principal};

use crate::connection::Answering;
use crate::envelope::Envelope;
use crate::telemetry::Sampler;

/// An answer that may be an error is looked into up to this length: errors are short.
const SHORT: usize = 4 << 10;

/// What is known of a request so far. It is told when this goes, also where its client went away.
pub(crate) struct RequestRecord {
    events: Arc<dyn EventSink>,
    began: Instant,
    client: SocketAddr,
    verb: String,
    path: String,
    principal: Option<Principal>,
    envelope: Envelope,
    trace: Option<AccessTrace>,
    error: Option<i64>,
    status: u16,
    bytes: u64,
}

impl RequestRecord {
    /// The account of a request, where anybody listens.
    pub(crate) fn open(
        events: &Arc<dyn EventSink>,
        client: SocketAddr,
        (verb, path): (&str, &str),
    ) -> Option<Box<Self>> {
        (!events.is_disabled()).then(|| {
            Box::new(Self {
                events: Arc::clone(events),
                began: Instant::now(),
                client,
                verb: verb.to_owned(),
                path: path.to_owned(),
                principal: None,
                envelope: Envelope::default(),
                trace: None,
                error: None,
                status: AccessRecord::GONE,
                bytes: 0,
            })
        })
    }

    /// Whose it is.
    pub(crate) fn made_by(&mut self, who: &Principal) {
        self.principal = Some(who.clone());
    }

    /// What it says.
    pub(crate) fn says(&mut self, body: &[u8]) {
        self.envelope = Envelope::read(body);
    }

    /// Its place in a trace: its client's, which its message may name, or else its headers; else a new one.
    pub(crate) fn joins(&mut self, sampler: Sampler, headers: &dyn HeaderLookup) -> TraceContext {
        let of_headers = || TraceContext::parse(headers.text("traceparent")?, headers.text("tracestate"));
        let parent = self.envelope.trace.take().or_else(of_headers);
        let own = sampler.join(parent.as_ref());
        self.trace = Some(AccessTrace { own: own.clone(), parent: parent.map(|parent| parent.span()) });
        own
    }

    /// It is answered with this.
    pub(crate) fn told(&mut self, body: &Said) {
        if let Said::Text(text) = body
            && text.len() <= SHORT
        {
            self.error = Envelope::read(text.as_bytes()).error;
        }
    }

    /// It is answered so, with all of this.
    pub(crate) fn answers(&mut self, status: u16, body: &Said) {
        self.answered(status);
        self.told(body);
        self.sends(body.len());
    }

    /// So many bytes of its answer go out.
    pub(crate) fn sends(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// It is answered so; the answer itself may be still to come.
    pub(crate) fn answered(&mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let envelope = std::mem::take(&mut self.envelope);
        let served = AccessRecord {
            principal: self.principal.as_ref().map(|who| who.as_str().into()),
            way: RequestWay::Http {
                client: self.client,
                verb: std::mem::take(&mut self.verb),
                path: std::mem::take(&mut self.path),
                status: self.status,
            },
            method: envelope.method,
            tool: envelope.tool,
            error: self.error,
            bytes: self.bytes,
            took: self.began.elapsed(),
            trace: self.trace.take(),
        };
        self.events.emit(Event::now(None, EventKind::Served(Box::new(served))));
    }
}

/// An answer on its way out.
pub(crate) struct Outgoing {
    pub(crate) body: Body,
    pub(crate) account: Option<Box<RequestRecord>>,
    /// The connection is not idle before this has gone out.
    pub(crate) _answering: Answering,
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(frame))), Some(account)) = (&frame, &mut self.account) {
            account.sends(frame.data_ref().map_or(0, Bytes::len));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
