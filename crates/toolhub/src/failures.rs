//! Persists failures of servers between runs, so that an open circuit breaker applies to all processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolhub_core::ports::CachedList;
use toolhub_core::{Event, EventKind, ServerId};
use toolhub_mcp_client::{FailureHistory, Server};

use crate::hub::Hub;

impl Hub {
    /// Stores the failure history of servers that changed since it was last stored.
    pub(crate) async fn keep_failures(&self) {
        for server in self.servers.snapshot().iter() {
            if let Some(list) = self.with_news(server) {
                self.lists_kept.send_modify(|count| *count += 1);
                self.save_list(server.id(), &list).await;
            }
        }
    }

    /// Allows an immediate attempt to reach the server that a call names, despite earlier failures.
    pub(crate) fn ask_for(&self, source: Option<&str>) {
        if let Some(server) = source.and_then(|id| self.servers.find(id)) {
            server.ask_for();
        }
    }

    /// Forces the next check: the state may have changed while it was being stored.
    pub(crate) fn look_for_news(&self) {
        self.no_news.store(u64::MAX, Ordering::Release);
    }

    /// Whether the failure history of any server differs from the stored one.
    pub(crate) fn has_news(&self) -> bool {
        // Fast path: in most cases no server has changed its state since the last check.
        let servers = self.servers.load();
        let turns = servers.iter().fold(0_u64, |turns, server| turns.wrapping_add(server.turns()));
        if self.no_news.load(Ordering::Acquire) == turns {
            return false;
        }
        let lists = self.lists();
        let any = servers.iter().any(|server| is_news(&server.past(), lists.get(server.id())));
        if !any {
            self.no_news.store(turns, Ordering::Release);
        }
        any
    }

    /// The updated list of a server, if its failure history differs from the stored one.
    fn with_news(&self, server: &Arc<Server>) -> Option<CachedList> {
        if !self.servers.is_current(server) {
            return None;
        }
        let past = server.past();
        let mut lists = self.lists();
        if !is_news(&past, lists.get(server.id())) {
            return None;
        }
        let FailureHistory { failures, last_failure, .. } = past;
        let list = lists.entry(server.id().clone()).or_insert_with(|| unknown(server));
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
fn is_news(past: &FailureHistory, known: Option<&CachedList>) -> bool {
    let (known, known_at) =
        known.map_or((0, None), |list| (list.failures, list.failure.as_ref().map(|(at, _)| *at)));
    let newer = past.last_failure.as_ref().is_some_and(|(at, _)| Some(*at) > known_at);
    past.failures != known || newer
}

/// The failure history stored by an earlier run.
pub(crate) fn past_of(list: Option<&CachedList>) -> FailureHistory {
    list.map_or_else(FailureHistory::default, |list| FailureHistory {
        era: list.era.parse().ok(),
        failures: list.failures,
        last_failure: list.failure.clone(),
    })
}

/// An empty list for a server that was never listed.
pub(crate) fn unknown(server: &Server) -> CachedList {
    CachedList {
        fingerprint: server.spec().fingerprint(),
        era: String::new(),
        peer: String::new(),
        listed_at: None,
        ttl: None,
        tools: Vec::new(),
        skipped: Vec::new(),
        failure: None,
        failures: 0,
        late_at: None,
        late_after: None,
    }
}
