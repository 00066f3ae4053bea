//! Applies what other hubs have changed in the store that they share: approvals of tools, and the lists of servers.

use std::time::Duration;

use toolhub_core::shared_state::{ChangeVersions, ChangedPart};

use crate::hub::Hub;

/// Pause before the store is asked again after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a change, in which further ones gather.
const DEBOUNCE: Duration = Duration::from_millis(50);

impl Hub {
    /// Applies the changes of other hubs while it is polled.
    pub(crate) async fn follow_shared_changes(&self) {
        let Some(store) = self.store.as_ref().filter(|store| store.is_shared()) else { return };
        // What was read when the hub was built may be older than the versions: the first ones count as changed.
        let mut seen_versions = ChangeVersions::default();
        loop {
            let now = match store.changed(&seen_versions).await {
                Ok(now) => now,
                Err(_) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
            };
            let parts = now.changed_since(&seen_versions);
            seen_versions = now;
            if parts.contains(&ChangedPart::Approvals) && self.reload_approvals().await {
                self.lists_version.send_modify(|count| *count += 1);
            }
            if parts.contains(&ChangedPart::ToolLists) {
                self.reload_lists().await;
            }
            tokio::time::sleep(DEBOUNCE).await;
        }
    }

    /// Uses the lists that other hubs have received later than this one.
    async fn reload_lists(&self) {
        let Some(store) = &self.store else { return };
        // The lists in use stay in force if the store cannot be read.
        let Ok(stored) = store.load().await else { return };
        let mut is_changed = false;
        for (id, list) in stored {
            let Some(server) = self.servers.find(id.as_str()) else { continue };
            if list.fingerprint != server.spec().fingerprint() {
                continue;
            }
            let is_newer = {
                let mut lists = self.lists();
                let before = lists.get(&id);
                let is_newer = list.listed_at > before.and_then(|list| list.listed_at);
                // The same definitions need no other catalog.
                let differs = before.is_none_or(|before| {
                    let texts = |list: &toolhub_core::ports::CachedList| -> Vec<String> {
                        list.tools.iter().map(|tool| tool.get().to_owned()).collect()
                    };
                    texts(before) != texts(&list)
                });
                if is_newer {
                    lists.insert(id, list);
                }
                is_newer && differs
            };
            if is_newer {
                self.refresh_server(&server);
                is_changed = true;
            }
        }
        if is_changed {
            self.force_failure_check();
            self.lists_version.send_modify(|count| *count += 1);
        }
    }
}
