//! The handshake state of a legacy client: one peer per stdio process or HTTP session.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::lock::locked;

/// The state of a client.
#[derive(Debug)]
pub(super) struct Peer {
    /// Empty without a session.
    pub(super) session: String,
    progress: Mutex<Progress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    New,
    /// The response to `initialize` was sent.
    Opened,
    /// `notifications/initialized` was received.
    Ready,
}

impl Peer {
    pub(super) fn new() -> Arc<Self> {
        Self::at(String::new(), Progress::New)
    }

    /// The peer of a stateless server.
    pub(super) fn stateless() -> Arc<Self> {
        Self::at(String::new(), Progress::Ready)
    }

    fn at(session: String, progress: Progress) -> Arc<Self> {
        Arc::new(Self { session, progress: Mutex::new(progress) })
    }

    pub(super) fn open(&self) {
        *locked(&self.progress) = Progress::Opened;
    }

    /// Has no effect before `initialize`.
    pub(super) fn confirm(&self) {
        let mut progress = locked(&self.progress);
        if *progress == Progress::Opened {
            *progress = Progress::Ready;
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        *locked(&self.progress) == Progress::Ready
    }
}

/// The sessions of a legacy HTTP server.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    last: AtomicU64,
    known: Mutex<HashMap<String, Arc<Peer>>>,
}

impl Sessions {
    /// Opens a session and returns its id.
    pub(super) fn open(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("session-{}-{number}", std::process::id());
        locked(&self.known).insert(id.clone(), Peer::at(id.clone(), Progress::Opened));
        id
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Peer>> {
        locked(&self.known).get(id).cloned()
    }

    /// Ends a session; `false` if the id is unknown.
    pub(super) fn close(&self, id: &str) -> bool {
        locked(&self.known).remove(id).is_some()
    }

    pub(super) fn drop_all(&self) {
        locked(&self.known).clear();
    }
}
