//! Unfinished responses in the store that this process owns and does not run: the write that added one, or the one that ended it,
//! was reported as failed and is there nevertheless. No other process ends them while this one lives.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use toolhub_core::ports::HubStore;
use toolhub_core::responses::OwnedResponse;

use super::final_state::{as_cancelled, as_failed};

/// How often they are looked for while this process runs no response.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How long a response must have been seen without a turn.
const GRACE: Duration = Duration::from_secs(10);

/// The responses that were seen without a turn, and since when.
#[derive(Debug, Default)]
pub(crate) struct AbandonedResponses {
    seen: HashMap<String, Instant>,
    looked: Option<Instant>,
}

impl AbandonedResponses {
    /// Whether they must be looked for again.
    pub(crate) fn is_due(&self) -> bool {
        !self.seen.is_empty() || self.looked.is_none_or(|looked| looked.elapsed() >= CHECK_INTERVAL)
    }

    /// Ends those of `left`, the responses without a turn, that were seen before.
    pub(crate) async fn end(&mut self, store: &dyn HubStore, left: Vec<OwnedResponse>, now: Instant) {
        self.looked = Some(now);
        self.seen.retain(|id, _| left.iter().any(|one| one.id == *id));
        for one in left {
            let since = *self.seen.entry(one.id.clone()).or_insert(now);
            if now.saturating_duration_since(since) >= GRACE {
                // What fails now is tried again.
                let _ = end(store, &one).await;
            }
        }
    }
}

async fn end(store: &dyn HubStore, one: &OwnedResponse) -> Result<(), toolhub_core::ports::StoreError> {
    let Some(stored) = store.response(&one.id, &one.principal).await? else { return Ok(()) };
    let ended = match one.is_cancelled {
        true => as_cancelled(stored),
        false => as_failed(
            stored,
            "the hub could not store this response, and does not work on it (hub 无法保存此响应，已停止处理)",
        ),
    };
    store.update_response(ended).await.map(drop)
}
