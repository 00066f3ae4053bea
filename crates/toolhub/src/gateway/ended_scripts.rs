//! Withdraws held calls of scripts that have ended, and records that: a call that nothing waits for must not be approved. This
//! includes the scripts of hubs that were killed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use toolhub_core::audit::HeldCallDecision;

use crate::held_calls::HeldCall;
use crate::hub::Hub;

/// Interval at which held calls of killed hubs are looked for.
const ORPHAN_INTERVAL: Duration = Duration::from_secs(30);

/// The held calls of scripts that have ended, until they are withdrawn. Each script has at most as many as it may make calls.
#[derive(Debug, Default)]
pub(super) struct EndedScripts {
    calls: Mutex<Vec<String>>,
    added: Notify,
}

impl EndedScripts {
    /// Adds a held call by its id. One that was used, denied or has expired stays as it is.
    pub(super) fn push(&self, call: String) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        self.added.notify_one();
    }

    /// Withdraws calls while it is polled: those that are added, and those that a killed hub has left.
    pub(super) async fn follow(&self, hub: &Hub) {
        loop {
            // A failure is repeated after the interval: what has no hub can be found again.
            for call in hub.held_calls().withdraw_orphans().await.unwrap_or_default() {
                record(hub, &call).await;
            }
            let next = tokio::time::sleep(ORPHAN_INTERVAL);
            tokio::pin!(next);
            loop {
                self.drain(hub).await;
                tokio::select! {
                    () = self.added.notified() => {}
                    () = &mut next => break,
                }
            }
        }
    }

    /// Withdraws the calls that were added.
    pub(super) async fn drain(&self, hub: &Hub) {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let held_calls = hub.held_calls();
        for id in calls {
            match held_calls.withdraw_of_script(&id).await {
                Ok(true) => {
                    if let Ok(Some(call)) = held_calls.get(&id).await {
                        record(hub, &call).await;
                    }
                }
                Ok(false) => {}
                // The next drain tries again.
                Err(_) => self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(id),
            }
        }
    }
}

/// Records the end of a held call in the audit log. The call is withdrawn, whether or not that succeeds.
async fn record(hub: &Hub, call: &HeldCall) {
    let principal = Arc::from(call.principal.as_str());
    let _ = hub.record_held_call(&principal, call, HeldCallDecision::Withdrawn).await;
}
