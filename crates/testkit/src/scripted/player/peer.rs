//! How far the handshake of a legacy client has come: one peer per stdio process or per HTTP session.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::stage::locked;

/// One client, as far as a server may remember it.
#[derive(Debug)]
pub(super) struct Peer {
    /// Empty where there is no session.
    pub(super) session: String,
    progress: Mutex<Progress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    New,
    /// `initialize` was answered.
    Opened,
    /// `notifications/initialized` came.
    Ready,
}

impl Peer {
    pub(super) fn new() -> Arc<Self> {
        Self::at(String::new(), Progress::New)
    }

    /// A client of a server that keeps nothing between requests.
    pub(super) fn stateless() -> Arc<Self> {
        Self::at(String::new(), Progress::Ready)
    }

    fn at(session: String, progress: Progress) -> Arc<Self> {
        Arc::new(Self { session, progress: Mutex::new(progress) })
    }

    pub(super) fn open(&self) {
        *locked(&self.progress) = Progress::Opened;
    }

    /// Has no effect before the opening.
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

    /// Ends a session; false when there is none of this id.
    pub(super) fn close(&self, id: &str) -> bool {
        locked(&self.known).remove(id).is_some()
    }

    pub(super) fn drop_all(&self) {
        locked(&self.known).clear();
    }
}
