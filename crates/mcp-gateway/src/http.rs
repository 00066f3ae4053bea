//! The Streamable HTTP transport, for both eras on one endpoint. The response to a request is JSON if it consists of the
//! result alone, and becomes an event stream as soon as another message is sent first.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use toolhub_core::RawJson;
use toolhub_mcp_wire::era::LEGACY;
use toolhub_mcp_wire::headers::LAST_EVENT_ID;

use crate::body::ResponseBody;
use crate::budget::BudgetedResource;
use crate::client_handle::VERSION;
use crate::event_log::parse_event_id;
use crate::header_lookup::HeaderLookup;
use crate::in_flight::RequestStep;
use crate::listen::{NotificationFilter, all_lists_changed};
use crate::message::{
    self, BATCHES_UNSUPPORTED, ClientMessage, ClientRequest, RequestParams, error_response, one_line,
    serialize_response,
};
use crate::pending_input::{RequestIdentity, ResumeOutcome};
use crate::replica_link::{ForwardedHeaders, ReplicaBody, ReplicaRequest, ReplicaResponse, RequestMethod};
use crate::reply::{HttpReply, session_ended, with_permit};
use crate::request_context::{RequestContext, StepUp};
use crate::rpc_error::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError};
use crate::session::{CancelReason, Session};
use crate::session_lookup::{EarlyReply, IncomingRequest, RequestContent, SessionUse};
use crate::streams::run_to_log;
use crate::{Gateway, PrincipalHandle, RequestClient, modern};

/// The first revision with events of empty data, from which a client can resume (2025-11-25, transports). Clients of
/// older revisions parse the data of each event as JSON.
const EMPTY_EVENTS_SINCE: &str = "2025-11-25";

impl Gateway {
    /// Handles a POST request: one message, or a batch of an older client.
    pub async fn post(
        self: &Arc<Self>,
        headers: &dyn HeaderLookup,
        body: Bytes,
        principal: &PrincipalHandle,
    ) -> HttpReply {
        self.receive(IncomingRequest { headers, principal, is_forwarded: false }, body).await
    }

    /// Handles a POST request of a client or of another replica.
    pub(super) async fn receive(self: &Arc<Self>, incoming: IncomingRequest<'_>, body: Bytes) -> HttpReply {
        let IncomingRequest { headers, principal, .. } = incoming;
        let Ok(text) = ByteString::try_from(body) else {
            return HttpReply::error_reply(400, None, &RpcError::new(PARSE_ERROR, "the body is not UTF-8"));
        };
        if text.trim_start().starts_with('[') {
            return Box::pin(self.batch(incoming, &text)).await;
        }
        let message = match message::parse_message(&text) {
            Ok(message) => message,
            Err((id, error)) => return HttpReply::error_reply(400, id.as_ref(), &error),
        };
        let (request, params) = match message {
            ClientMessage::Request(request, params) => (request, params),
            other => return self.handle_message(incoming, other, &text).await,
        };
        let (has_version, named) = (params.meta.contains(VERSION), modern_revision(headers));
        if !has_version && let Some(Err(error)) = named.map(modern::check_supported) {
            return HttpReply::error_reply(400, Some(&request.id), &error);
        }
        if has_version || named.is_some() {
            return self.modern(incoming, request, params, &text).await;
        }
        if request.method == "initialize" {
            return match self.initialize(&params.members, principal, Some(&self.session_ids)).await {
                Ok((session, greeting)) => {
                    let id = Some(session.id.clone());
                    self.add_session(session);
                    let body = ResponseBody::of(request.id, Ok(greeting));
                    HttpReply::Body { status: 200, body, session: id }
                }
                Err(error) => HttpReply::error_reply(400, Some(&request.id), &error),
            };
        }
        let content = RequestContent { method: RequestMethod::Post, body: text.as_bytes().clone() };
        match self.session_or_reply(incoming, SessionUse::Request, content).await {
            Ok(session) => self.legacy(session, request, params).await,
            Err(reply) => reply.for_request(&request.id),
        }
    }

    /// Handles a GET request: opens the stream for messages that belong to no request, or resumes an interrupted stream.
    pub async fn get(self: &Arc<Self>, headers: &dyn HeaderLookup, principal: &PrincipalHandle) -> HttpReply {
        self.open_stream(IncomingRequest { headers, principal, is_forwarded: false }).await
    }

    /// Handles a GET request of a client or of another replica.
    pub(super) async fn open_stream(self: &Arc<Self>, incoming: IncomingRequest<'_>) -> HttpReply {
        let IncomingRequest { headers, principal, .. } = incoming;
        if let Err(error) = check_revision(headers) {
            return HttpReply::error_reply(400, None, &error);
        }
        if is_modern(headers) {
            return HttpReply::empty(405);
        }
        // Without a session there is no stream to open.
        if headers.session().is_none() {
            return HttpReply::empty(405);
        }
        let usage = match headers.text(LAST_EVENT_ID) {
            Some(_) => SessionUse::Continuation,
            None => SessionUse::Request,
        };
        let session = match self
            .session_or_reply(incoming, usage, RequestContent::without_body(RequestMethod::Get))
            .await
        {
            Ok(session) => session,
            Err(reply) => return reply.without_request(),
        };
        if let Some((stream, after)) = headers.text(LAST_EVENT_ID).and_then(parse_event_id) {
            let resumable = session.log(stream).filter(|log| log.can_resume(after));
            match (resumable, principal.take(BudgetedResource::Streams, 1)) {
                (Some(log), Ok(permit)) => return HttpReply::Events(with_permit(permit, log.read(after))),
                (Some(_), Err(exceeded)) => return HttpReply::error_reply(429, None, &exceeded.into()),
                // This stream continues without the missed events.
                (None, _) if stream.number == 0 => {}
                // 404 would end the session (2025-11-25, transports: session management).
                (None, _) => {
                    let not_found =
                        RpcError::new(INVALID_REQUEST, "there is nothing to resume after that event");
                    return HttpReply::error_reply(405, None, &not_found);
                }
            }
        }
        let permit = match principal.take(BudgetedResource::Streams, 1) {
            Ok(permit) => permit,
            Err(exceeded) => return HttpReply::error_reply(429, None, &exceeded.into()),
        };
        let (log, new) = session.own_log();
        if new {
            let (gateway, listener, written) = (Arc::clone(self), Arc::clone(&session), Arc::clone(&log));
            self.tasks.spawn(async move {
                let telling = Arc::clone(&written);
                let send_notifications = move |text| {
                    telling.push(&one_line(text));
                };
                gateway.send_notifications(listener, send_notifications).await;
                written.finish();
            });
            if session.version >= EMPTY_EVENTS_SINCE {
                log.push("");
            }
            if session.is_resumed() {
                // It is unknown which messages the client has missed.
                for text in all_lists_changed() {
                    log.push(&text);
                }
            }
        }
        // A client that lost a stream sends `Last-Event-ID`. Without it, an existing stream continues with new events
        // only.
        let after = if new { 0 } else { log.count() };
        HttpReply::Events(with_permit(permit, log.read(after)))
    }

    /// Handles a DELETE request: ends the session.
    pub async fn delete(
        self: &Arc<Self>,
        headers: &dyn HeaderLookup,
        principal: &PrincipalHandle,
    ) -> HttpReply {
        self.end(IncomingRequest { headers, principal, is_forwarded: false }).await
    }

    /// Handles a DELETE request of a client or of another replica.
    pub(super) async fn end(self: &Arc<Self>, incoming: IncomingRequest<'_>) -> HttpReply {
        let headers = incoming.headers;
        if let Err(error) = check_revision(headers) {
            return HttpReply::error_reply(400, None, &error);
        }
        if is_modern(headers) {
            return HttpReply::empty(405);
        }
        match self
            .session_or_reply(
                incoming,
                SessionUse::Request,
                RequestContent::without_body(RequestMethod::Delete),
            )
            .await
        {
            Ok(session) => {
                self.end_session(&session).await;
                HttpReply::empty(204)
            }
            Err(reply) => reply.without_request(),
        }
    }

    /// Serves a request that another replica has authenticated and sent here.
    pub async fn serve_replica(
        self: &Arc<Self>,
        request: ReplicaRequest,
        principal: &PrincipalHandle,
    ) -> ReplicaResponse {
        let ReplicaRequest { method, headers, body, .. } = request;
        let headers = ForwardedHeaders(headers);
        let incoming = IncomingRequest { headers: &headers, principal, is_forwarded: true };
        let context =
            RequestContext { principal: principal.clone(), trace: None, step_up: StepUp::of(principal) };
        let serving = async {
            match method {
                RequestMethod::Post => self.receive(incoming, body).await,
                RequestMethod::Get => self.open_stream(incoming).await,
                RequestMethod::Delete => self.end(incoming).await,
            }
        };
        match context.scope(serving).await {
            HttpReply::Body { status, body, .. } => {
                ReplicaResponse { status, body: ReplicaBody::Json(body.parts().concat()) }
            }
            HttpReply::Events(events) => ReplicaResponse { status: 200, body: ReplicaBody::Events(events) },
        }
    }

    /// Handles a notification or a response.
    async fn handle_message(
        self: &Arc<Self>,
        incoming: IncomingRequest<'_>,
        message: ClientMessage,
        text: &ByteString,
    ) -> HttpReply {
        let headers = incoming.headers;
        if let Err(error) = check_revision(headers) {
            return HttpReply::error_reply(400, None, &error);
        }
        if is_modern(headers) {
            return match message {
                ClientMessage::Notification { .. } => HttpReply::empty(202),
                ClientMessage::Request(..) | ClientMessage::Response { .. } => {
                    let wrong = RpcError::new(INVALID_REQUEST, "a modern client sends requests alone");
                    HttpReply::error_reply(400, None, &wrong)
                }
            };
        }
        // A question that the client answers is at the owner replica of its session, if anywhere.
        let usage = match &message {
            ClientMessage::Response { .. } => SessionUse::Continuation,
            ClientMessage::Notification { .. } | ClientMessage::Request(..) => SessionUse::Request,
        };
        let content = RequestContent { method: RequestMethod::Post, body: text.as_bytes().clone() };
        let session = match self.session_or_reply(incoming, usage, content).await {
            Ok(session) => session,
            Err(reply) => return reply.without_request(),
        };
        self.accept(&session, message);
        HttpReply::empty(202)
    }

    /// Handles a notification or a response in a session.
    fn accept(&self, session: &Arc<Session>, message: ClientMessage) {
        match message {
            ClientMessage::Notification { method, params } => {
                self.handle_notification(session, &method, params.as_ref());
            }
            ClientMessage::Response { id, answer } => {
                session.info.server_requests.deliver(id, answer);
            }
            ClientMessage::Request(..) => {}
        }
    }

    /// Handles a batch, which exists in revisions before 2025-06-18. Each message is handled as if it were sent alone,
    /// but without a stream.
    async fn batch(self: &Arc<Self>, incoming: IncomingRequest<'_>, text: &ByteString) -> HttpReply {
        let IncomingRequest { headers, principal, .. } = incoming;
        let refuse = |why: &str| HttpReply::error_reply(400, None, &RpcError::new(INVALID_REQUEST, why));
        // Invalid JSON is reported as such, whatever the revision.
        let items = match RawJson::parse(&**text).map(|batch| batch.decode::<Vec<RawJson>>()) {
            Ok(Ok(items)) => items,
            Ok(Err(error)) | Err(error) => {
                let error = RpcError::new(PARSE_ERROR, format!("the body is not valid JSON: {error}"));
                return HttpReply::error_reply(400, None, &error);
            }
        };
        if let Err(error) = check_revision(headers) {
            return HttpReply::error_reply(400, None, &error);
        }
        if is_modern(headers) {
            return refuse(BATCHES_UNSUPPORTED);
        }
        let content = RequestContent { method: RequestMethod::Post, body: text.as_bytes().clone() };
        let session = match self.session_or_reply(incoming, SessionUse::Request, content).await {
            Ok(session) => session,
            Err(reply) => return reply.without_request(),
        };
        if session.version >= "2025-06-18" {
            return refuse(BATCHES_UNSUPPORTED);
        }
        if items.is_empty() || items.len() > 100 {
            return refuse("a batch has 1 to 100 messages");
        }
        let (mut answers, mut cancelled) = (Vec::new(), false);
        // No response can be read before all of them are complete, so all of them count as unread until then.
        let mut unread = match principal.take(BudgetedResource::Unread, 0) {
            Ok(permit) => permit,
            Err(exceeded) => return HttpReply::error_reply(429, None, &exceeded.into()),
        };
        for item in items {
            match message::parse_message(&item.get().into()) {
                Ok(ClientMessage::Request(request, params)) => {
                    let guard = session.register(&request.id);
                    let client = client_of(&session);
                    let (id, mut in_flight) = (request.id.clone(), self.start(request, params, client));
                    let outcome = loop {
                        let step = tokio::select! {
                            step = in_flight.step() => step,
                            reason = guard.cancellation.wait() => match reason {
                                CancelReason::Cancelled => break None,
                                CancelReason::SessionEnded => RequestStep::Done(Err(session_ended())),
                            },
                        };
                        if let RequestStep::Done(outcome) = step {
                            break Some(outcome);
                        }
                    };
                    let Some(outcome) = outcome else {
                        cancelled = true;
                        continue;
                    };
                    let answer = serialize_response(&id, &outcome);
                    answers.push(match unread.grow(answer.len()) {
                        Ok(()) => answer,
                        Err(exceeded) => ResponseBody::of(id, outcome).dropped(exceeded).parts().concat(),
                    });
                }
                Ok(other) => self.accept(&session, other),
                Err((id, error)) => answers.push(error_response(id.as_ref(), &error)),
            }
        }
        match answers.is_empty() {
            true if cancelled => HttpReply::no_events(),
            true => HttpReply::empty(202),
            false => {
                let body = ResponseBody::Text(format!("[{}]", answers.join(",")));
                HttpReply::Body { status: 200, body, session: None }
            }
        }
    }

    async fn legacy(
        self: &Arc<Self>,
        session: Arc<Session>,
        request: ClientRequest,
        params: RequestParams,
    ) -> HttpReply {
        let guard = session.register(&request.id);
        let mut in_flight = self.start(request, params, client_of(&session));
        let text = loop {
            let step = tokio::select! {
                step = in_flight.step() => step,
                reason = guard.cancellation.wait() => return match reason {
                    CancelReason::Cancelled => HttpReply::no_events(),
                    CancelReason::SessionEnded => HttpReply::error_reply(200, Some(&in_flight.id), &session_ended()),
                },
            };
            match step {
                RequestStep::Done(outcome) => return HttpReply::answer(200, &in_flight.id, outcome),
                RequestStep::Send(text) => break text,
                // Only modern clients receive server requests as results.
                RequestStep::RequestInput(_) => {}
            }
        };
        let log = session.open_log();
        if session.version >= EMPTY_EVENTS_SINCE {
            log.push("");
        }
        log.push(&one_line(text));
        let events = log.read(0);
        self.tasks.spawn(run_to_log(log, in_flight, guard));
        HttpReply::Events(Box::pin(events))
    }

    async fn modern(
        self: &Arc<Self>,
        incoming: IncomingRequest<'_>,
        request: ClientRequest,
        params: RequestParams,
        text: &ByteString,
    ) -> HttpReply {
        let IncomingRequest { headers, principal, is_forwarded } = incoming;
        let checked = self.modern_client_info(&params).and_then(|info| {
            if is_forwarded {
                // The replica that received it has checked its headers.
                return Ok(info);
            }
            self.check_headers(&request, &params, headers)?;
            if request.method == "tools/call" {
                self.check_mirrored_arguments(&params, headers, principal)?;
            }
            modern::check_supported(&modern::version_of(&params).unwrap_or_default())?;
            Ok(info)
        });
        let info = match checked {
            Ok(info) => info,
            Err(error) => return HttpReply::error_reply(400, Some(&request.id), &error),
        };
        self.note_modern_client(&request, &params, principal);
        if request.method == "subscriptions/listen" {
            let filter = NotificationFilter::of(&params);
            return match self.listen(request.id.clone(), filter, principal).await {
                Ok(events) => HttpReply::Events(events),
                Err(error) => {
                    let status = if error.code == INVALID_PARAMS { 400 } else { 429 };
                    HttpReply::error_reply(status, Some(&request.id), &error)
                }
            };
        }
        if let Some(owner) = self.owner_of_input(&params).filter(|_| !is_forwarded) {
            let body = text.as_bytes().clone();
            match self.send_input(owner, incoming, body).await {
                Ok(Some(reply)) => return reply,
                // What waited there has ended with it: the state is not known any more, which is answered below.
                Ok(None) => {}
                Err(error) => return EarlyReply::of_link(error).for_request(&request.id),
            }
        }
        let identity = RequestIdentity::of(principal, &request, &params);
        let in_flight = match self.pending_inputs.resume(&request, &params, &identity) {
            ResumeOutcome::NotPending => self.start(request, params, RequestClient { info, session: None }),
            ResumeOutcome::Continued(in_flight) => in_flight,
            ResumeOutcome::Incomplete(server_request) => {
                return HttpReply::answer(200, &request.id, Ok(server_request));
            }
            ResumeOutcome::Rejected(error) => return HttpReply::error_reply(400, Some(&request.id), &error),
        };
        self.run(in_flight, identity).await
    }
}

fn client_of(session: &Arc<Session>) -> RequestClient {
    RequestClient { info: session.info.clone(), session: Some(Arc::clone(session)) }
}

/// Returns the revision in the header unless it is a legacy one. Clients that send such a header follow the modern
/// protocol.
fn modern_revision(headers: &dyn HeaderLookup) -> Option<&str> {
    headers.revision().filter(|version| !LEGACY.contains(version))
}

fn is_modern(headers: &dyn HeaderLookup) -> bool {
    modern_revision(headers).is_some()
}

/// Refuses a header with an unknown revision (2025-11-25, transports: an invalid revision is answered with 400).
fn check_revision(headers: &dyn HeaderLookup) -> Result<(), RpcError> {
    modern_revision(headers).map_or(Ok(()), modern::check_supported)
}
