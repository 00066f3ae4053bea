//! The choice of a worker for what needs no placement: scripts, and scripts of skills. Signs of life say which workers have free slots.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use super::ReplicaState;
use crate::bus::BusError;
use crate::liveness::{BEAT_INTERVAL, SlotKind, SlotOwner};

/// After this time, each worker has given a sign of life.
const FIRST_BEATS: Duration = BEAT_INTERVAL.saturating_mul(2);
/// How often signs of life are checked before that.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Pause before full workers are asked again.
pub(super) const FULL_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The workers that have slots of a kind.
pub(super) struct Candidates {
    pub(super) shared: Arc<ReplicaState>,
    kind: SlotKind,
    since: Instant,
}

impl Candidates {
    pub(super) fn new(shared: &Arc<ReplicaState>, kind: SlotKind) -> Self {
        Self { shared: Arc::clone(shared), kind, since: Instant::now() }
    }

    /// The workers that live and have slots, those with free ones first.
    pub(super) async fn find(&self) -> Vec<SlotOwner> {
        loop {
            let workers = self.shared.liveness.workers(self.kind);
            if !workers.is_empty() || self.since.elapsed() > FIRST_BEATS {
                return workers;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

/// Why a worker has not begun a run. Whatever was sent to it is cancelled, and changes nothing by itself.
pub(super) struct NotBegun {
    pub(super) why: LocalizedText,
    /// Whether the worker may take it later.
    pub(super) is_full: bool,
}

impl From<&BusError> for NotBegun {
    fn from(error: &BusError) -> Self {
        let why = LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
        Self { why, is_full: false }
    }
}

/// What is known of the workers that have not begun a run.
#[derive(Default)]
pub(super) struct Refusals {
    /// The reason of the last one; `None` if there was no worker.
    pub(super) last: Option<LocalizedText>,
    /// Whether a worker may take it later.
    pub(super) is_any_full: bool,
}

impl Refusals {
    pub(super) fn push(&mut self, not_begun: NotBegun) {
        self.is_any_full |= not_begun.is_full;
        self.last = Some(not_begun.why);
    }
}

/// The text for a worker that was lost while it ran something.
pub(super) fn worker_lost(worker: &str, why: &BusError) -> LocalizedText {
    LocalizedText::new(
        format!("its worker `{worker}` was lost: {}", why.localize(Lang::En)),
        format!("与其工作进程 `{worker}` 失去联系：{}", why.localize(Lang::Zh)),
    )
}
