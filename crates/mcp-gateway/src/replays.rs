//! The streams of a principal whose events may be discarded once they have ended, so that newer ones fit into its budget.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Number of registered streams that triggers the removal of those that are gone.
const MAX_REPLAY_ENTRIES: usize = 1_024;

/// The events of a stream, kept so that the client can resume it.
pub(crate) trait Replay: Send + Sync {
    /// Whether the stream has ended, so that its events may be discarded.
    fn is_ended(&self) -> bool;

    /// Whether the events were discarded.
    fn is_discarded(&self) -> bool;

    /// Discards the events, so that the stream cannot be resumed.
    fn discard(&self);
}

/// The streams with events, oldest first.
#[derive(Default)]
pub(crate) struct Replays(Mutex<VecDeque<Weak<dyn Replay>>>);

impl Replays {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<dyn Replay>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, replay: Weak<dyn Replay>) {
        let mut replays = self.lock();
        if replays.len() >= MAX_REPLAY_ENTRIES {
            replays.retain(|replay| replay.strong_count() > 0);
        }
        replays.push_back(replay);
    }

    /// Returns the ended streams whose events are still kept, oldest first.
    pub(crate) fn ended(&self) -> Vec<Arc<dyn Replay>> {
        let mut ended = Vec::new();
        self.lock().retain(|replay| {
            let live = replay.upgrade().filter(|replay| !replay.is_discarded());
            let is_kept = live.is_some();
            ended.extend(live.filter(|replay| replay.is_ended()));
            is_kept
        });
        ended
    }
}
