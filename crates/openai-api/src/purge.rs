//! Deletes expired responses and those of revoked and deleted keys from time to time, and the oldest ones when clients have stored much.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use toolhub::Gateways;
use toolhub_core::ports::HubStore;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::responses::{ResponseLimits, StoredResponse};

/// How often expired responses are deleted.
const PURGE_INTERVAL: Duration = Duration::from_mins(10);
/// The stored responses may exceed their maximum size by this part of it, between two purges.
const TOLERANCE: u64 = 8;

/// Decides when responses are purged.
#[derive(Debug)]
pub(crate) struct Purge {
    max_bytes: u64,
    /// The size of the responses that were stored since the last purge.
    added: AtomicU64,
    is_due: Notify,
}

impl Purge {
    /// Purges to this total size.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, added: AtomicU64::new(0), is_due: Notify::new() }
    }

    /// Counts a response that was stored.
    pub(crate) fn record(&self, stored: &StoredResponse) {
        let parts = [&stored.request, &stored.input, &stored.body];
        let bytes: usize = parts.iter().map(|part| part.get().len()).sum();
        let bytes = bytes as u64;
        if self.added.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes / TOLERANCE {
            self.is_due.notify_one();
        }
    }

    /// Purges while it is polled.
    pub(crate) async fn work(&self, gateways: &Gateways) {
        let Some(store) = gateways.hub().store() else { return };
        let limits = ResponseLimits { max_bytes: self.max_bytes };
        loop {
            self.added.store(0, Ordering::Relaxed);
            // What could not be deleted now is deleted later.
            let _ = store.purge_responses(limits).await;
            delete_of_revoked_keys(gateways, &**store).await;
            tokio::select! {
                () = self.is_due.notified() => {}
                () = tokio::time::sleep(PURGE_INTERVAL) => {}
            }
        }
    }
}

/// Deletes what is stored under the names of revoked keys: it was revoked while no hub ran, or something was stored at the same
/// moment. No other key can have such a name. Also deletes what belongs to keys whose entries are gone.
async fn delete_of_revoked_keys(gateways: &Gateways, store: &dyn HubStore) {
    let access = gateways.access();
    let revoked = access.revoked_keys().into_iter().map(|key| key.name);
    for name in revoked.chain(access.deleted_keys(PURGE_INTERVAL)) {
        // A deletion may take long, and a key of that name may be made for the same person meanwhile.
        let is_in_force = access.keys().iter().any(|key| key.principal.display == name);
        if is_in_force {
            continue;
        }
        let deletion =
            store.delete_responses_of(&PrincipalOrigin::Key { name: name.clone() }.to_string()).await;
        // What could not be deleted now is deleted at the next purge.
        if deletion.is_ok() {
            access.forget_deleted_key(&name, PURGE_INTERVAL);
        }
    }
}
