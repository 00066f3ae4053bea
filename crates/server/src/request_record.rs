//! The access record of one HTTP request. It is kept until the last byte of the response has been written, and then
//! emitted as an event. No record is kept if the event sink is disabled.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use toolhub_core::access_record::AccessTrace;
use toolhub_core::{AccessRecord, Event, EventKind, EventSink, RequestTransport, TraceContext};
use toolhub_mcp_gateway::{HeaderLookup, PrincipalHandle, ResponseBody as GatewayBody};

use crate::connection::ActiveRequest;
use crate::envelope::Envelope;
use crate::telemetry::Sampler;

/// Responses up to this length are searched for a JSON-RPC error: errors are short.
const MAX_SEARCHED_BYTES: usize = 4 << 10;

/// The access record of a request in progress. It is emitted on drop, also if the client has disconnected.
pub(crate) struct RequestRecord {
    events: Arc<dyn EventSink>,
    began: Instant,
    client: SocketAddr,
    verb: String,
    path: String,
    principal: Option<PrincipalHandle>,
    envelope: Envelope,
    trace: Option<AccessTrace>,
    error: Option<i64>,
    status: u16,
    bytes: u64,
}

impl RequestRecord {
    /// Opens the record of a request. Returns `None` if the event sink is disabled.
    pub(crate) fn open(
        events: &Arc<dyn EventSink>,
        client: SocketAddr,
        verb: &str,
        path: &str,
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
                status: AccessRecord::CLIENT_CLOSED_REQUEST,
                bytes: 0,
            })
        })
    }

    /// Records the principal of the request.
    pub(crate) fn set_principal(&mut self, principal: &PrincipalHandle) {
        self.principal = Some(principal.clone());
    }

    /// Records method, tool and trace context of the JSON-RPC message in the body.
    pub(crate) fn record_message(&mut self, body: &[u8]) {
        self.envelope = Envelope::read(body);
    }

    /// Assigns the request to a trace: to that of its client if the message or else the headers carry a trace context, or
    /// to a new one.
    pub(crate) fn join_trace(&mut self, sampler: Sampler, headers: &dyn HeaderLookup) -> TraceContext {
        let of_headers = || TraceContext::parse(headers.text("traceparent")?, headers.text("tracestate"));
        let parent = self.envelope.trace.take().or_else(of_headers);
        let own = sampler.join(parent.as_ref());
        self.trace = Some(AccessTrace { own: own.clone(), parent: parent.map(|parent| parent.span()) });
        own
    }

    /// Records the error code if the body is a JSON-RPC error.
    pub(crate) fn record_error(&mut self, body: &GatewayBody) {
        if let GatewayBody::Text(text) = body
            && text.len() <= MAX_SEARCHED_BYTES
        {
            self.error = Envelope::read(text.as_bytes()).error;
        }
    }

    /// Records a complete response.
    pub(crate) fn record_response(&mut self, status: u16, body: &GatewayBody) {
        self.record_status(status);
        self.record_error(body);
        self.add_bytes(body.len());
    }

    /// Adds to the number of response bytes.
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Records the status of the response, whose body may follow later.
    pub(crate) fn record_status(&mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let envelope = std::mem::take(&mut self.envelope);
        let access_record = AccessRecord {
            principal: self.principal.as_ref().map(|principal| principal.as_str().into()),
            transport: RequestTransport::Http {
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
        self.events.emit(Event::now(None, EventKind::RequestServed(Box::new(access_record))));
    }
}

/// The body of a response that is being sent through hyper.
pub(crate) struct RecordedBody {
    pub(crate) body: Body,
    pub(crate) record: Option<Box<RequestRecord>>,
    /// The connection does not count as idle until this is dropped.
    pub(crate) _active_request: ActiveRequest,
}

impl hyper::body::Body for RecordedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(frame))), Some(record)) = (&frame, &mut self.record) {
            record.add_bytes(frame.data_ref().map_or(0, Bytes::len));
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
