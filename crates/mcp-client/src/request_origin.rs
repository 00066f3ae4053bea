//! Attributes messages of a server to the caller that caused them. A caller receives a message only if the attribution is
//! certain.
//!
//! It is certain if the message arrived on the response stream of one request. On a shared stream (stdio, HTTP+SSE, the GET
//! stream of a session) a message does not name the request that caused it, and a server may still work for a request that was
//! answered or cancelled earlier. There the attribution is certain only while a single principal has used the connection (over
//! HTTP without a session: the server); among the sessions of one principal, only if no other session's request can be the
//! cause.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolhub_core::caller::ClientResponse;
use toolhub_core::io_thread::PerIoThread;
use toolhub_core::millis::duration_millis;
use toolhub_core::{CallContext, CallerHandle, EventKind, RawJson, Source, TraceContext};

use crate::transport::RequestObserver;

/// The client behind a request, which can receive requests and notifications of the server. Clones share one state.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin(Arc<OriginState>);

/// The shared state of a `RequestOrigin`.
#[derive(Debug)]
pub(crate) struct OriginState {
    pub(crate) link: CallerHandle,
    /// The tool call. Its deadline is paused while a request to the client is open.
    call: Option<Arc<ProgressForwarder>>,
    /// The trace context that is sent to the server.
    pub(crate) trace: Option<TraceContext>,
}

impl Deref for RequestOrigin {
    type Target = OriginState;

    fn deref(&self) -> &OriginState {
        &self.0
    }
}

impl RequestOrigin {
    /// The origin of a request that is not a tool call.
    pub(crate) fn new(link: CallerHandle) -> Self {
        let trace = link.trace().cloned();
        Self(Arc::new(OriginState { link, call: None, trace }))
    }

    /// The origin of an attempt of a tool call at a source. If tracing is on, the attempt is a span of its own.
    pub(crate) fn for_call(
        link: CallerHandle,
        call: &Arc<ProgressForwarder>,
        source: impl FnOnce() -> Source,
    ) -> Self {
        let trace = link.trace().map(|trace| trace.with_span(fastrand::u64(1..)));
        if let Some(trace) = &trace {
            call.context.emit(EventKind::Traced { source: Some(source()), trace: trace.clone() });
        }
        Self(Arc::new(OriginState { link, call: Some(Arc::clone(call)), trace }))
    }

    /// The session of the request. Modern requests have no session and share the number 0.
    fn session(&self) -> u64 {
        if self.link.accepts_input_requests() { 0 } else { self.link.client() }
    }

    pub(crate) async fn ask(&self, method: String, params: Option<RawJson>) -> ClientResponse {
        let _open = InputRequestGuard(self);
        if let Some(call) = &self.call {
            call.context.emit(EventKind::InputRequested { method: method.clone() });
        }
        self.link.ask(method, params).await
    }
}

struct InputRequestGuard<'a>(&'a RequestOrigin);

impl Drop for InputRequestGuard<'_> {
    fn drop(&mut self) {
        if let Some(call) = &self.0.call {
            call.context.emit(EventKind::InputReceived);
        }
    }
}

#[derive(Deserialize)]
struct ProgressParams {
    #[serde(default)]
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Forwards the progress of one call to its caller and to the call's event stream.
#[derive(Debug)]
pub(crate) struct ProgressForwarder {
    context: CallContext,
    /// Set on the first send: it is reported once, even if the call takes several requests.
    sent: AtomicBool,
}

impl ProgressForwarder {
    pub(crate) fn new(context: CallContext) -> Self {
        Self { context, sent: AtomicBool::new(false) }
    }
}

impl RequestObserver for ProgressForwarder {
    fn on_send(&self) {
        if !self.sent.swap(true, Ordering::Relaxed) {
            self.context.sending();
        }
    }

    fn progress(&self, params: &RawJson) {
        if let Some(caller) = &self.context.caller {
            caller.progress(params);
        }
        if let Ok(ProgressParams { progress, total, message }) = params.decode() {
            self.context.emit(EventKind::Progress { progress, total, message });
        }
    }
}

/// How long a cancelled or timed-out request of another session of the same principal may still cause messages. An answered
/// request counts as finished: clients open a new session and use it at once, and a message that is attributed wrongly stays
/// with the same principal.
const UNANSWERED_LINGER: Duration = Duration::from_secs(60);

/// The requests of callers in flight over one connection, and the principals that have used it.
#[derive(Debug, Default)]
pub(crate) struct InFlightRequests {
    /// By request id. The request that ends is mostly among the newest, and the list is short: removal searches from its end.
    in_flight: PerIoThread<ThreadRequests>,
    /// The users of the connection.
    users: Users,
    /// The users of the server over any connection. Used if the server cannot distinguish our connections.
    of_server: Option<Arc<Users>>,
    /// Whether messages on this connection belong to an MCP session that no other connection shares.
    in_session: AtomicBool,
    /// The session that used the connection last.
    session: AtomicU64,
    /// Until when requests of that session (`session_until`) or of any other (`others_until`) may cause messages, in ms since
    /// the start.
    session_until: AtomicU64,
    others_until: AtomicU64,
}

/// The users of a connection or of a server.
#[derive(Debug, Default)]
pub(crate) struct Users {
    first: OnceLock<User>,
    /// Whether a second user has used it. Never reset: work started for the first user may still cause messages.
    shared: AtomicBool,
}

impl Users {
    fn add(&self, origin: &RequestOrigin) {
        if !self.shared.load(Ordering::Relaxed) {
            let user = self.first.get_or_init(|| User::of(origin));
            if !user.is_of(origin) {
                self.shared.store(true, Ordering::Release);
            }
        }
    }

    fn add_owner(&self) {
        if *self.first.get_or_init(|| User::Owner) != User::Owner {
            self.shared.store(true, Ordering::Release);
        }
    }

    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// A user of a connection.
#[derive(Debug, PartialEq, Eq)]
enum User {
    /// The owner of the hub: calls without a client.
    Owner,
    /// A client of the gateway, by its principal.
    Principal(Box<str>),
    /// A client without a principal, by its number.
    Client(u64),
}

impl User {
    fn of(origin: &RequestOrigin) -> Self {
        let link = &origin.link;
        link.principal_id().map_or_else(|| Self::Client(link.client()), |name| Self::Principal(name.into()))
    }

    fn is_of(&self, origin: &RequestOrigin) -> bool {
        match self {
            Self::Owner => false,
            Self::Principal(expected) => origin.link.principal_id() == Some(expected),
            Self::Client(expected) => {
                origin.link.principal_id().is_none() && origin.link.client() == *expected
            }
        }
    }
}

/// The requests in flight of one I/O thread.
type ThreadRequests = Mutex<Vec<(u64, RequestOrigin)>>;

impl InFlightRequests {
    /// An empty list for an HTTP connection to a server with these users.
    pub(crate) fn over_http(of_server: Arc<Users>) -> Self {
        Self { of_server: Some(of_server), ..Self::default() }
    }

    /// Records that the server has assigned a session to the connection.
    pub(crate) fn join_session(&self) {
        self.in_session.store(true, Ordering::Release);
    }

    /// Adds a request until the returned guard is dropped.
    pub(crate) fn register(&self, request: u64, origin: RequestOrigin) -> InFlightGuard<'_> {
        self.users.add(&origin);
        if let Some(server) = &self.of_server {
            server.add(&origin);
        }
        let session = origin.session();
        if self.session.load(Ordering::Relaxed) != session {
            self.switch_session(session);
        }
        let thread_requests = self.in_flight.current();
        lock(thread_requests).push((request, origin));
        InFlightGuard { in_flight: self, thread_requests, request, session, answered: false }
    }

    /// Records a call without a client.
    pub(crate) fn register_owner(&self) {
        self.users.add_owner();
        if let Some(server) = &self.of_server {
            server.add_owner();
        }
    }

    /// Whether several users may have caused a message on a shared stream. A server over HTTP without a session cannot
    /// distinguish our connections, so that all users of the server count, also with `instances = "caller"`.
    fn is_shared(&self) -> bool {
        match &self.of_server {
            Some(server) if !self.in_session.load(Ordering::Acquire) => server.is_shared(),
            _ => self.users.is_shared(),
        }
    }

    /// Whether a client of the gateway has used the connection.
    pub(crate) fn has_clients(&self) -> bool {
        let of_client = |user: &User| *user != User::Owner;
        self.users.is_shared() || self.users.first.get().is_some_and(of_client)
    }

    /// Makes `session` the current session of the connection.
    fn switch_session(&self, session: u64) {
        self.session.store(session, Ordering::Relaxed);
        let until = self.session_until.swap(0, Ordering::Relaxed);
        self.others_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Returns the origin of a message if it is certain. `via` is the request on whose response stream the message arrived.
    pub(crate) fn origin_of(&self, via: Option<u64>) -> Option<RequestOrigin> {
        if let Some(via) = via {
            let find = |thread_requests: &ThreadRequests| {
                lock(thread_requests).iter().find(|(request, _)| *request == via).cloned()
            };
            return self.in_flight.all().find_map(find).map(|(_, origin)| origin);
        }
        // Blocks `register` and `drop` on all threads. All code that takes several of these locks takes them in this order.
        let locked_requests: Vec<_> = self.in_flight.all().map(lock).collect();
        // Checked with the locks held: a concurrent `register` is visible in the users or in the list.
        if self.is_shared() || self.others_until.load(Ordering::Relaxed) > now() {
            return None;
        }
        let requests: Vec<&(u64, RequestOrigin)> =
            locked_requests.iter().flat_map(|thread_requests| thread_requests.iter()).collect();
        let (_, newest) = requests.iter().max_by_key(|(request, _)| *request)?;
        requests
            .iter()
            .all(|(_, origin)| origin.link.client() == newest.link.client())
            .then(|| newest.clone())
    }
}

/// Milliseconds since the first call, plus one, so that 0 lies before all values.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    duration_millis(START.elapsed()).saturating_add(1)
}

fn lock(thread_requests: &ThreadRequests) -> MutexGuard<'_, Vec<(u64, RequestOrigin)>> {
    thread_requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard of a request in the list.
pub(crate) struct InFlightGuard<'a> {
    in_flight: &'a InFlightRequests,
    /// The list that holds it, also if it ends on another thread.
    thread_requests: &'a ThreadRequests,
    request: u64,
    session: u64,
    /// Whether the server has answered. A cancelled or timed-out request may still be running on the server.
    pub(crate) answered: bool,
}

impl InFlightGuard<'_> {
    /// Records until when this session may still cause messages. Only relevant within one principal: shared streams used by two
    /// principals are never attributed.
    fn linger(&self) {
        let until = now() + duration_millis(UNANSWERED_LINGER);
        let latest = self.in_flight.session.load(Ordering::Relaxed) == self.session;
        let of = if latest { &self.in_flight.session_until } else { &self.in_flight.others_until };
        of.fetch_max(until, Ordering::Relaxed);
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        // Modern requests have no session, so that there is no other session's work to exclude.
        if !self.answered && self.session != 0 && !self.in_flight.users.is_shared() {
            self.linger();
        }
        let mut requests = lock(self.thread_requests);
        let index = requests.iter().rposition(|(request, _)| *request == self.request);
        let removed = index.map(|index| requests.swap_remove(index));
        drop(requests);
        drop(removed);
    }
}

#[cfg(test)]
#[path = "request_origin_tests.rs"]
mod tests;
