//! State shared by all requests of a process: the script, the journal, requests in progress, and requests to the
//! client.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    lock::locked, peer::Sessions, record::Recorder, resume::Streams, scenario::Scenario, shuffle::Waiting,
};

/// The shared state of the process.
#[derive(Debug)]
pub(super) struct PlayerState {
    pub(super) scenario: Scenario,
    pub(super) journal: Recorder,
    /// An exit code sent here ends the process.
    pub(super) exits: mpsc::Sender<u8>,
    /// Cancelled to stop reading stdin.
    pub(super) stop_reading: CancellationToken,
    /// Tracks the tasks that handle requests.
    pub(super) tasks: TaskTracker,
    pub(super) in_flight: InFlightRequests,
    pub(super) pending_requests: PendingRequests,
    pub(super) sessions: Sessions,
    pub(super) streams: Streams,
    pub(super) shuffled: Waiting,
    /// Kept so that they are not waited for.
    pub(super) children: Mutex<Vec<std::process::Child>>,
}

impl PlayerState {
    pub(super) fn new(scenario: Scenario, exits: mpsc::Sender<u8>) -> Result<Arc<Self>, String> {
        let journal = Recorder::open(scenario.journal.as_deref())?;
        Ok(Arc::new(Self {
            scenario,
            journal,
            exits,
            stop_reading: CancellationToken::new(),
            tasks: TaskTracker::new(),
            in_flight: InFlightRequests::default(),
            pending_requests: PendingRequests::default(),
            sessions: Sessions::default(),
            streams: Streams::default(),
            shuffled: Waiting::default(),
            children: Mutex::default(),
        }))
    }
}

/// The requests in progress, by session and id.
#[derive(Debug, Default)]
pub(super) struct InFlightRequests(Mutex<HashMap<(String, String), CancellationToken>>);

impl InFlightRequests {
    /// Registers a request; the token is cancelled when the client cancels it.
    pub(super) fn begin(&self, session: &str, id: &str) -> CancellationToken {
        let token = CancellationToken::new();
        locked(&self.0).insert((session.to_owned(), id.to_owned()), token.clone());
        token
    }

    pub(super) fn end(&self, session: &str, id: &str) {
        locked(&self.0).remove(&(session.to_owned(), id.to_owned()));
    }

    pub(super) fn cancel(&self, session: &str, id: &str) {
        if let Some(token) = locked(&self.0).get(&(session.to_owned(), id.to_owned())) {
            token.cancel();
        }
    }
}

/// Requests to the client without a response yet. Their ids are small numbers, like those of the client, so that tests
/// detect a confusion of the two directions.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    last: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<String>>>,
}

impl PendingRequests {
    pub(super) fn next(&self) -> (u64, oneshot::Receiver<String>) {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        locked(&self.waiting).insert(id.to_string(), sender);
        (id, receiver)
    }

    pub(super) fn resolve(&self, id: &str, answer: &str) {
        if let Some(sender) = locked(&self.waiting).remove(id) {
            _ = sender.send(answer.to_owned());
        }
    }
}
