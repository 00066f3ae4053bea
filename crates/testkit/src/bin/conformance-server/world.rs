//! What all sessions of the server share, and what one session remembers. Modern requests have no session: each is
//! served with a new one, and sees the world alone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, RequestStateCodec};
use rmcp::task_manager::TaskManager;
use tokio::sync::broadcast;

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
    pub(crate) changes: broadcast::Sender<Change>,
    /// Whether the tool list has its extra tool; changing the list adds or removes it.
    pub(crate) extra_tool: Toggle,
    /// The same of the prompt list.
    pub(crate) extra_prompt: Toggle,
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

/// What a legacy client has set up for itself.
#[derive(Debug, Default)]
pub(crate) struct Session {
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
