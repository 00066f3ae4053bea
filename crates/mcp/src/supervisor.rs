//! One server over time: connected when first needed, one connect for all who wait, again when it went away.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;
use toolhub_core::{Event, EventKind, EventSink, ServerId};

use crate::config::ServerSpec;
use crate::connection::{Connection, Doorman};
use crate::era::Era;
use crate::error::McpError;
use crate::handshake::Meeting;
use crate::listing::{self, Listing};
use crate::transport::StderrRing;

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
    /// The last try to connect failed.
    Failed(String),
}

/// An attempt to connect that is under way.
struct Attempt {
    waiting: Shared<BoxFuture<'static, Result<Arc<Connection>, McpError>>>,
    abort: AbortHandle,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Cleared by the attempt itself when it ends.
    connecting: Option<Attempt>,
    era: Option<Era>,
    last_error: Option<McpError>,
}

/// One configured server.
pub struct Server {
    spec: ServerSpec,
    events: Arc<dyn EventSink>,
    tasks: TaskTracker,
    state: Mutex<State>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("id", &self.spec.id).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that is not connected yet; `known` is the era it spoke last time.
    pub fn new(spec: ServerSpec, known: Option<Era>, events: Arc<dyn EventSink>) -> Self {
        let state = Mutex::new(State { era: known, ..State::default() });
        Self { spec, events, tasks: TaskTracker::new(), state }
    }

    /// Its id.
    pub fn id(&self) -> &ServerId {
        &self.spec.id
    }

    /// Its configuration.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands.
    pub fn status(&self) -> ServerState {
        let state = self.state();
        match (&state.connection, &state.last_error) {
            (Some(connection), _) if connection.is_open() => {
                let greeting = connection.greeting.clone();
                ServerState::Connected { era: greeting.era, version: greeting.version, peer: greeting.peer }
            }
            (_, Some(error)) => ServerState::Failed(error.to_string()),
            _ => ServerState::Idle,
        }
    }

    /// The connection, made now if there is none. Whoever comes meanwhile waits for the same one.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let connecting = {
            let mut state = self.state();
            if let Some(connection) = state.connection.as_ref().filter(|connection| connection.is_open()) {
                return Ok(Arc::clone(connection));
            }
            if state.connecting.is_none() {
                // A task of its own: a waiter that gives up does not take the attempt away from the others.
                let task = self.tasks.spawn(Arc::clone(self).connect());
                let abort = task.abort_handle();
                let gone = || Err(McpError::connect("connecting was given up"));
                let waiting = task.map(move |joined| joined.unwrap_or_else(|_| gone())).boxed().shared();
                state.connecting = Some(Attempt { waiting, abort });
            }
            state.connecting.as_ref().map(|attempt| attempt.waiting.clone())
        };
        match connecting {
            Some(connecting) => connecting.await,
            None => Err(McpError::connect("connecting was given up")),
        }
    }

    /// Forgets a connection that turned out to be of no use, so that the next call makes another.
    pub(crate) fn forget(&self, connection: &Arc<Connection>) {
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
        }
    }

    async fn connect(self: Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let emit = |kind| self.events.emit(Event::now(None, kind));
        let server = self.spec.id.clone();
        emit(EventKind::Connecting { server: server.clone() });
        let started = Instant::now();
        let stderr = Mutex::new(StderrRing::default());
        let known = self.state().era;
        let doorman = Doorman { server: server.clone(), events: Arc::clone(&self.events) };
        let meeting = Meeting {
            transport: &self.spec.transport,
            known,
            inbox: Arc::new(doorman),
            tasks: &self.tasks,
            stderr: &stderr,
        };
        let patience = self.spec.connect_timeout;
        let result = match tokio::time::timeout(patience, meeting.open()).await {
            Ok(result) => result,
            Err(_) => Err(McpError::TimedOut(patience)),
        };
        let mut state = self.state();
        state.connecting = None;
        match result {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                state.era = Some(connection.greeting.era);
                state.last_error = None;
                drop(state);
                let greeting = &connection.greeting;
                let (era, peer) = (greeting.era.name(), greeting.peer.clone());
                emit(EventKind::Connected { server, era, peer, took: started.elapsed() });
                Ok(connection)
            }
            Err(error) => {
                let tail = stderr.lock().unwrap_or_else(PoisonError::into_inner).tail();
                let error = error.while_connecting(tail);
                state.last_error = Some(error.clone());
                drop(state);
                emit(EventKind::ConnectFailed { server, cause: error.to_string() });
                Err(error)
            }
        }
    }

    /// Connects if need be and lists the tools; also tells the era and the name the server goes by.
    pub async fn list(self: &Arc<Self>) -> Result<(Listing, Era, String), McpError> {
        let connection = self.connection().await?;
        let patience = self.spec.connect_timeout;
        let listing = match tokio::time::timeout(patience, listing::list(&connection)).await {
            Ok(Ok(listing)) => listing,
            Ok(Err(McpError::SessionExpired)) => {
                self.forget(&connection);
                let connection = self.connection().await?;
                listing::list(&connection).await?
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let stderr = connection.stderr_tail();
                return Err(McpError::TimedOut(patience).while_connecting(stderr));
            }
        };
        let (tools, skipped) = (listing.tools.len(), listing.skipped.clone());
        let server = self.spec.id.clone();
        self.events.emit(Event::now(None, EventKind::Listed { server, tools, skipped }));
        Ok((listing, connection.greeting.era, connection.greeting.peer.clone()))
    }

    /// Why the last try to connect failed, if it did.
    pub fn last_error(&self) -> Option<McpError> {
        self.state().last_error.clone()
    }

    /// Tasks that still run for it.
    pub fn tasks_left(&self) -> usize {
        self.tasks.len()
    }

    /// Ends the connection, and waits until nothing of it is left, at most `patience`.
    pub async fn stop(&self, patience: Duration) {
        let (connection, connecting) = {
            let mut state = self.state();
            (state.connection.take(), state.connecting.take())
        };
        drop(connection);
        if let Some(attempt) = connecting {
            attempt.abort.abort();
        }
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
        self.tasks.reopen();
    }
}
