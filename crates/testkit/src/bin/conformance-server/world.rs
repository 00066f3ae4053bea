//! What all sessions of the server share, and what one session remembers. Over HTTP, modern requests
//! have no session: each is served with a new one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, RequestStateCodec};
use rmcp::task_manager::TaskManager;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Subscribers that are this many changes behind miss some; each change stands for itself, so they may.
const CHANGES: usize = 64;

/// Something that subscribers may want to know.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resource(String),
}

/// What all sessions share.
pub(crate) struct World {
    pub(crate) tasks: TaskManager,
    changes: broadcast::Sender<Change>,
    /// Whether the tool list has its extra tool; changing the list adds or removes it.
    pub(crate) extra_tool: Toggle,
    /// The same of the prompt list.
    pub(crate) extra_prompt: Toggle,
    /// Ends the subscriptions, when there will be nobody to hear of changes.
    pub(crate) closing: CancellationToken,
    /// Seals what a client carries from round to round, with a key that lives as long as the process.
    pub(crate) seal: RequestStateCodec,
}

impl World {
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

    /// Tells all who listen; nobody need.
    pub(crate) fn tell(&self, change: Change) {
        let _ = self.changes.send(change);
    }
}

/// Something that is on or off.
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

/// What one client has set up for itself.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The changes since a subscription was accepted: the SDK says so to the client before it lets us listen, and what
    /// the client changes in between must not be missed.
    accepted: Mutex<VecDeque<broadcast::Receiver<Change>>>,
    level: Mutex<Option<LoggingLevel>>,
    watched: Mutex<BTreeSet<String>>,
}

impl Session {
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The level that was asked for; a client that never asked hears everything.
    pub(crate) fn level(&self) -> LoggingLevel {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(LoggingLevel::Debug)
    }

    /// Begins to hear of changes, for a subscription that is about to be accepted.
    pub(crate) fn accept(&self, world: &World) {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push_back(world.changes.subscribe());
    }

    /// What was heard since the oldest subscription was accepted that nobody listens to yet.
    pub(crate) fn listen(&self, world: &World) -> broadcast::Receiver<Change> {
        let oldest = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        oldest.unwrap_or_else(|| world.changes.subscribe())
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
