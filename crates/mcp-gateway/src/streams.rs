//! Event streams: responses of requests that send more than a result, and notification streams.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use toolhub_core::RawJson;

use crate::Gateway;
use crate::budget::{BudgetPermit, PrincipalHandle};
use crate::event_log::{EventLog, KEEP_ALIVE, KEEP_ALIVE_COMMENT, format_event};
use crate::in_flight::{InFlightRequest, RequestStep};
use crate::listen::{ListenPermits, NotificationFilter, closing_result};
use crate::message::{error_response, one_line, serialize_response};
use crate::pending_input::RequestIdentity;
use crate::replays::Replay as _;
use crate::reply::{HttpReply, SseEvents, session_ended, status_of};
use crate::rpc_error::RpcError;
use crate::session::{CancelReason, RequestGuard};
use crate::subscriptions::Subscriptions;

/// How long a request keeps running after its client has lost the stream, so that the client may resume it.
const RESUME_GRACE_PERIOD: Duration = Duration::from_secs(60);

impl Gateway {
    /// Runs a modern request. Dropping the reply cancels it, as when the client disconnects.
    pub(super) async fn run(
        self: &Arc<Self>,
        mut in_flight: InFlightRequest,
        identity: RequestIdentity,
    ) -> HttpReply {
        let first = match in_flight.step().await {
            RequestStep::Done(outcome) => {
                let status = outcome.as_ref().err().map_or(200, status_of);
                return HttpReply::answer(status, &in_flight.id, outcome);
            }
            RequestStep::RequestInput(server_requests) => {
                let id = in_flight.id.clone();
                let input_required = self.pending_inputs.suspend(in_flight, server_requests, identity);
                let status = input_required.as_ref().err().map_or(200, status_of);
                return HttpReply::answer(status, &id, input_required);
            }
            RequestStep::Send(text) => text,
        };
        let gateway = Arc::clone(self);
        let state = StreamState::Queued(first, Box::new((in_flight, identity)));
        HttpReply::Events(Box::pin(stream::unfold(state, move |state| {
            let gateway = Arc::clone(&gateway);
            async move {
                let (mut in_flight, identity) = match state {
                    StreamState::Done => return None,
                    StreamState::Queued(text, rest) => {
                        return Some((format_event(None, &one_line(text)), StreamState::Active(rest)));
                    }
                    StreamState::Active(rest) => *rest,
                };
                let last = |text: String| Some((format_event(None, &one_line(text)), StreamState::Done));
                match tokio::time::timeout(KEEP_ALIVE, in_flight.step()).await {
                    Err(_) => Some((
                        KEEP_ALIVE_COMMENT.to_owned(),
                        StreamState::Active(Box::new((in_flight, identity))),
                    )),
                    Ok(RequestStep::Send(text)) => Some((
                        format_event(None, &one_line(text)),
                        StreamState::Active(Box::new((in_flight, identity))),
                    )),
                    Ok(RequestStep::RequestInput(server_requests)) => {
                        let id = in_flight.id.clone();
                        let input_required =
                            gateway.pending_inputs.suspend(in_flight, server_requests, identity);
                        last(serialize_response(&id, &input_required))
                    }
                    Ok(RequestStep::Done(outcome)) => last(serialize_response(&in_flight.id, &outcome)),
                }
            }
        })))
    }

    /// Opens the notification stream of a `subscriptions/listen` request.
    pub(super) async fn listen(
        self: &Arc<Self>,
        id: RawJson,
        filter: NotificationFilter,
        principal: &PrincipalHandle,
    ) -> Result<SseEvents, RpcError> {
        let ListenPermits { stream, subscriptions } = filter.permits(principal)?;
        let changes = Arc::clone(&self.backend).changes(Arc::clone(principal.identity()));
        let subscriptions = self.subscribe_all(subscriptions).await;
        let listen_stream = ListenStream {
            gateway: Arc::clone(self),
            filter,
            id: id.detach(),
            subscriptions,
            _permit: stream,
        };
        let first = format_event(None, &listen_stream.filter.acknowledgement(&listen_stream.id));
        let state = (Some(first), changes, Some(listen_stream));
        Ok(Box::pin(stream::unfold(state, |(first, mut changes, listen_stream)| async move {
            let listen_stream = listen_stream?;
            if let Some(first) = first {
                return Some((first, (None, changes, Some(listen_stream))));
            }
            loop {
                let closing = listen_stream.gateway.closing.clone();
                let piece = tokio::select! {
                    () = closing.cancelled() => {
                        let end = serialize_response(&listen_stream.id, &Ok(closing_result(&listen_stream.id)));
                        return Some((format_event(None, &end), (None, changes, None)));
                    }
                    piece = tokio::time::timeout(KEEP_ALIVE, changes.next()) => piece,
                };
                let Ok(change) = piece else {
                    return Some((KEEP_ALIVE_COMMENT.to_owned(), (None, changes, Some(listen_stream))));
                };
                let ListenStream { filter, id, subscriptions, .. } = &listen_stream;
                if let Some(text) = filter.notification(&change?, id, subscriptions) {
                    return Some((format_event(None, &one_line(text)), (None, changes, Some(listen_stream))));
                }
            }
        })))
    }
}

/// The state of the event stream of a modern request.
enum StreamState {
    Queued(String, Box<(InFlightRequest, RequestIdentity)>),
    Active(Box<(InFlightRequest, RequestIdentity)>),
    Done,
}

/// A notification stream and the resources that it holds.
struct ListenStream {
    gateway: Arc<Gateway>,
    filter: NotificationFilter,
    id: RawJson,
    subscriptions: Subscriptions,
    _permit: BudgetPermit,
}

/// The error that replaces a response for which the replay budget has no room.
fn replay_budget_error() -> RpcError {
    let why = "the request was executed, but its answer was dropped: too many events of this caller were not read \
               (`replay_bytes` in `[serve.limits]`)";
    RpcError::new(-32000, why)
}

/// Runs a legacy request to its end, whether or not its client is connected to the stream.
pub(super) async fn run_to_log(log: Arc<EventLog>, mut in_flight: InFlightRequest, guard: RequestGuard) {
    loop {
        let step = tokio::select! {
            step = in_flight.step() => step,
            reason = guard.cancellation.wait() => {
                match reason {
                    CancelReason::SessionEnded => {
                        log.push(&error_response(Some(&in_flight.id), &session_ended()));
                    }
                    // A cancelled request has nothing to resume.
                    CancelReason::Cancelled => log.discard(),
                }
                break;
            }
            () = log.wait_abandoned(RESUME_GRACE_PERIOD) => break,
        };
        match step {
            RequestStep::Send(text) => {
                log.push(&one_line(text));
            }
            RequestStep::Done(outcome) => {
                if !log.push(&one_line(serialize_response(&in_flight.id, &outcome))) {
                    log.push(&error_response(Some(&in_flight.id), &replay_budget_error()));
                }
                break;
            }
            RequestStep::RequestInput(_) => {}
        }
    }
    log.finish();
}
