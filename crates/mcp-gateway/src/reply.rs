//! The response to an HTTP request: one JSON body or an event stream, and the HTTP status of an error.

use std::pin::Pin;

use futures_util::stream::{self, Stream, StreamExt as _};
use toolhub_core::RawJson;
use toolhub_core::error::METHOD_NOT_FOUND;

use crate::ABORTED;
use crate::body::ResponseBody;
use crate::budget::BudgetPermit;
use crate::rpc_error::{RpcError, RpcResult};

/// Serialized server-sent events.
pub type SseEvents = Pin<Box<dyn Stream<Item = String> + Send>>;

/// The response to an HTTP request.
pub enum HttpReply {
    /// A status and an optional JSON body.
    Body {
        /// The status.
        status: u16,
        /// The JSON.
        body: ResponseBody,
        /// The id of a new session.
        session: Option<String>,
    },
    /// An event stream.
    Events(SseEvents),
}

impl std::fmt::Debug for HttpReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Body { status, body, .. } => f.debug_tuple("Body").field(status).field(body).finish(),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

impl HttpReply {
    /// Returns the response with the result of a request.
    pub(super) fn answer(status: u16, id: &RawJson, outcome: RpcResult) -> Self {
        Self::Body { status, body: ResponseBody::of(id.clone(), outcome), session: None }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self::Body { status, body: ResponseBody::None, session: None }
    }

    /// A stream that ends without an event: a cancelled request gets no response, and the HTTP response to a request must
    /// be JSON or a stream (2025-11-25, transports).
    pub(super) fn no_events() -> Self {
        Self::Events(Box::pin(stream::empty()))
    }

    pub(super) fn error_reply(status: u16, id: Option<&RawJson>, error: &RpcError) -> Self {
        Self::Body { status, body: ResponseBody::error_response(id, error), session: None }
    }
}

/// Returns a stream that holds a permit until it is dropped.
pub(super) fn with_permit(
    permit: BudgetPermit,
    events: impl Stream<Item = String> + Send + 'static,
) -> SseEvents {
    Box::pin(events.inspect(move |_| {
        let _held = &permit;
    }))
}

/// The error of a request that was running when its session ended.
pub(super) fn session_ended() -> RpcError {
    let why = "the session ended before this was done; what had begun may have had its effect";
    RpcError::new(ABORTED, why)
}

/// Returns the HTTP status of an error (2026-07-28, transports/streamable-http).
pub(super) fn status_of(error: &RpcError) -> u16 {
    match error.code {
        METHOD_NOT_FOUND => 404,
        -32022..=-32020 => 400,
        _ => 200,
    }
}
