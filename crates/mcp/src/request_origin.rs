//! Which caller a message of a server concerns. Only where that is certain does a caller get it.
//!
//! It is certain if the message came on the response stream of one request. On a stream that carries everything (stdio,
//! HTTP+SSE, the GET stream of a session) nothing in a message names the request that caused it, and a server may go on
//! working for a request that was answered or cancelled long ago. So there it is certain only as long as one principal
//! alone has used the connection (over HTTP without a session: the server); among the sessions of one principal, only if no other session's work can be the cause.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolhub_core::caller::Answer;
use toolhub_core::worker::PerWorker;
use toolhub_core::{CallContext, CallerLink, EventKind, RawJson, Source, TraceContext};

use crate::transport::Listener;

/// Somebody who wants something of a server and can be asked back. Whoever knows of them knows the same one.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin(Arc<RequestState>);

/// What is known of them.
#[derive(Debug)]
pub(crate) struct RequestState {
    pub(crate) link: CallerLink,
    /// The call it is for, whose deadline waits while a question is open.
    call: Option<Arc<ProgressForwarder>>,
    /// What the server is told of the trace that the request is part of.
    pub(crate) trace: Option<TraceContext>,
}

impl Deref for RequestOrigin {
    type Target = RequestState;

    fn deref(&self) -> &RequestState {
        &self.0
    }
}

impl RequestOrigin {
    /// Somebody who wants something that is no call.
    pub(crate) fn new(link: CallerLink) -> Self {
        let trace = link.trace().cloned();
        Self(Arc::new(RequestState { link, call: None, trace }))
    }

    /// Whoever made a call, for an attempt at a source, which is a span of its own where traces are made.
    pub(crate) fn calling(
        link: CallerLink,
        call: &Arc<ProgressForwarder>,
        source: impl FnOnce() -> Source,
    ) -> Self {
        let trace = link.trace().map(|trace| trace.with_span(fastrand::u64(1..)));
        if let Some(trace) = &trace {
            call.context.emit(EventKind::Traced { source: Some(source()), trace: trace.clone() });
        }
        Self(Arc::new(RequestState { link, call: Some(Arc::clone(call)), trace }))
    }

    /// The session that it belongs to. Modern requests belong to none, and count as one.
    fn session(&self) -> u64 {
        if self.link.takes_questions_as_results() { 0 } else { self.link.client() }
    }

    pub(crate) async fn ask(&self, method: String, params: Option<RawJson>) -> Answer {
        let _open = Open(self);
        if let Some(call) = &self.call {
            call.context.emit(EventKind::Questioned { method: method.clone() });
        }
        self.link.ask(method, params).await
    }
}

struct Open<'a>(&'a RequestOrigin);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(call) = &self.0.call {
            call.context.emit(EventKind::Answered);
        }
    }
}

#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Hears of one call for its caller and for whoever follows it.
#[derive(Debug)]
pub(crate) struct ProgressForwarder {
    context: CallContext,
    /// That it leaves is said once, however many requests it takes.
    left: AtomicBool,
}

impl ProgressForwarder {
    pub(crate) fn new(context: CallContext) -> Self {
        Self { context, left: AtomicBool::new(false) }
    }
}

impl Listener for ProgressForwarder {
    fn leaves(&self) {
        if !self.left.swap(true, Ordering::Relaxed) {
            self.context.sending();
        }
    }

    fn progress(&self, params: &RawJson) {
        if let Some(caller) = &self.context.caller {
            caller.progress(params);
        }
        if let Ok(Progress { progress, total, message }) = params.decode() {
            self.context.emit(EventKind::Progress { progress, total, message });
        }
    }
}

/// How long a request of another session of the same principal may still be the cause of a message, if it was cancelled or
/// timed out. One that was answered is taken for done: clients begin a session after another and use it at once, and
/// whatever it is, it stays with the same principal.
const UNANSWERED_LINGER: Duration = Duration::from_secs(60);

/// The requests of callers that are under way at one connection, and who has used it so far.
#[derive(Debug, Default)]
pub(crate) struct InFlightRequests {
    /// By the number of the request. Most are the newest when they go, and there are hardly ever many.
    in_flight: PerWorker<Here>,
    /// Who has used the connection.
    users: Users,
    /// Who has used the server, over any connection. It decides where the server does not tell our connections apart.
    of_server: Option<Arc<Users>>,
    /// Whether what comes over the connection belongs to a session that no other connection has.
    in_session: AtomicBool,
    /// The session that used it last.
    session: AtomicU64,
    /// Until when that session's work, and that of any other one, may be the cause of a message, in ms since the start.
    session_until: AtomicU64,
    others_until: AtomicU64,
}

/// Who has used a connection, or a server.
#[derive(Debug, Default)]
pub(crate) struct Users {
    first: OnceLock<User>,
    /// Whether another one has used it since. It stays so: what was begun for the first may still speak.
    shared: AtomicBool,
}

impl Users {
    fn add(&self, origin: &RequestOrigin) {
        if !self.shared.load(Ordering::Relaxed) {
            let user = self.first.get_or_init(|| User::of(origin));
            if !user.is(origin) {
                self.shared.store(true, Ordering::Release);
            }
        }
    }

    fn add_owner(&self) {
        if *self.first.get_or_init(|| User::Owner) != User::Owner {
            self.shared.store(true, Ordering::Release);
        }
    }

    fn are_several(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Whose calls use a connection.
#[derive(Debug, PartialEq, Eq)]
enum User {
    /// The owner of the hub: calls that no client made.
    Owner,
    /// A client of the gateway, by its principal.
    Principal(Box<str>),
    /// A client without one, by its number.
    Client(u64),
}

impl User {
    fn of(origin: &RequestOrigin) -> Self {
        let link = &origin.link;
        link.principal().map_or_else(|| Self::Client(link.client()), |name| Self::Principal(name.into()))
    }

    fn is(&self, origin: &RequestOrigin) -> bool {
        match self {
            Self::Owner => false,
            Self::Principal(own) => origin.link.principal() == Some(own),
            Self::Client(own) => origin.link.principal().is_none() && origin.link.client() == *own,
        }
    }
}

/// Those of one worker.
type Here = Mutex<Vec<(u64, RequestOrigin)>>;

impl InFlightRequests {
    /// Nobody yet, over HTTP to a server that these have used.
    pub(crate) fn over_http(of_server: Arc<Users>) -> Self {
        Self { of_server: Some(of_server), ..Self::default() }
    }

    /// The server gave the connection a session of its own.
    pub(crate) fn join_session(&self) {
        self.in_session.store(true, Ordering::Release);
    }

    /// Notes a request, until what is given back is dropped.
    pub(crate) fn enter(&self, request: u64, origin: RequestOrigin) -> Known<'_> {
        self.users.add(&origin);
        if let Some(server) = &self.of_server {
            server.add(&origin);
        }
        let session = origin.session();
        if self.session.load(Ordering::Relaxed) != session {
            self.switch(session);
        }
        let here = self.in_flight.here();
        lock(here).push((request, origin));
        Known { in_flight: self, here, request, session, answered: false }
    }

    /// Notes a call that no client made.
    pub(crate) fn enter_owner(&self) {
        self.users.add_owner();
        if let Some(server) = &self.of_server {
            server.add_owner();
        }
    }

    /// Whether several have used what a message on a stream that carries everything may come from. A server over HTTP that
    /// gave us no session sees no difference between our connections, so all who ever used it count, with
    /// `instances = "caller"` too.
    fn are_several(&self) -> bool {
        match &self.of_server {
            Some(server) if !self.in_session.load(Ordering::Acquire) => server.are_several(),
            _ => self.users.are_several(),
        }
    }

    /// Whether a client of the gateway has used the connection.
    pub(crate) fn has_clients(&self) -> bool {
        let of_client = |user: &User| *user != User::Owner;
        self.users.are_several() || self.users.first.get().is_some_and(of_client)
    }

    /// Another session uses the connection from now on.
    fn switch(&self, session: u64) {
        self.session.store(session, Ordering::Relaxed);
        let until = self.session_until.swap(0, Ordering::Relaxed);
        self.others_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Whom a message concerns, where that is certain. `via` is the request on whose stream it came.
    pub(crate) fn behind(&self, via: Option<u64>) -> Option<RequestOrigin> {
        if let Some(via) = via {
            let find = |here: &Here| lock(here).iter().find(|(request, _)| *request == via).cloned();
            return self.in_flight.all().find_map(find).map(|(_, origin)| origin);
        }
        // Nobody comes or goes meanwhile. Whoever wants all of these locks takes them in the same order.
        let all: Vec<_> = self.in_flight.all().map(lock).collect();
        // Looked at with the locks held: whoever entered is seen in one place or the other.
        if self.are_several() || self.others_until.load(Ordering::Relaxed) > now() {
            return None;
        }
        let all: Vec<&(u64, RequestOrigin)> = all.iter().flat_map(|here| here.iter()).collect();
        let (_, newest) = all.iter().max_by_key(|(request, _)| *request)?;
        all.iter().all(|(_, origin)| origin.link.client() == newest.link.client()).then(|| newest.clone())
    }
}

/// Milliseconds since the first look at the clock, and one more: 0 is before all of them.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

fn lock(here: &Here) -> MutexGuard<'_, Vec<(u64, RequestOrigin)>> {
    here.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that is noted.
pub(crate) struct Known<'a> {
    in_flight: &'a InFlightRequests,
    /// Where it is, wherever it ends.
    here: &'a Here,
    request: u64,
    session: u64,
    /// Whether the server has answered it. One that was cancelled or timed out may still be running there.
    pub(crate) answered: bool,
}

impl Known<'_> {
    /// Notes until when its session may still be the cause of what the server says. Between principals that does not
    /// matter: a connection that two of them used is of no use for such messages in any case.
    fn linger(&self) {
        let until = now() + u64::try_from(UNANSWERED_LINGER.as_millis()).unwrap_or(u64::MAX);
        let latest = self.in_flight.session.load(Ordering::Relaxed) == self.session;
        let of = if latest { &self.in_flight.session_until } else { &self.in_flight.others_until };
        of.fetch_max(until, Ordering::Relaxed);
    }
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        // Modern requests belong to no session, so there is no other one's work among them.
        if !self.answered && self.session != 0 && !self.in_flight.users.are_several() {
            self.linger();
        }
        let mut all = lock(self.here);
        let place = all.iter().rposition(|(request, _)| *request == self.request);
        let gone = place.map(|place| all.swap_remove(place));
        drop(all);
        drop(gone);
    }
}

#[cfg(test)]
#[path = "request_origin_tests.rs"]
mod tests;
