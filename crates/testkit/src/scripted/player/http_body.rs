//! Builds an HTTP response from the output of the actions, aborts it where scripted, and detects a disconnected client.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{body_part::Part, http_writer::Pending, message::Message, player_state::PlayerState};

/// Detects that the connection closed before the response was complete: it is dropped while still armed.
#[derive(Debug)]
pub(super) struct Watch {
    player_state: Arc<PlayerState>,
    what: Value,
    /// Cancelled on disconnect, if that cancels the request.
    cancels: Option<CancellationToken>,
    armed: bool,
}

impl Watch {
    pub(super) fn new(
        player_state: &Arc<PlayerState>,
        message: &Message,
        cancels: Option<CancellationToken>,
    ) -> Self {
        let id: Value = message.id().and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default();
        let what = json!({"method": message.method(), "id": id});
        Self { player_state: Arc::clone(player_state), what, cancels, armed: true }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        self.player_state.journal.event("disconnect", &self.what);
        if let Some(token) = &self.cancels {
            token.cancel();
        }
    }
}

/// Waits for the head, and streams the body.
pub(super) async fn respond(pending: Pending, mut watch: Watch) -> Response {
    let Ok(head) = pending.head.await else {
        // A body that fails immediately aborts the connection before the head is flushed.
        return Response::new(Body::from_stream(Parts { parts: pending.parts, watch, cut: Some(Cut::Now) }));
    };
    let body = if head.has_body {
        Body::from_stream(Parts { parts: pending.parts, watch, cut: None })
    } else {
        watch.armed = false;
        Body::empty()
    };
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
    response
}

struct Parts {
    parts: mpsc::Receiver<Part>,
    watch: Watch,
    cut: Option<Cut>,
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    Now,
    /// Previous output is flushed when the body has no more data.
    AfterFlush,
}

impl Stream for Parts {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.cut {
            Some(Cut::Now) => {
                self.watch.armed = false;
                return Poll::Ready(Some(Err(io::Error::other("cut by the script"))));
            }
            Some(Cut::AfterFlush) => {
                self.cut = Some(Cut::Now);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => {}
        }
        match ready!(self.parts.poll_recv(context)) {
            Some(Part::Data(bytes)) => Poll::Ready(Some(Ok(bytes))),
            Some(Part::Cut) => {
                self.cut = Some(Cut::AfterFlush);
                self.poll_next(context)
            }
            None => {
                self.watch.armed = false;
                Poll::Ready(None)
            }
        }
    }
}
