//! State shared by all sessions, and the state of a session. Over HTTP, modern requests have no session: each gets a
//! new one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, RequestStateCodec};
use rmcp::task_manager::TaskManager;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Capacity of the broadcast channel. Slower subscribers miss changes, which is acceptable since changes are
/// independent.
const CHANGES: usize = 64;

/// A change that subscribers are notified of.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resource(String),
}

/// State shared by all sessions.
pub(crate) struct ServerState {
    pub(crate) tasks: TaskManager,
    changes: broadcast::Sender<Change>,
    /// Whether the list contains the extra tool; changing the list adds or removes it.
    pub(crate) extra_tool: Toggle,
    /// The same for the list of prompts.
    pub(crate) extra_prompt: Toggle,
    /// Ends the subscriptions when the connection closes.
    pub(crate) closing: CancellationToken,
    /// Seals the state that a client carries between rounds, with a key per process.
    pub(crate) seal: RequestStateCodec,
}

impl ServerState {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let key: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(32).collect();
        Ok(Self {
            tasks: TaskManager::new(),
            changes: broadcast::Sender::new(CHANGES),
            extra_tool: Toggle::default(),
            extra_prompt: Toggle::default(),
            closing: CancellationToken::new(),
            seal: RequestStateCodec::try_new(key)?,
        })
    }

    /// Publishes a change; without subscribers it is dropped.
    pub(crate) fn notify_change(&self, change: Change) {
        let _ = self.changes.send(change);
    }
}

/// A flag.
#[derive(Debug, Default)]
pub(crate) struct Toggle(AtomicBool);

impl Toggle {
    pub(crate) fn flip(&self) {
        self.0.fetch_xor(true, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The state of a session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Receivers created when a subscription was accepted: the SDK acknowledges it to the client before it calls the
    /// handler, and changes in between must not be missed.
    accepted: Mutex<VecDeque<broadcast::Receiver<Change>>>,
    level: Mutex<Option<LoggingLevel>>,
    watched: Mutex<BTreeSet<String>>,
}

impl Session {
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The requested log level; debug if the client never set one.
    pub(crate) fn level(&self) -> LoggingLevel {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(LoggingLevel::Debug)
    }

    /// Starts receiving changes for a subscription that is about to be accepted.
    pub(crate) fn accept(&self, server_state: &ServerState) {
        self.accepted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(server_state.changes.subscribe());
    }

    /// The receiver of the oldest accepted subscription without a listener.
    pub(crate) fn listen(&self, server_state: &ServerState) -> broadcast::Receiver<Change> {
        let oldest = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        oldest.unwrap_or_else(|| server_state.changes.subscribe())
    }

    pub(crate) fn watch(&self, uri: String) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).insert(uri);
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }
}
