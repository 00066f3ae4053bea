//! Holds requests back until enough are there, and lets them go on one after another in an order drawn from a seed.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::stage::locked;

/// How many, and how they are mixed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shuffle {
    of: usize,
    seed: u64,
}

/// A request's leave to go on; the next one gets its own when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _over: oneshot::Sender<()>,
}

/// The requests that wait for others.
#[derive(Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Vec<Waiter>>>);

#[derive(Debug)]
struct Waiter {
    id: String,
    go: oneshot::Sender<Turn>,
}

impl Waiting {
    /// Waits until `shuffle.of` requests do, and then for this one's turn.
    pub(super) async fn turn(&self, id: &str, shuffle: Shuffle, tasks: &TaskTracker) -> Option<Turn> {
        let (go, turn) = oneshot::channel();
        let full = {
            let mut waiting = locked(&self.0);
            waiting.push(Waiter { id: id.to_owned(), go });
            (waiting.len() >= shuffle.of).then(|| std::mem::take(&mut *waiting))
        };
        if let Some(mut all) = full {
            // In which order they came to wait is up to the scheduler; the ids are the client's.
            all.sort_by(|one, other| (one.id.len(), &one.id).cmp(&(other.id.len(), &other.id)));
            fastrand::Rng::with_seed(shuffle.seed).shuffle(&mut all);
            tasks.spawn(release(all));
        }
        turn.await.ok()
    }
}

async fn release(waiters: Vec<Waiter>) {
    for waiter in waiters {
        let (over, ended) = oneshot::channel();
        // One that was cancelled meanwhile is passed over.
        if waiter.go.send(Turn { _over: over }).is_ok() {
            _ = ended.await;
        }
    }
}
