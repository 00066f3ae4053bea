//! Holds requests until enough have arrived, and releases them one after another in an order determined by a seed.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::lock::locked;

/// The number of requests and the seed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shuffle {
    of: usize,
    seed: u64,
}

/// Permission to continue; the next request gets it when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _over: oneshot::Sender<()>,
}

/// The waiting requests.
#[derive(Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Vec<Waiter>>>);

#[derive(Debug)]
struct Waiter {
    id: String,
    go: oneshot::Sender<Turn>,
}

impl Waiting {
    /// Waits until `shuffle.of` requests wait, and then for its turn.
    pub(super) async fn turn(&self, id: &str, shuffle: Shuffle, tasks: &TaskTracker) -> Option<Turn> {
        let (go, turn) = oneshot::channel();
        let full = {
            let mut waiting = locked(&self.0);
            waiting.push(Waiter { id: id.to_owned(), go });
            (waiting.len() >= shuffle.of).then(|| std::mem::take(&mut *waiting))
        };
        if let Some(mut all) = full {
            // The order of arrival depends on the scheduler, so they are sorted by the client's ids first.
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
        // Skips requests that were cancelled meanwhile.
        if waiter.go.send(Turn { _over: over }).is_ok() {
            _ = ended.await;
        }
    }
}
