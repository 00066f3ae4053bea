//! One server over time: connected when first needed, one connect for all who wait, again when it went away, left
//! alone when it keeps failing, stopped when nobody needs it. What it offers is asked for in `inquiry`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::lang::Text;
use toolhub_core::{Event, EventKind, EventSink, ServerId};

use crate::breaker::Advice;
use crate::config::{Instances, ServerSpec, TransportSpec};
use crate::connection::Connection;
use crate::era::Era;
use crate::error::McpError;
use crate::handler::ClientHandler;
use crate::handshake::Connector;
use crate::instances::Pool;
use crate::oauth::{Authorizer, Guard, OAuthError, Surroundings, TokenStore};
use crate::relay::Dialer;
use crate::request_origin::{InFlightRequests, Users};
use crate::server_requests::{Roots, ServerRequests};
use crate::server_status::{Attempt, FailureHistory, Live, Mark, ServerState, ServerStatus};
use crate::subscription_stream::follow;
use crate::transport::StderrRing;
use crate::worker;

/// How long a server may take to answer the probe before its circuit opens.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a draining server is looked at.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// What the hub lends its servers.
#[derive(Clone)]
pub struct ServerContext {
    /// Who listens to events.
    pub events: Arc<dyn EventSink>,
    /// Who answers the questions of servers.
    pub handler: Arc<dyn ClientHandler>,
    /// Whether to listen to what servers say unasked; a program that ends after one call need not.
    pub listen: bool,
    /// Where logins are kept.
    pub logins: Arc<TokenStore>,
    /// Whether there is one client alone, so that servers belong to it.
    pub single_client: bool,
    /// Opens links to hubs that run already, whose connections are used in place of own ones; `None` to use none.
    pub relay: Option<Arc<dyn Dialer>>,
}

impl std::fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerContext").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// One configured server.
pub struct Server {
    spec: ServerSpec,
    context: ServerContext,
    /// Its login, or why there can be none.
    guard: Result<Arc<Guard>, OAuthError>,
    tasks: TaskTracker,
    changes: watch::Sender<u64>,
    status: Mutex<ServerStatus>,
    /// Belongs to `status`, and is read without its lock.
    turns: Arc<AtomicU64>,
    /// Counts how often it was connected.
    connects: watch::Sender<u32>,
    /// The resources somebody wants to hear of.
    watched: watch::Sender<BTreeSet<String>>,
    /// The instances for callers, where each has its own.
    pool: Option<Pool>,
    /// Who has used it, through any instance and over any connection.
    users: Arc<Users>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("id", &self.spec.id).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that is not connected yet, with what is remembered of it.
    pub fn new(spec: ServerSpec, past: FailureHistory, context: ServerContext) -> Self {
        let status = ServerStatus::after(past);
        let turns = Arc::clone(&status.turns);
        let tasks = TaskTracker::new();
        let (store, events) = (Arc::clone(&context.logins), Arc::clone(&context.events));
        let guard = Guard::of(&spec, Surroundings { store, events, tasks: tasks.clone() }).map(Arc::new);
        let (changes, connects) = (watch::Sender::new(0), watch::Sender::new(0));
        let watched = watch::Sender::default();
        let status = Mutex::new(status);
        let pool = Pool::of(spec.instances);
        let users = Arc::default();
        Self { spec, context, guard, tasks, changes, status, turns, connects, watched, pool, users }
    }

    /// Another instance of the same server, with a connection and a breaker of its own, so that whoever brings one down
    /// does not keep others from theirs. The login, the changes it tells of and the tasks it runs are the server's.
    pub(crate) fn another(&self) -> Self {
        let status =
            ServerStatus::after(FailureHistory { era: self.lock_status().era, ..FailureHistory::default() });
        Self {
            spec: self.spec.clone(),
            context: self.context.clone(),
            guard: self.guard.clone(),
            tasks: self.tasks.clone(),
            changes: self.changes.clone(),
            turns: Arc::clone(&status.turns),
            status: Mutex::new(status),
            connects: watch::Sender::new(0),
            watched: watch::Sender::default(),
            pool: None,
            users: Arc::clone(&self.users),
        }
    }

    /// The instances for callers, where each has its own.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// Whether it is connected, or will be, or a request holds it.
    pub(crate) fn is_in_use(&self) -> bool {
        let status = self.lock_status();
        status.in_flight > 0 || status.connecting.is_some() || status.open().is_some()
    }

    /// Its id.
    pub fn id(&self) -> &ServerId {
        &self.spec.id
    }

    /// Its configuration.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Its login, or why there can be none.
    pub fn guard(&self) -> Result<&Arc<Guard>, OAuthError> {
        self.guard.as_ref().map_err(Clone::clone)
    }

    /// Counts how often it said that what it offers has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How often it said so until now.
    pub(crate) fn changes_told(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Counts how often it was connected.
    pub fn connects(&self) -> watch::Receiver<u32> {
        self.connects.subscribe()
    }

    /// The resources that somebody wants to hear of.
    pub(crate) fn watched(&self) -> &watch::Sender<BTreeSet<String>> {
        &self.watched
    }

    pub(crate) fn lock_status(&self) -> MutexGuard<'_, ServerStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        self.context.events.emit(Event::now(None, kind));
    }

    /// How it stands; where only instances for callers are connected, how the first of those does.
    pub fn status(&self) -> ServerState {
        let own = self.lock_status().told();
        if !matches!(own, ServerState::Idle) {
            return own;
        }
        let mut others = self.instances().into_iter().map(|instance| instance.lock_status().told());
        others.find(|state| matches!(state, ServerState::Connected { .. })).unwrap_or(own)
    }

    /// Why the last try failed, if it did.
    pub fn last_error(&self) -> Option<McpError> {
        self.lock_status().last_error.clone()
    }

    /// How it fared, for those who remember it.
    pub fn past(&self) -> FailureHistory {
        self.lock_status().past()
    }

    /// How much longer its past speaks against trying it.
    pub fn avoided_for(&self) -> Option<Duration> {
        match self.lock_status().breaker.advice(Instant::now()) {
            Advice::Go => None,
            Advice::Wait(left) | Advice::LeaveAlone(left) => Some(left),
        }
    }

    /// Why it is not tried for a while, where it is not.
    pub fn left_alone(&self) -> Option<McpError> {
        let status = self.lock_status();
        match status.breaker.advice(Instant::now()) {
            Advice::LeaveAlone(left) => Some(status.left_alone(self.id(), left)),
            Advice::Go | Advice::Wait(_) => None,
        }
    }

    /// Whether it is connected, or will be if all goes well.
    pub fn is_being_met(&self) -> bool {
        let status = self.lock_status();
        status.connecting.is_some() || status.open().is_some()
    }

    /// How often it was started again after the first time.
    pub fn restarts(&self) -> u32 {
        self.connects.borrow().saturating_sub(1)
    }

    /// The last lines that a child wrote to its standard error; of one that failed, before it did.
    pub fn stderr_tail(&self) -> Vec<String> {
        let status = self.lock_status();
        match (&status.live, &status.last_error) {
            (Some(live), _) => live.connection.stderr_tail(),
            (None, error) => error.as_ref().map(|error| error.stderr().to_vec()).unwrap_or_default(),
        }
    }

    /// Tasks that still run for it.
    pub fn tasks_left(&self) -> usize {
        self.tasks.len()
    }

    /// How often what is remembered of its failures changed.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    /// Counts a request that is under way, until what is given back is dropped; with the connection, where there is one
    /// and nothing speaks against it. All of that is one look, since every call takes it.
    pub(crate) fn hold_ready(&self) -> (Held<'_>, Option<(Arc<Connection>, Mark)>) {
        let mut status = self.lock_status();
        status.in_flight += 1;
        let well = status.breaker.failures() == 0;
        let ready = status.open().filter(|_| well).map(|open| (Arc::clone(open), status.mark()));
        drop(status);
        (Held { server: self, purpose: Purpose::Work, over: false }, ready)
    }

    /// The connection, made now if there is none. Whoever comes meanwhile waits for the same one.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let connecting = {
            let mut status = self.lock_status();
            // A server over HTTP may be left alone though nothing tells that its connection is of no use.
            if status.connecting.is_none()
                && status.breaker.failures() > 0
                && let Advice::LeaveAlone(left) = status.breaker.advice(Instant::now())
            {
                return Err(status.left_alone(self.id(), left));
            }
            if let Some(connection) = status.open() {
                return Ok(Arc::clone(connection));
            }
            if status.connecting.is_none() {
                // A task of its own: a waiter that gives up does not take the attempt away from the others. What comes of it
                // serves calls of every worker.
                let task = self.tasks.spawn_on(Arc::clone(self).connect(), &worker::home());
                let abort = task.abort_handle();
                let gone = || Err(McpError::connect(Text::new("connecting was given up", "已放弃连接")));
                let waiting = task.map(move |joined| joined.unwrap_or_else(|_| gone())).boxed().shared();
                status.connecting = Some(Attempt { waiting, abort });
            }
            status.connecting.as_ref().map(|attempt| attempt.waiting.clone())
        };
        match connecting {
            Some(connecting) => connecting.await,
            None => Err(McpError::connect(Text::new("connecting was given up", "已放弃连接"))),
        }
    }

    /// Forgets a connection that turned out to be of no use, so that the next call makes another.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) {
        let mut status = self.lock_status();
        if status.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.connection, connection)) {
            status.live = None;
        }
    }

    /// Lets the server be tried at once, whatever it did before: somebody asked for it by name.
    pub fn ask_for(&self) {
        self.lock_status().breaker.ask_for();
    }

    /// Forgets which era it spoke: one that was too slow to answer the modern greeting was taken for an old one.
    pub fn forget_era(&self) {
        self.lock_status().era = None;
    }

    /// This moment, for what begins now.
    pub(crate) fn mark(&self) -> Mark {
        self.lock_status().mark()
    }

    /// Whether a server still answers that lost a request, asked before the failure would open the circuit for all callers.
    /// Over HTTP a lost request ends no connection: arguments of one caller may be the cause, which is no reason to
    /// refuse the others.
    pub(crate) async fn survives(&self, connection: &Connection) -> bool {
        let opens = self.lock_status().breaker.opens_with_next_failure();
        opens && connection.is_open() && connection.answers(PROBE_TIMEOUT).await
    }

    /// Notes how a request over a connection ended that began then.
    pub(crate) fn note(&self, began: Mark, error: Option<&McpError>) {
        self.lock_status().note(began, error);
    }

    async fn connect(self: Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let advice = self.lock_status().breaker.advice(Instant::now());
        if let Advice::Wait(pause) = advice {
            tokio::time::sleep(pause).await;
        }
        let server = self.spec.id.clone();
        self.emit(EventKind::Connecting { server: server.clone() });
        let started = Instant::now();
        let stderr = Mutex::new(StderrRing::default());
        let (known, began) = {
            let status = self.lock_status();
            (status.era, status.mark())
        };
        let server_requests = ServerRequests {
            server: server.clone(),
            events: Arc::clone(&self.context.events),
            handler: Arc::clone(&self.context.handler),
            changes: self.changes.clone(),
            in_flight: Arc::new(match self.spec.transport {
                // Another process each time.
                TransportSpec::Stdio(_) => InFlightRequests::default(),
                TransportSpec::Http(_) | TransportSpec::Sse(_) => {
                    InFlightRequests::over_http(Arc::clone(&self.users))
                }
            }),
            roots: match (&self.spec.roots, &self.spec.instances) {
                (Some(roots), _) => Roots::OfOwner(roots.clone()),
                (None, Instances::Caller { .. }) => Roots::OfClient,
                (None, Instances::Shared) if self.context.single_client => Roots::OfClient,
                (None, Instances::Shared) => Roots::None,
            },
        };
        let connector = Connector {
            spec: &self.spec,
            relay: self.context.relay.as_deref(),
            known,
            server_requests: Arc::new(server_requests),
            authorizer: self.guard.as_ref().ok().map(|guard| Arc::clone(guard) as Arc<dyn Authorizer>),
            tasks: &self.tasks,
            stderr: &stderr,
            listen: self.context.listen,
            patience: self.spec.connect_timeout,
        };
        let patience = self.spec.connect_timeout;
        let result = match tokio::time::timeout(patience, connector.open()).await {
            Ok(result) => result,
            Err(_) => Err(McpError::TimedOut(patience)),
        };
        match result {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.enter(&connection);
                let greeting = &connection.greeting;
                let (era, peer) = (greeting.era.name(), greeting.peer.clone());
                self.emit(EventKind::Connected { server, era, peer, took: started.elapsed() });
                Ok(connection)
            }
            Err(error) => {
                let tail = stderr.lock().unwrap_or_else(PoisonError::into_inner).tail();
                let mut error = error.while_connecting(tail);
                {
                    let mut status = self.lock_status();
                    status.connecting = None;
                    // Nothing is wrong with a server that waits for a login.
                    if matches!(error, McpError::LoginNeeded { .. }) {
                        status.wants(&error);
                    } else {
                        status.fail(began, &error);
                    }
                    if let Advice::LeaveAlone(_) = status.breaker.advice(Instant::now()) {
                        error = error.for_good();
                    }
                }
                self.emit(EventKind::ConnectFailed { server, cause: error.text() });
                Err(error)
            }
        }
    }

    /// Takes a new connection into use, with what runs beside it. That it could be made does not clear the past: a
    /// server that dies on every call connects well each time.
    fn enter(self: &Arc<Self>, connection: &Arc<Connection>) {
        let helpers = CancellationToken::new();
        {
            let mut status = self.lock_status();
            status.connecting = None;
            status.era = Some(connection.greeting.era).filter(|_| !connection.greeting.doubtful);
            status.last_used = Some(Instant::now());
            if status.breaker.failures() == 0 {
                status.last_error = None;
            }
            status.live =
                Some(Live { connection: Arc::clone(connection), _helpers: helpers.clone().drop_guard() });
        }
        self.connects.send_modify(|count| *count += 1);
        if let Some(idle) = self.spec.idle_timeout {
            self.run_beside(&helpers, Arc::clone(self).stop_when_idle(idle));
        }
        if self.context.listen && connection.greeting.era == Era::Modern {
            self.run_beside(&helpers, follow(Arc::clone(connection), self.watched.subscribe()));
        }
    }

    fn run_beside(&self, helpers: &CancellationToken, work: impl Future<Output = ()> + Send + 'static) {
        let helpers = helpers.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = helpers.cancelled() => {}
                () = work => {}
            }
        });
    }

    async fn stop_when_idle(self: Arc<Self>, idle: Duration) {
        loop {
            tokio::time::sleep(idle).await;
            let mut status = self.lock_status();
            if status.unused_for(idle) {
                // Dropping it ends this task too, by its guard.
                let live = status.live.take();
                drop(status);
                drop(live);
                return;
            }
        }
    }

    /// Counts a request that is under way, until the guard is dropped.
    pub(crate) fn hold(&self, purpose: Purpose) -> Held<'_> {
        self.lock_status().in_flight += 1;
        Held { server: self, purpose, over: false }
    }

    fn disconnect(&self) {
        let (live, connecting) = {
            let mut status = self.lock_status();
            (status.live.take(), status.connecting.take())
        };
        drop(live);
        if let Some(attempt) = connecting {
            attempt.abort.abort();
        }
    }

    /// Requests that are under way, over all of its connections.
    fn in_flight(&self) -> usize {
        let instances = self.instances();
        self.lock_status().in_flight + instances.iter().map(|instance| instance.in_flight()).sum::<usize>()
    }

    /// Waits until no request is under way, at most `limit`; whether that is so.
    pub async fn drain(&self, limit: Duration) -> bool {
        let idle = async {
            while self.in_flight() > 0 {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        tokio::time::timeout(limit, idle).await.is_ok()
    }

    /// Ends its connections, and waits until nothing of them is left, at most `patience`.
    pub async fn stop(&self, patience: Duration) {
        self.disconnect();
        self.take_instances().iter().for_each(|instance| instance.disconnect());
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
        self.tasks.reopen();
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Somebody wants something of the server.
    Work,
    /// Keeping what is known of it fresh: alone no reason to keep a program running.
    Upkeep,
}

/// A request that is under way; meanwhile the connection is not stopped.
pub(crate) struct Held<'a> {
    server: &'a Server,
    purpose: Purpose,
    over: bool,
}

impl Held<'_> {
    /// Notes how a request over a connection ended that began then, and that it is no longer under way.
    pub(crate) fn end(mut self, began: Mark, error: Option<&McpError>) {
        self.over = true;
        let mut status = self.server.lock_status();
        status.note(began, error);
        self.release(&mut status);
    }

    fn release(&self, status: &mut ServerStatus) {
        status.in_flight = status.in_flight.saturating_sub(1);
        // When it began does not matter: meanwhile the server was in use. Nor does it where nobody stops it.
        if self.purpose == Purpose::Work && self.server.spec.idle_timeout.is_some() {
            status.last_used = Some(Instant::now());
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.release(&mut self.server.lock_status());
        }
    }
}
