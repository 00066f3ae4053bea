//! The Streamable HTTP transport, for both eras on one endpoint. The response to a request is JSON if it consists of the
//! result alone, and becomes an event stream as soon as another message is sent first.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::stream::{self, Stream, StreamExt as _};
use toolhub_core::RawJson;
use toolhub_mcp_wire::era::LEGACY;

use crate::backend::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError};
use crate::body::Body;
use crate::budget::{Permit, Resource};
use crate::client_handle::VERSION;
use crate::event_log::place;
use crate::header_lookup::HeaderLookup;
use crate::listen::{Wanted, all_lists_changed};
use crate::message::{self, Message, ONE_AT_A_TIME, Params, Request, one_line, refusal, response};
use crate::pending_input::{About, Resumed};
use crate::running::{Served, Step};
use crate::session::{Reason, Session};
use crate::streams::pump;
use crate::{Client, ENDING, Gateway, Principal, modern};

/// The first revision with events of empty data, from which a client can resume (2025-11-25, transports). Clients of
/// older revisions parse the data of each event as JSON.
const EMPTY_EVENTS_SINCE: &str = "2025-11-25";

/// Serialized server-sent events.
pub type Events = Pin<Box<dyn Stream<Item = String> + Send>>;

/// The response to an HTTP request.
pub enum Reply {
    /// A status and an optional JSON body.
    Body {
        /// The status.
        status: u16,
        /// The JSON.
        body: Body,
        /// The id of a new session.
        session: Option<String>,
    },
    /// An event stream.
    Events(Events),
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Body { status, body, .. } => f.debug_tuple("Body").field(status).field(body).finish(),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

impl Reply {
    /// Returns the response with the result of a request.
    pub(super) fn answer(status: u16, id: &RawJson, served: Served) -> Self {
        Self::Body { status, body: Body::of(id.clone(), served), session: None }
    }

    fn empty(status: u16) -> Self {
        Self::Body { status, body: Body::None, session: None }
    }

    /// A stream that ends without an event: a cancelled request gets no response, and the HTTP response to a request must
    /// be JSON or a stream (2025-11-25, transports).
    fn no_events() -> Self {
        Self::Events(Box::pin(stream::empty()))
    }

    pub(super) fn refused(status: u16, id: Option<&RawJson>, error: &RpcError) -> Self {
        Self::Body { status, body: Body::refusal(id, error), session: None }
    }
}

impl Gateway {
    /// Handles a POST request: one message, or a batch of an older client.
    pub async fn post(
        self: &Arc<Self>,
        headers: &dyn HeaderLookup,
        body: Bytes,
        principal: &Principal,
    ) -> Reply {
        let Ok(text) = ByteString::try_from(body) else {
            return Reply::refused(400, None, &RpcError::new(PARSE_ERROR, "the body is not UTF-8"));
        };
        if text.trim_start().starts_with('[') {
            return Box::pin(self.batch(headers, &text, principal)).await;
        }
        let message = match message::read(&text) {
            Ok(message) => message,
            Err((id, error)) => return Reply::refused(400, id.as_ref(), &error),
        };
        let (request, params) = match message {
            Message::Request(request, params) => (request, params),
            other => return self.told(headers, other, principal),
        };
        let (says_itself, named) = (params.meta.contains(VERSION), newer(headers));
        if !says_itself && let Some(Err(error)) = named.map(modern::supported) {
            return Reply::refused(400, Some(&request.id), &error);
        }
        if says_itself || named.is_some() {
            return self.modern(headers, request, (params, principal)).await;
        }
        if request.method == "initialize" {
            return match self.initialize(&params.members, principal, Some(&self.session_ids)) {
                Ok((session, greeting)) => {
                    let id = Some(session.id.clone());
                    self.add_session(session);
                    let body = Body::of(request.id, Ok(greeting));
                    Reply::Body { status: 200, body, session: id }
                }
                Err(error) => Reply::refused(400, Some(&request.id), &error),
            };
        }
        match self.session(headers, principal) {
            Ok(session) => self.legacy(session, request, params).await,
            Err((status, error)) => Reply::refused(status, Some(&request.id), &error),
        }
    }

    /// Handles a GET request: opens the stream for messages that belong to no request, or resumes an interrupted stream.
    pub async fn get(self: &Arc<Self>, headers: &dyn HeaderLookup, principal: &Principal) -> Reply {
        if let Err(error) = known_revision(headers) {
            return Reply::refused(400, None, &error);
        }
        if is_modern(headers) {
            return Reply::empty(405);
        }
        let session = match self.session(headers, principal) {
            Ok(session) => session,
            // Without a session there is no stream to open.
            Err((400, _)) => return Reply::empty(405),
            Err((status, error)) => return Reply::refused(status, None, &error),
        };
        if let Some((stream, after)) = headers.text("last-event-id").and_then(place) {
            let kept = session.log(stream).filter(|log| log.can_resume(after));
            match (kept, principal.take(Resource::Streams, 1)) {
                (Some(log), Ok(permit)) => return Reply::Events(holding(permit, log.read(after))),
                (Some(_), Err(exhausted)) => return Reply::refused(429, None, &exhausted.into()),
                // This stream continues without the missed events.
                (None, _) if stream.number == 0 => {}
                // 404 would end the session (2025-11-25, transports: session management).
                (None, _) => {
                    let gone = RpcError::new(INVALID_REQUEST, "there is nothing to resume after that event");
                    return Reply::refused(405, None, &gone);
                }
            }
        }
        let permit = match principal.take(Resource::Streams, 1) {
            Ok(permit) => permit,
            Err(exhausted) => return Reply::refused(429, None, &exhausted.into()),
        };
        let (log, new) = session.own_log();
        if new {
            let (gateway, listener, written) = (Arc::clone(self), Arc::clone(&session), Arc::clone(&log));
            self.tasks.spawn(async move {
                let telling = Arc::clone(&written);
                let tell = move |text| {
                    telling.push(&one_line(text));
                };
                gateway.tell(listener, tell).await;
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
        Reply::Events(holding(permit, log.read(after)))
    }

    /// Handles a DELETE request: ends the session.
    pub async fn delete(self: &Arc<Self>, headers: &dyn HeaderLookup, principal: &Principal) -> Reply {
        if let Err(error) = known_revision(headers) {
            return Reply::refused(400, None, &error);
        }
        if is_modern(headers) {
            return Reply::empty(405);
        }
        match self.session(headers, principal) {
            Ok(session) => {
                self.end_session(&session).await;
                Reply::empty(204)
            }
            Err((status, error)) => Reply::refused(status, None, &error),
        }
    }

    fn session(
        &self,
        headers: &dyn HeaderLookup,
        principal: &Principal,
    ) -> Result<Arc<Session>, (u16, RpcError)> {
        let Some(id) = headers.session() else {
            let how = "`Mcp-Session-Id` is missing: begin with `initialize`";
            return Err((400, RpcError::new(INVALID_REQUEST, how)));
        };
        let gone = || (404, RpcError::new(-32001, "there is no such session: begin with `initialize`"));
        let known = self.sessions.get(id, principal);
        known.or_else(|| self.resume_session(id, principal)).ok_or_else(gone)
    }

    /// Handles a notification or a response.
    fn told(&self, headers: &dyn HeaderLookup, message: Message, principal: &Principal) -> Reply {
        if let Err(error) = known_revision(headers) {
            return Reply::refused(400, None, &error);
        }
        if is_modern(headers) {
            return match message {
                Message::Notification { .. } => Reply::empty(202),
                Message::Request(..) | Message::Answer { .. } => {
                    let wrong = RpcError::new(INVALID_REQUEST, "a modern client sends requests alone");
                    Reply::refused(400, None, &wrong)
                }
            };
        }
        let session = match self.session(headers, principal) {
            Ok(session) => session,
            Err((status, error)) => return Reply::refused(status, None, &error),
        };
        match message {
            Message::Notification { method, params } => self.hear(&session, &method, params.as_ref()),
            Message::Answer { id, answer } => {
                session.facts.questions.settle(id, answer);
            }
            Message::Request(..) => {}
        }
        Reply::empty(202)
    }

    /// Handles a batch, which exists in revisions before 2025-06-18. Each message is handled as if it were sent alone,
    /// but without a stream.
    async fn batch(self: &Arc<Self>, headers: &dyn HeaderLookup, text: &str, principal: &Principal) -> Reply {
        let refuse = |why: &str| Reply::refused(400, None, &RpcError::new(INVALID_REQUEST, why));
        // Invalid JSON is reported as such, whatever the revision.
        let items = match RawJson::parse(text).map(|all| all.decode::<Vec<RawJson>>()) {
            Ok(Ok(items)) => items,
            Ok(Err(error)) | Err(error) => {
                let error = RpcError::new(PARSE_ERROR, format!("the body is no JSON: {error}"));
                return Reply::refused(400, None, &error);
            }
        };
        if let Err(error) = known_revision(headers) {
            return Reply::refused(400, None, &error);
        }
        if is_modern(headers) {
            return refuse(ONE_AT_A_TIME);
        }
        let session = match self.session(headers, principal) {
            Ok(session) => session,
            Err((status, error)) => return Reply::refused(status, None, &error),
        };
        if session.version >= "2025-06-18" {
            return refuse(ONE_AT_A_TIME);
        }
        if items.is_empty() || items.len() > 100 {
            return refuse("a batch has 1 to 100 messages");
        }
        let (mut answers, mut cancelled) = (Vec::new(), false);
        // No response can be read before all of them are complete, so all of them count as unread until then.
        let mut unread = match principal.take(Resource::Unread, 0) {
            Ok(permit) => permit,
            Err(exhausted) => return Reply::refused(429, None, &exhausted.into()),
        };
        for item in items {
            match message::read(&item.get().into()) {
                Ok(Message::Request(request, params)) => {
                    let entered = session.enter(&request.id);
                    let client = client_of(&session);
                    let (id, mut running) = (request.id.clone(), self.start(request, params, client));
                    let served = loop {
                        let step = tokio::select! {
                            step = running.step() => step,
                            reason = entered.given_up.wait() => match reason {
                                Reason::Cancelled => break None,
                                Reason::SessionEnded => Step::Over(Err(session_ended())),
                            },
                        };
                        if let Step::Over(served) = step {
                            break Some(served);
                        }
                    };
                    let Some(served) = served else {
                        cancelled = true;
                        continue;
                    };
                    let answer = response(&id, &served);
                    answers.push(match unread.grow(answer.len()) {
                        Ok(()) => answer,
                        Err(exhausted) => Body::of(id, served).dropped(exhausted).parts().concat(),
                    });
                }
                Ok(other) => {
                    self.told(headers, other, principal);
                }
                Err((id, error)) => answers.push(refusal(id.as_ref(), &error)),
            }
        }
        match answers.is_empty() {
            true if cancelled => Reply::no_events(),
            true => Reply::empty(202),
            false => {
                let body = Body::Text(format!("[{}]", answers.join(",")));
                Reply::Body { status: 200, body, session: None }
            }
        }
    }

    async fn legacy(self: &Arc<Self>, session: Arc<Session>, request: Request, params: Params) -> Reply {
        let entered = session.enter(&request.id);
        let mut running = self.start(request, params, client_of(&session));
        let text = loop {
            let step = tokio::select! {
                step = running.step() => step,
                reason = entered.given_up.wait() => return match reason {
                    Reason::Cancelled => Reply::no_events(),
                    Reason::SessionEnded => Reply::refused(200, Some(&running.id), &session_ended()),
                },
            };
            match step {
                Step::Over(served) => return Reply::answer(200, &running.id, served),
                Step::Tell(text) => break text,
                // Only modern clients receive server requests as results.
                Step::Ask(_) => {}
            }
        };
        let log = session.open_log();
        if session.version >= EMPTY_EVENTS_SINCE {
            log.push("");
        }
        log.push(&one_line(text));
        let events = log.read(0);
        self.tasks.spawn(pump(log, running, entered));
        Reply::Events(Box::pin(events))
    }

    async fn modern(
        self: &Arc<Self>,
        headers: &dyn HeaderLookup,
        request: Request,
        (params, principal): (Params, &Principal),
    ) -> Reply {
        let checked = self.modern_facts(&params).and_then(|facts| {
            self.check_headers(&request, &params, headers)?;
            modern::supported(&modern::version_in(&params).unwrap_or_default())?;
            Ok(facts)
        });
        let facts = match checked {
            Ok(facts) => facts,
            Err(error) => return Reply::refused(400, Some(&request.id), &error),
        };
        if request.method == "subscriptions/listen" {
            let wanted = Wanted::of(&params);
            return match self.listen(request.id.clone(), wanted, principal).await {
                Ok(events) => Reply::Events(events),
                Err(error) => {
                    let status = if error.code == INVALID_PARAMS { 400 } else { 429 };
                    Reply::refused(status, Some(&request.id), &error)
                }
            };
        }
        let about = About::of(principal, &request, &params);
        let running = match self.rounds.resume(&request, &params, &about) {
            Resumed::Other => self.start(request, params, Client { facts, session: None }),
            Resumed::On(running) => running,
            Resumed::Again(question) => return Reply::answer(200, &request.id, Ok(question)),
            Resumed::Refused(error) => return Reply::refused(400, Some(&request.id), &error),
        };
        self.run(running, about).await
    }
}

/// Returns a stream that holds a permit until it is dropped.
fn holding(permit: Permit, events: impl Stream<Item = String> + Send + 'static) -> Events {
    Box::pin(events.inspect(move |_| {
        let _held = &permit;
    }))
}

/// The error of a request that was running when its session ended.
pub(super) fn session_ended() -> RpcError {
    let why = "the session ended before this was done; what had begun may have had its effect";
    RpcError::new(ENDING, why)
}

fn client_of(session: &Arc<Session>) -> Client {
    Client { facts: session.facts.clone(), session: Some(Arc::clone(session)) }
}

/// Returns the revision in the header unless it is a legacy one. Clients that send such a header follow the modern
/// protocol.
fn newer(headers: &dyn HeaderLookup) -> Option<&str> {
    headers.revision().filter(|version| !LEGACY.contains(version))
}

fn is_modern(headers: &dyn HeaderLookup) -> bool {
    newer(headers).is_some()
}

/// Refuses a header with an unknown revision (2025-11-25, transports: an invalid revision is answered with 400).
fn known_revision(headers: &dyn HeaderLookup) -> Result<(), RpcError> {
    newer(headers).map_or(Ok(()), modern::supported)
}

/// Returns the HTTP status of an error (2026-07-28, transports/streamable-http).
pub(super) fn status_of(error: &RpcError) -> u16 {
    match error.code {
        METHOD_NOT_FOUND => 404,
        -32022..=-32020 => 400,
        _ => 200,
    }
}
