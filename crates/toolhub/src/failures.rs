//! What is remembered of servers that fail, from run to run: a server that is left alone is left alone by all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolhub_core::ServerId;
use toolhub_core::ports::CachedList;
use toolhub_core::{Event, EventKind};
use toolhub_mcp::{FailureHistory, Server};

use crate::hub::Hub;

impl Hub {
    /// Keeps how servers fared since that was last kept: that they failed, or that it is over.
    pub(crate) async fn keep_failures(&self) {
        for server in self.servers.snapshot().iter() {
            if let Some(list) = self.with_news(server) {
                self.lists_kept.send_modify(|count| *count += 1);
                self.save_list(server.id(), &list).await;
            }
        }
    }

    /// Lets the server that a call names be tried at once, whatever it did before: its caller wants that one.
    pub(crate) fn ask_for(&self, source: Option<&str>) {
        if let Some(server) = source.and_then(|id| self.servers.find(id)) {
            server.ask_for();
        }
    }

    /// What is known may have been overtaken while it was written down.
    pub(crate) fn look_for_news(&self) {
        self.no_news.store(u64::MAX, Ordering::Release);
    }

    /// Whether any server fared otherwise than is known.
    pub(crate) fn has_news(&self) -> bool {
        // Nearly always nothing has changed since there was nothing new.
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

    /// What is known of a server, if it fared otherwise than is known.
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

    /// Keeps a list for the next run.
    pub(crate) async fn save_list(&self, server: &ServerId, list: &CachedList) {
        if let Some(store) = &self.store
            && let Err(error) = store.save(server, list).await
        {
            self.events.emit(Event::now(None, EventKind::Fault { detail: error.to_string() }));
        }
    }
}

/// Whether a server fared otherwise than is known.
fn is_news(past: &FailureHistory, known: Option<&CachedList>) -> bool {
    let (known, known_at) =
        known.map_or((0, None), |list| (list.failures, list.failure.as_ref().map(|(at, _)| *at)));
    let newer = past.last_failure.as_ref().is_some_and(|(at, _)| Some(*at) > known_at);
    past.failures != known || newer
}

/// What an earlier run remembered of a server.
pub(crate) fn past_of(list: Option<&CachedList>) -> FailureHistory {
    list.map_or_else(FailureHistory::default, |list| FailureHistory {
        era: list.era.parse().ok(),
        failures: list.failures,
        last_failure: list.failure.clone(),
    })
}

/// What is known of a server that was never listed.
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
