//! One server over time: connected when first needed, one connect for all who wait, again when it went away, left
//! alone when it keeps failing, stopped when nobody needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolhub_core::lang::{Lang, Say as _, Text};
use toolhub_core::{Event, EventKind, EventSink, RawJson, RawObject, ServerId};

use crate::breaker::{Advice, Breaker};
use crate::config::ServerSpec;
use crate::connection::{Ask, Connection};
use crate::doorman::Doorman;
use crate::era::Era;
use crate::error::McpError;
use crate::handler::ClientHandler;
use crate::handshake::Meeting;
use crate::listing::{self, Listing, Offer};
use crate::oauth::{Authorizer, Guard, OAuthError, Surroundings, TokenStore};
use crate::transport::StderrRing;

/// How long a stream of news that ended is left before it is opened again.
const FOLLOW_PAUSE: Duration = Duration::from_secs(5);

/// How a server stands.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// Not connected: nobody needed it yet, or it went away.
    Idle,
    /// Connected.
    Connected {
        /// The era it speaks.
        era: Era,
        /// The version of MCP.
        version: String,
        /// What it calls itself.
        peer: String,
    },
    /// The last try failed.
    Failed(Text),
    /// It failed too often, and is left alone for a while.
    LeftAlone {
        /// Why it failed last.
        cause: Text,
        /// How much longer.
        left: Duration,
    },
}

/// An attempt to connect that is under way.
struct Attempt {
    waiting: Shared<BoxFuture<'static, Result<Arc<Connection>, McpError>>>,
    abort: AbortHandle,
}

/// A connection, and what runs for it until it is dropped.
struct Live {
    connection: Arc<Connection>,
    _helpers: DropGuard,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    /// Cleared by the attempt itself when it ends.
    connecting: Option<Attempt>,
    era: Option<Era>,
    breaker: Breaker,
    last_error: Option<McpError>,
    /// How often it was connected.
    connects: u32,
    in_flight: usize,
    last_used: Option<Instant>,
}

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
    state: Mutex<State>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("id", &self.spec.id).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that is not connected yet; `known` is the era it spoke last time.
    pub fn new(spec: ServerSpec, known: Option<Era>, context: ServerContext) -> Self {
        let state = Mutex::new(State { era: known, ..State::default() });
        let tasks = TaskTracker::new();
        let (store, events) = (Arc::clone(&context.logins), Arc::clone(&context.events));
        let guard = Guard::of(&spec, Surroundings { store, events, tasks: tasks.clone() }).map(Arc::new);
        Self { spec, context, guard, tasks, changes: watch::Sender::new(0), state }
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit(&self, kind: EventKind) {
        self.context.events.emit(Event::now(None, kind));
    }

    /// How it stands.
    pub fn status(&self) -> ServerState {
        let state = self.state();
        let open = state.live.as_ref().filter(|live| live.connection.is_open());
        match (open, &state.last_error, state.breaker.advice(Instant::now())) {
            (Some(live), ..) => {
                let greeting = live.connection.greeting.clone();
                ServerState::Connected { era: greeting.era, version: greeting.version, peer: greeting.peer }
            }
            (None, Some(error), Advice::LeaveAlone(left)) => {
                ServerState::LeftAlone { cause: error.text(), left }
            }
            (None, Some(error), _) => ServerState::Failed(error.text()),
            (None, None, _) => ServerState::Idle,
        }
    }

    /// Why the last try failed, if it did.
    pub fn last_error(&self) -> Option<McpError> {
        self.state().last_error.clone()
    }

    /// How often it was started again after the first time.
    pub fn restarts(&self) -> u32 {
        self.state().connects.saturating_sub(1)
    }

    /// The last lines that a child wrote to its standard error.
    pub fn stderr_tail(&self) -> Vec<String> {
        let state = self.state();
        state.live.as_ref().map(|live| live.connection.stderr_tail()).unwrap_or_default()
    }

    /// Tasks that still run for it.
    pub fn tasks_left(&self) -> usize {
        self.tasks.len()
    }

    /// The connection, made now if there is none. Whoever comes meanwhile waits for the same one.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let connecting = {
            let mut state = self.state();
            if let Some(live) = state.live.as_ref().filter(|live| live.connection.is_open()) {
                return Ok(Arc::clone(&live.connection));
            }
            if state.connecting.is_none() {
                if let Advice::LeaveAlone(left) = state.breaker.advice(Instant::now()) {
                    return Err(self.left_alone(&state, left));
                }
                // A task of its own: a waiter that gives up does not take the attempt away from the others.
                let task = self.tasks.spawn(Arc::clone(self).connect());
                let abort = task.abort_handle();
                let gone = || Err(McpError::connect(Text::new("connecting was given up", "已放弃连接")));
                let waiting = task.map(move |joined| joined.unwrap_or_else(|_| gone())).boxed().shared();
                state.connecting = Some(Attempt { waiting, abort });
            }
            state.connecting.as_ref().map(|attempt| attempt.waiting.clone())
        };
        match connecting {
            Some(connecting) => connecting.await,
            None => Err(McpError::connect(Text::new("connecting was given up", "已放弃连接"))),
        }
    }

    fn left_alone(&self, state: &State, left: Duration) -> McpError {
        let last = |lang| state.last_error.as_ref().map(|error| error.say(lang)).unwrap_or_default();
        let (last, last_zh) = (last(Lang::En), last(Lang::Zh));
        let (failures, seconds) = (state.breaker.failures(), left.as_secs() + 1);
        McpError::hopeless(Text::new(
            format!(
                "it failed {failures} times in a row and is left alone for {seconds} s more; last: {last}"
            ),
            format!("它连续失败 {failures} 次，再过 {seconds} 秒才会重试；最近一次：{last_zh}"),
        ))
    }

    /// Forgets a connection that turned out to be of no use, so that the next call makes another.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) {
        let mut state = self.state();
        if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.connection, connection)) {
            state.live = None;
        }
    }

    /// Lets the server be tried at once, whatever it did before: somebody asked for it by name.
    pub fn forgive(&self) {
        self.state().breaker.succeed();
    }

    /// Notes how a request over a connection ended: a server that breaks off counts as failing, one that answers,
    /// whatever it answers, does not.
    pub(crate) fn note(&self, error: Option<&McpError>) {
        let mut state = self.state();
        match error {
            Some(McpError::Lost { .. }) => {
                state.breaker.fail(Instant::now(), fastrand::f64());
                state.last_error = error.cloned();
            }
            Some(McpError::Connect { .. } | McpError::TimedOut(_) | McpError::SessionExpired) => {}
            Some(_) | None => state.breaker.succeed(),
        }
    }

    async fn connect(self: Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let advice = self.state().breaker.advice(Instant::now());
        if let Advice::Wait(pause) = advice {
            tokio::time::sleep(pause).await;
        }
        let server = self.spec.id.clone();
        self.emit(EventKind::Connecting { server: server.clone() });
        let started = Instant::now();
        let stderr = Mutex::new(StderrRing::default());
        let known = self.state().era;
        let doorman = Doorman {
            server: server.clone(),
            events: Arc::clone(&self.context.events),
            handler: Arc::clone(&self.context.handler),
            changes: self.changes.clone(),
        };
        let meeting = Meeting {
            transport: &self.spec.transport,
            known,
            doorman: Arc::new(doorman),
            authorizer: self.guard.as_ref().ok().map(|guard| Arc::clone(guard) as Arc<dyn Authorizer>),
            tasks: &self.tasks,
            stderr: &stderr,
            listen: self.context.listen,
        };
        let patience = self.spec.connect_timeout;
        let result = match tokio::time::timeout(patience, meeting.open()).await {
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
                let error = error.while_connecting(tail);
                {
                    let mut state = self.state();
                    state.connecting = None;
                    // Nothing is wrong with a server that waits for a login.
                    if !matches!(error, McpError::LoginNeeded { .. }) {
                        state.breaker.fail(Instant::now(), fastrand::f64());
                    }
                    state.last_error = Some(error.clone());
                }
                self.emit(EventKind::ConnectFailed { server, cause: error.to_string() });
                Err(error)
            }
        }
    }

    /// Takes a new connection into use, with what runs beside it. That it could be made does not clear the past: a
    /// server that dies on every call connects well each time.
    fn enter(self: &Arc<Self>, connection: &Arc<Connection>) {
        let helpers = CancellationToken::new();
        {
            let mut state = self.state();
            state.connecting = None;
            state.era = Some(connection.greeting.era);
            state.last_used = Some(Instant::now());
            state.connects += 1;
            if state.breaker.failures() == 0 {
                state.last_error = None;
            }
            state.live =
                Some(Live { connection: Arc::clone(connection), _helpers: helpers.clone().drop_guard() });
        }
        if let Some(idle) = self.spec.idle_timeout {
            self.run_beside(&helpers, Arc::clone(self).stop_when_idle(idle));
        }
        if self.context.listen && connection.greeting.era == Era::Modern {
            self.run_beside(&helpers, follow(Arc::clone(connection)));
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
            let mut state = self.state();
            let unused = state.last_used.is_none_or(|at| at.elapsed() >= idle);
            if state.in_flight == 0 && unused {
                // Dropping it ends this task too, by its guard.
                let live = state.live.take();
                drop(state);
                drop(live);
                return;
            }
        }
    }

    /// Counts a request that is under way, until the guard is dropped.
    pub(crate) fn use_now(self: &Arc<Self>) -> InUse {
        let mut state = self.state();
        state.in_flight += 1;
        state.last_used = Some(Instant::now());
        drop(state);
        InUse(Arc::clone(self))
    }

    /// Connects if need be and lists the tools; also tells the era and the name the server goes by.
    pub async fn list(self: &Arc<Self>) -> Result<(Listing, Era, String), McpError> {
        let _in_use = self.use_now();
        let patience = self.spec.connect_timeout;
        let mut connection = self.connection().await?;
        let mut listed = tokio::time::timeout(patience, listing::list(&connection)).await;
        if matches!(listed, Ok(Err(McpError::SessionExpired))) {
            self.forget(&connection);
            connection = self.connection().await?;
            listed = tokio::time::timeout(patience, listing::list(&connection)).await;
        }
        let result = listed
            .unwrap_or_else(|_| Err(McpError::TimedOut(patience).while_connecting(connection.stderr_tail())));
        self.note(result.as_ref().err());
        let listing = result?;
        let skipped = listing.skipped.iter().map(ToString::to_string).collect();
        let tools = listing.tools.len();
        self.emit(EventKind::Listed { server: self.spec.id.clone(), tools, skipped });
        Ok((listing, connection.greeting.era, connection.greeting.peer.clone()))
    }

    /// Connects if need be and lists what the server offers beside tools.
    pub async fn offers(self: &Arc<Self>, offer: Offer) -> Result<Vec<RawJson>, McpError> {
        let _in_use = self.use_now();
        let connection = self.connection().await?;
        let patience = self.spec.connect_timeout;
        match tokio::time::timeout(patience, listing::list_offer(&connection, offer)).await {
            Ok(offers) => offers,
            Err(_) => Err(McpError::TimedOut(patience)),
        }
    }

    /// Ends the connection, and waits until nothing of it is left, at most `patience`.
    pub async fn stop(&self, patience: Duration) {
        let (live, connecting) = {
            let mut state = self.state();
            (state.live.take(), state.connecting.take())
        };
        drop(live);
        if let Some(attempt) = connecting {
            attempt.abort.abort();
        }
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
        self.tasks.reopen();
    }
}

/// A request that is under way.
pub(crate) struct InUse(Arc<Server>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.last_used = Some(Instant::now());
    }
}

/// Keeps a modern server's stream of news open (2026-07-28, patterns/subscriptions). One that has none says so,
/// and is left alone.
async fn follow(connection: Arc<Connection>) {
    let wanted = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    let wanted = wanted.iter().fold(RawObject::default(), |filter, name| filter.with(*name, true));
    loop {
        let params = RawObject::default().with("notifications", wanted.clone());
        let ended = connection.ask(Ask { method: "subscriptions/listen", params, ..Ask::default() }).await;
        if matches!(ended, Err(McpError::Rpc { .. } | McpError::Http { .. })) || !connection.is_open() {
            return;
        }
        tokio::time::sleep(FOLLOW_PAUSE).await;
    }
}
