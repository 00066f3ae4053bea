//! Lifecycle of one server. Connects on first use, with one attempt shared by all waiting callers; reconnects after a lost
//! connection; opens a circuit breaker after repeated failures; stops an idle server. Listings are in `singleflight`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_client_config::TransportSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Event, EventKind, ServerId};
use toolhub_mcp_wire::{Era, McpError, io_thread};
use toolhub_oauth::{Authorizer, CredentialOwner, OAuthError, TokenManager, TokenManagerContext};

use crate::breaker::BreakerDecision;
use crate::config::{Instances, ServerSpec};
use crate::connection::Connection;
use crate::handshake::Connector;
use crate::instance_pool::InstancePool;
use crate::request_origin::{InFlightRequests, Users};
use crate::server_context::ServerContext;
use crate::server_requests::{Roots, ServerRequests};
use crate::server_status::{
    ConnectAttempt, FailureHistory, FailureMark, LiveConnection, RequestGuard, RequestPurpose, ServerState,
    ServerStatus,
};
use crate::subscription_stream::keep_subscribed;
use crate::transport::StderrRing;

/// Interval at which `Server::drain` checks for requests in flight.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// One configured server.
pub struct Server {
    spec: ServerSpec,
    context: ServerContext,
    /// The OAuth state, or the error that rules out a login.
    token_manager: Result<Arc<TokenManager>, OAuthError>,
    tasks: TaskTracker,
    changes: watch::Sender<u64>,
    status: Mutex<ServerStatus>,
    /// The counter of `status`, readable without its lock.
    history_version: Arc<AtomicU64>,
    /// Number of times this server has been connected.
    connects: watch::Sender<u32>,
    /// URIs of the resources with a subscription.
    subscribed_uris: watch::Sender<BTreeSet<String>>,
    /// The instances per caller, if configured.
    pool: Option<InstancePool<Server>>,
    /// Of an instance of a caller: a digest of the caller.
    owner: Option<Box<str>>,
    /// The principals that have used this server, through any instance and over any connection.
    users: Arc<Users>,
    /// Cancelled by [`Self::close`] for all instances, and by [`Self::end`] for one: no connection is opened any more.
    closed: CancellationToken,
    /// Cancelled by [`Self::kill`]: processes are killed without a grace period.
    killed: CancellationToken,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("id", &self.spec.id).finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server that is not connected, with its failure history from earlier runs.
    pub fn new(spec: ServerSpec, failure_history: FailureHistory, context: ServerContext) -> Self {
        let status = ServerStatus::restore(failure_history);
        let history_version = Arc::clone(&status.history_version);
        let tasks = TaskTracker::new();
        let (store, events) = (Arc::clone(&context.logins), Arc::clone(&context.events));
        let token_manager =
            spec.token_manager(TokenManagerContext { store, events, tasks: tasks.clone() }).map(Arc::new);
        let (changes, connects) = (watch::Sender::new(0), watch::Sender::new(0));
        let subscribed_uris = watch::Sender::default();
        let status = Mutex::new(status);
        let pool = InstancePool::of(spec.instances);
        let (users, closed) = (Arc::default(), CancellationToken::new());
        Self {
            spec,
            context,
            token_manager,
            tasks,
            changes,
            status,
            history_version,
            connects,
            subscribed_uris,
            pool,
            owner: None,
            users,
            closed,
            killed: CancellationToken::new(),
        }
    }

    /// Creates another instance of the same server with its own connection and breaker, so that a caller that crashes its
    /// instance does not affect others. The instance shares change counter and task tracker with the server, and its login if
    /// `owner` is the hub. `name` identifies the caller.
    pub(crate) fn new_instance(&self, owner: CredentialOwner, name: String) -> Self {
        let status = ServerStatus::restore(FailureHistory {
            era: self.lock_status().era,
            ..FailureHistory::default()
        });
        Self {
            spec: self.spec.clone(),
            context: self.context.clone(),
            token_manager: match owner {
                CredentialOwner::Hub => self.token_manager.clone(),
                owner => self.token_manager.clone().map(|shared| Arc::new(shared.of_owner(owner))),
            },
            tasks: self.tasks.clone(),
            changes: self.changes.clone(),
            history_version: Arc::clone(&status.history_version),
            status: Mutex::new(status),
            connects: watch::Sender::new(0),
            subscribed_uris: watch::Sender::default(),
            pool: None,
            owner: Some(name.into()),
            users: Arc::clone(&self.users),
            closed: self.closed.child_token(),
            killed: self.killed.child_token(),
        }
    }

    /// The instances per caller, if configured.
    pub(crate) fn pool(&self) -> Option<&InstancePool<Self>> {
        self.pool.as_ref()
    }

    fn instances(&self) -> Vec<Arc<Self>> {
        self.pool.as_ref().map(InstancePool::all).unwrap_or_default()
    }

    /// Whether it is connected, connecting, or has a request in flight.
    pub(crate) fn is_in_use(&self) -> bool {
        let status = self.lock_status();
        status.in_flight > 0 || status.connecting.is_some() || status.open().is_some()
    }

    /// Whether a request is in flight, or it is connecting.
    pub(crate) fn has_requests(&self) -> bool {
        let status = self.lock_status();
        status.in_flight > 0 || status.connecting.is_some()
    }

    /// The server id.
    pub fn id(&self) -> &ServerId {
        &self.spec.id
    }

    /// Whether another process of the cluster runs it for all replicas.
    pub fn is_remote(&self) -> bool {
        self.context.remote.as_ref().is_some_and(|remote| remote.runs(&self.spec))
    }

    /// The configuration.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// The OAuth state, or the error that rules out a login.
    pub fn token_manager(&self) -> Result<&Arc<TokenManager>, OAuthError> {
        self.token_manager.as_ref().map_err(Clone::clone)
    }

    /// Number of `list_changed` notifications received.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Current value of `changes`.
    pub(crate) fn change_count(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Number of times this server has been connected.
    pub fn connects(&self) -> watch::Receiver<u32> {
        self.connects.subscribe()
    }

    /// URIs of the resources with a subscription.
    pub(crate) fn subscribed_uris(&self) -> &watch::Sender<BTreeSet<String>> {
        &self.subscribed_uris
    }

    pub(crate) fn lock_status(&self) -> MutexGuard<'_, ServerStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        self.context.events.emit(Event::now(None, kind));
    }

    /// The connection state. If only per-caller instances are connected, the state of the first connected one.
    pub fn status(&self) -> ServerState {
        let main_state = self.lock_status().state();
        if !matches!(main_state, ServerState::Idle) {
            return main_state;
        }
        let mut others = self.instances().into_iter().map(|instance| instance.lock_status().state());
        others.find(|state| matches!(state, ServerState::Connected { .. })).unwrap_or(main_state)
    }

    /// The error of the last failed attempt, if any.
    pub fn last_error(&self) -> Option<McpError> {
        self.lock_status().last_error.clone()
    }

    /// The failure history, to be stored between runs.
    pub fn failure_history(&self) -> FailureHistory {
        self.lock_status().failure_history()
    }

    /// How long the breaker still delays or forbids a new attempt.
    pub fn retry_delay(&self) -> Option<Duration> {
        match self.lock_status().breaker.decision(Instant::now()) {
            BreakerDecision::Allow => None,
            BreakerDecision::Delay(delay) | BreakerDecision::Reject(delay) => Some(delay),
        }
    }

    /// The error for callers while the circuit is open; `None` if it is closed.
    pub fn circuit_open_error(&self) -> Option<McpError> {
        let status = self.lock_status();
        match status.breaker.decision(Instant::now()) {
            BreakerDecision::Reject(left) => Some(status.circuit_open_error(self.id(), left)),
            BreakerDecision::Allow | BreakerDecision::Delay(_) => None,
        }
    }

    /// Whether it is connected or connecting.
    pub fn is_connected_or_connecting(&self) -> bool {
        let status = self.lock_status();
        status.connecting.is_some() || status.open().is_some()
    }

    /// Number of reconnects after the first connection.
    pub fn restarts(&self) -> u32 {
        self.connects.borrow().saturating_sub(1)
    }

    /// The last lines that the child process wrote to stderr; after a failure, those written before it.
    pub fn stderr_tail(&self) -> Vec<String> {
        let status = self.lock_status();
        match (&status.live, &status.last_error) {
            (Some(live), _) => live.connection.stderr_tail(),
            (None, error) => error.as_ref().map(|error| error.stderr().to_vec()).unwrap_or_default(),
        }
    }

    /// Number of tasks that still run for this server.
    pub fn tasks_left(&self) -> usize {
        self.tasks.len()
    }

    /// Number of changes of the failure history.
    pub fn history_version(&self) -> u64 {
        self.history_version.load(Ordering::Acquire)
    }

    /// Counts a request as in flight until the returned guard is dropped. Also returns the connection if it is open and has no
    /// recorded failures. Takes the lock once, since every call passes here.
    pub(crate) fn begin_call(&self) -> (RequestGuard<'_>, Option<(Arc<Connection>, FailureMark)>) {
        let mut status = self.lock_status();
        status.in_flight += 1;
        let healthy = status.breaker.failures() == 0;
        let ready = status.open().filter(|_| healthy).map(|open| (Arc::clone(open), status.failure_mark()));
        drop(status);
        (self.guard(RequestPurpose::CallerRequest), ready)
    }

    /// Returns the connection, opening it if there is none. Concurrent callers wait for the same attempt.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let connecting = {
            let mut status = self.lock_status();
            // Checked under the lock: it is cancelled before the lock is taken to disconnect.
            if self.closed.is_cancelled() {
                return Err(given_up());
            }
            // Over HTTP the circuit may be open although the connection still counts as open.
            if status.connecting.is_none()
                && status.breaker.failures() > 0
                && let BreakerDecision::Reject(left) = status.breaker.decision(Instant::now())
            {
                return Err(status.circuit_open_error(self.id(), left));
            }
            if let Some(connection) = status.open() {
                return Ok(Arc::clone(connection));
            }
            if status.connecting.is_none() {
                // A separate task: a caller that is cancelled does not abort the attempt for others. The connection serves
                // calls on all threads.
                let task = self.tasks.spawn_on(Arc::clone(self).connect(), &io_thread::main_runtime());
                let abort = task.abort_handle();
                let waiting = task.map(|joined| joined.unwrap_or_else(|_| Err(given_up()))).boxed().shared();
                status.connecting = Some(ConnectAttempt { waiting, abort });
            }
            status.connecting.as_ref().map(|attempt| attempt.waiting.clone())
        };
        match connecting {
            Some(connecting) => connecting.await,
            None => Err(given_up()),
        }
    }

    /// Discards an unusable connection, so that the next call opens a new one.
    pub(crate) fn discard(&self, connection: &Arc<Connection>) {
        let mut status = self.lock_status();
        if status.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.connection, connection)) {
            status.live = None;
        }
    }

    /// Allows an immediate attempt despite earlier failures, after an explicit request by the user.
    pub fn allow_retry(&self) {
        self.lock_status().breaker.allow_retry();
    }

    /// Discards the detected era: a modern server that is slow to answer the probe is detected as legacy.
    pub fn forget_era(&self) {
        self.lock_status().era = None;
    }

    /// The current mark, for a request that starts now.
    pub(crate) fn failure_mark(&self) -> FailureMark {
        self.lock_status().failure_mark()
    }

    /// Records the outcome of a request that started at `began`.
    pub(crate) fn record_outcome(&self, began: FailureMark, error: Option<&McpError>) {
        self.lock_status().record_outcome(began, error);
    }

    async fn connect(self: Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let decision = self.lock_status().breaker.decision(Instant::now());
        if let BreakerDecision::Delay(pause) = decision {
            tokio::time::sleep(pause).await;
        }
        let server = self.spec.id.clone();
        self.emit(EventKind::Connecting { server: server.clone() });
        let started = Instant::now();
        let stderr = Mutex::new(StderrRing::default());
        let (known_era, began) = {
            let status = self.lock_status();
            (status.era, status.failure_mark())
        };
        let connector = Connector {
            spec: &self.spec,
            relay: self.context.relay.as_deref(),
            remote: self.context.remote.as_deref(),
            owner: self.owner.as_deref(),
            killed: &self.killed,
            known_era,
            server_requests: Arc::new(self.server_requests()),
            authorizer: self
                .token_manager
                .as_ref()
                .ok()
                .map(|token_manager| Arc::clone(token_manager) as Arc<dyn Authorizer>),
            tasks: &self.tasks,
            stderr: &stderr,
            listen: self.context.listen,
            timeout: self.spec.connect_timeout,
        };
        let timeout = self.spec.connect_timeout;
        let result = match tokio::time::timeout(timeout, connector.open()).await {
            Ok(result) => result,
            Err(_) => Err(McpError::TimedOut(timeout)),
        };
        match result {
            Ok(connection) => {
                let connection = Arc::new(connection);
                if !self.install_connection(&connection) {
                    return Err(given_up());
                }
                let server_info = &connection.server_info;
                let (era, peer) = (server_info.era.name(), server_info.peer.clone());
                self.emit(EventKind::Connected { server, era, peer, took: started.elapsed() });
                Ok(connection)
            }
            Err(error) => {
                let tail = stderr.lock().unwrap_or_else(PoisonError::into_inner).tail();
                let error = self.record_failed_connect(began, error.while_connecting(tail));
                self.emit(EventKind::ConnectFailed { server, cause: error.text() });
                Err(error)
            }
        }
    }

    /// What answers the requests of the server on a new connection.
    fn server_requests(&self) -> ServerRequests {
        ServerRequests {
            server: self.spec.id.clone(),
            events: Arc::clone(&self.context.events),
            handler: Arc::clone(&self.context.handler),
            changes: self.changes.clone(),
            in_flight: Arc::new(match self.spec.transport {
                // Each connection is a new process.
                TransportSpec::Stdio(_) => InFlightRequests::default(),
                TransportSpec::Http(_) | TransportSpec::Sse(_) => {
                    InFlightRequests::over_http(Arc::clone(&self.users))
                }
            }),
            roots: match (&self.spec.roots, &self.spec.instances) {
                (Some(roots), _) => Roots::Configured(roots.clone()),
                (None, Instances::Caller { .. }) => Roots::Client,
                (None, Instances::Shared) if self.context.single_client => Roots::Client,
                (None, Instances::Shared) => Roots::None,
            },
        }
    }

    /// Records a failed attempt. Returns its error, which is permanent if the circuit is open now.
    fn record_failed_connect(&self, began: FailureMark, error: McpError) -> McpError {
        let mut status = self.lock_status();
        status.connecting = None;
        // A missing login does not count as a failure.
        if matches!(error, McpError::LoginNeeded { .. }) {
            status.record_error(&error);
        } else {
            status.record_failure(began, &error);
        }
        match status.breaker.decision(Instant::now()) {
            BreakerDecision::Reject(_) => error.into_permanent(),
            BreakerDecision::Allow | BreakerDecision::Delay(_) => error,
        }
    }

    /// Puts a new connection into use and starts its background tasks. A successful connect does not reset the breaker: a
    /// server that crashes on every call connects successfully each time.
    ///
    /// Returns `false`, and does nothing, if the server was disconnected meanwhile: `disconnect` takes the attempt, but cannot
    /// abort one that is past its last await.
    fn install_connection(self: &Arc<Self>, connection: &Arc<Connection>) -> bool {
        let background = CancellationToken::new();
        {
            let mut status = self.lock_status();
            if status.connecting.take().is_none() {
                return false;
            }
            status.era = Some(connection.server_info.era).filter(|_| !connection.server_info.era_uncertain);
            status.last_used = Some(Instant::now());
            if status.breaker.failures() == 0 {
                status.last_error = None;
            }
            status.live = Some(LiveConnection {
                connection: Arc::clone(connection),
                _background: background.clone().drop_guard(),
            });
        }
        self.connects.send_modify(|count| *count += 1);
        if let Some(idle) = self.spec.idle_timeout {
            self.spawn_background(&background, Arc::clone(self).stop_when_idle(idle));
        }
        if self.context.listen && connection.server_info.era == Era::Modern {
            self.spawn_background(
                &background,
                keep_subscribed(Arc::clone(connection), self.subscribed_uris.subscribe()),
            );
        }
        true
    }

    fn spawn_background(
        &self,
        background: &CancellationToken,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let background = background.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = background.cancelled() => {}
                () = work => {}
            }
        });
    }

    async fn stop_when_idle(self: Arc<Self>, idle: Duration) {
        loop {
            tokio::time::sleep(idle).await;
            let mut status = self.lock_status();
            if status.is_idle_for(idle) {
                // Dropping `live` cancels this task too, through its drop guard.
                let live = status.live.take();
                drop(status);
                drop(live);
                return;
            }
        }
    }

    /// Counts a request as in flight until the returned guard is dropped.
    pub(crate) fn begin_request(&self, purpose: RequestPurpose) -> RequestGuard<'_> {
        self.lock_status().in_flight += 1;
        self.guard(purpose)
    }

    fn guard(&self, purpose: RequestPurpose) -> RequestGuard<'_> {
        RequestGuard::new(
            &self.status,
            purpose == RequestPurpose::CallerRequest && self.spec.idle_timeout.is_some(),
        )
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

    /// Number of requests in flight over all connections.
    fn in_flight(&self) -> usize {
        let instances = self.instances();
        self.lock_status().in_flight + instances.iter().map(|instance| instance.in_flight()).sum::<usize>()
    }

    /// Waits up to `limit` until no request is in flight. Returns whether that was reached.
    pub async fn drain(&self, limit: Duration) -> bool {
        let idle = async {
            while self.in_flight() > 0 {
                tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(limit, idle).await.is_ok()
    }

    /// Like [`Self::stop`], for good: requests that still run, or whose clean-up comes later, do not open a connection again,
    /// which would start a process that is never stopped.
    pub async fn close(&self, timeout: Duration) {
        self.closed.cancel();
        self.stop(timeout).await;
    }

    /// Like [`Self::close`], without a grace period for its processes: they are killed.
    pub async fn kill(&self, timeout: Duration) {
        self.killed.cancel();
        self.close(timeout).await;
    }

    /// Disconnects an instance for good that is removed from the pool. A caller that still has it cannot connect it again:
    /// nothing would stop that connection.
    pub(crate) fn retire(&self) {
        self.closed.cancel();
        self.disconnect();
    }

    /// Closes the connections, and waits up to `timeout` for their tasks to end. A later request opens a new one.
    pub async fn stop(&self, timeout: Duration) {
        self.disconnect();
        self.pool
            .as_ref()
            .map(InstancePool::take_all)
            .unwrap_or_default()
            .iter()
            .for_each(|instance| instance.disconnect());
        self.tasks.close();
        let _ = tokio::time::timeout(timeout, self.tasks.wait()).await;
        self.tasks.reopen();
    }
}

fn given_up() -> McpError {
    McpError::connect(LocalizedText::new("connecting was given up", "已放弃连接"))
}
