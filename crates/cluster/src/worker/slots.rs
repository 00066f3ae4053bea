//! What a worker runs for replicas beside servers: at most a number at the same time, each at most once, and only while it is waited
//! for.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::WorkerState;
use super::instance::REPLICA_TIMEOUT;
use crate::calls::{HandledRequest, HandledRequests};

/// A run is ended this long after the time at which its replica should have ended it.
const OVERTIME: Duration = Duration::from_secs(60);

/// The slots of one kind of runs, with the runs.
pub(super) struct Slots<S> {
    /// Maximum number of runs at the same time.
    capacity: usize,
    free: Semaphore,
    pub(super) runs: HandledRequests<S>,
    /// All runs end.
    pub(super) ended: CancellationToken,
}

impl<S> Slots<S> {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(Semaphore::MAX_PERMITS);
        Self {
            capacity,
            free: Semaphore::new(capacity),
            runs: HandledRequests::default(),
            ended: CancellationToken::new(),
        }
    }

    /// How many more runs it takes; `None` if it takes none at all.
    pub(super) fn free(&self) -> Option<u32> {
        (self.capacity > 0).then(|| u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX))
    }

    /// Takes a slot; `None` if all are in use.
    pub(super) fn take(&self) -> Option<SemaphorePermit<'_>> {
        self.free.try_acquire().ok()
    }

    /// Whether nothing runs.
    pub(super) fn is_empty(&self) -> bool {
        self.free.available_permits() == self.capacity
    }

    /// Ends all runs.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }
}

/// The replica that waits for a run, and how long the run may take.
pub(super) struct RunTerms<'a> {
    /// The replica.
    pub(super) from: &'a str,
    pub(super) began: Instant,
    pub(super) max_time: Duration,
}

impl RunTerms<'_> {
    /// Whether the run should have been ended by its replica long ago.
    pub(super) fn is_over_time(&self) -> bool {
        self.began.elapsed() > self.max_time.saturating_add(OVERTIME)
    }

    /// Whether the replica lives and waits for the run.
    pub(super) fn is_wanted<S>(&self, shared: &WorkerState, call: &HandledRequest<S>) -> bool {
        shared.liveness.silent_since(self.from, self.began).elapsed() <= REPLICA_TIMEOUT
            && call.is_waited_for()
    }
}

/// A timer whose first tick is after an interval.
pub(super) fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}
