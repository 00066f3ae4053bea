//! Persists failures of servers between runs, so that an open circuit breaker applies to all processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolhub_core::ports::CachedList;
use toolhub_core::{Event, EventKind, ServerId};
use toolhub_mcp_client::{FailureHistory, Server};

use crate::hub::Hub;

impl Hub {
    /// Stores the failure history of servers that changed since it was last stored.
    pub(crate) async fn store_failures(&self) {
        for server in self.servers.snapshot().iter() {
            if let Some(list) = self.list_with_failures(server) {
                self.lists_version.send_modify(|count| *count += 1);
                self.save_list(server.id(), &list).await;
            }
        }
    }

    /// Allows an immediate attempt to reach the server that a call names, despite earlier failures.
    pub(crate) fn allow_retry(&self, source: Option<&str>) {
        if let Some(server) = source.and_then(|id| self.servers.find(id)) {
            server.allow_retry();
        }
    }

    /// Forces the next check: the state may have changed while it was being stored.
    pub(crate) fn force_failure_check(&self) {
        self.checked_version.store(u64::MAX, Ordering::Release);
    }

    /// Whether the failure history of any server differs from the stored one.
    pub(crate) fn has_unsaved_failures(&self) -> bool {
        // Fast path: in most cases no server has changed its state since the last check.
        let servers = self.servers.load();
        let history_version = servers
            .iter()
            .fold(0_u64, |history_version, server| history_version.wrapping_add(server.history_version()));
        if self.checked_version.load(Ordering::Acquire) == history_version {
            return false;
        }
        let lists = self.lists();
        let any = servers.iter().any(|server| is_unsaved(&server.failure_history(), lists.get(server.id())));
        if !any {
            self.checked_version.store(history_version, Ordering::Release);
        }
        any
    }

    /// The updated list of a server, if its failure history differs from the stored one.
    fn list_with_failures(&self, server: &Arc<Server>) -> Option<CachedList> {
        if !self.servers.is_current(server) {
            return None;
        }
        let failure_history = server.failure_history();
        let mut lists = self.lists();
        if !is_unsaved(&failure_history, lists.get(server.id())) {
            return None;
        }
        let FailureHistory { failures, last_failure, .. } = failure_history;
        let list = lists.entry(server.id().clone()).or_insert_with(|| empty_list(server));
        (list.failures, list.failure) = (failures, last_failure);
        Some(list.clone())
    }

    /// Stores a list for the next run.
    pub(crate) async fn save_list(&self, server: &ServerId, list: &CachedList) {
        if let Some(store) = &self.store
            && let Err(error) = store.save(server, list).await
        {
            self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
        }
    }
}

/// Whether a failure history differs from the stored one.
fn is_unsaved(failure_history: &FailureHistory, stored: Option<&CachedList>) -> bool {
    let (stored_failures, last_stored_at) =
        stored.map_or((0, None), |list| (list.failures, list.failure.as_ref().map(|(at, _)| *at)));
    let newer = failure_history.last_failure.as_ref().is_some_and(|(at, _)| Some(*at) > last_stored_at);
    failure_history.failures != stored_failures || newer
}

/// An empty list for a server that was never listed.
pub(crate) fn empty_list(server: &Server) -> CachedList {
    CachedList { fingerprint: server.spec().fingerprint(), ..CachedList::default() }
}
