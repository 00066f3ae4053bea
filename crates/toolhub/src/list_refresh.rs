//! Keeps the lists of a long-running hub fresh: servers are listed again when they announce a change, and when the time-to-live
//! of their list expires.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use toolhub_core::ports::CachedList;
use toolhub_mcp_client::Server;

use crate::discovery::DEFAULT_LIST_TTL;
use crate::hub::Hub;

/// Debounce interval after a change notification.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The minimum interval between listings, even with a shorter time-to-live: a time-to-live of 0 must not cause permanent
/// requests.
const MIN_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum interval between listings.
const MAX_INTERVAL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Jitter as a fraction of the time-to-live, so that lists do not expire simultaneously.
const JITTER: f64 = 0.1;

impl Hub {
    /// Keeps the lists fresh while it is polled. A server is listed again after a change notification, once for several in a
    /// short time, and when its list expires. No process is started for that: a stopped server is listed when it is next used.
    pub async fn follow(&self) {
        let mut version = self.servers.version();
        let (mut followed, mut running) = (Vec::<Arc<Server>>::new(), FuturesUnordered::new());
        loop {
            version.mark_unchanged();
            followed.retain(|server| self.servers.is_current(server));
            for server in self.servers.snapshot().iter() {
                if !followed.iter().any(|followed_server| Arc::ptr_eq(followed_server, server)) {
                    followed.push(Arc::clone(server));
                    running.push(self.follow_while_current(Arc::clone(server)));
                }
            }
            tokio::select! {
                _ = version.changed() => {}
                Some(()) = running.next(), if !running.is_empty() => {}
            }
        }
    }

    /// Follows one server until it is removed or replaced.
    async fn follow_while_current(&self, server: Arc<Server>) {
        let mut version = self.servers.version();
        let until_removed = async {
            while self.servers.is_current(&server) {
                let _ = version.changed().await;
            }
        };
        tokio::select! {
            () = self.follow_one(&server) => {}
            () = until_removed => {}
        }
    }

    async fn follow_one(&self, server: &Arc<Server>) {
        let (mut changes, mut connects) = (server.changes(), server.connects());
        let mut lists_version = self.lists_version.subscribe();
        let jitter = fastrand::f64();
        loop {
            let due = self.due(server, jitter);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(DEBOUNCE).await;
                    changes.mark_unchanged();
                    let _ = self.list_one(server).await;
                }
                // The list was fetched elsewhere, or the server was started: the due time is computed again.
                _ = lists_version.changed() => {}
                _ = connects.changed() => {
                    // A call stopped waiting for it: it is listed now for the next call.
                    let late = self.lists().get(server.id()).is_some_and(|list| list.late_at.is_some());
                    if late || self.declared_less(server) {
                        let _ = self.list_one(server).await;
                    }
                }
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                    if let Some(listed) = server.refresh().await {
                        let _ = self.store_listing(server, listed).await;
                    }
                }
            }
        }
    }

    /// Whether the list may be from a run that declared fewer capabilities: some servers offer certain tools only to clients with
    /// sampling, elicitation or roots. Calls from the command line declare none of these.
    fn declared_less(&self, server: &Server) -> bool {
        let from_before = |list: &CachedList| list.listed_at.is_some_and(|at| at < self.since);
        self.declares && self.lists().get(server.id()).is_some_and(from_before)
    }

    /// The time until a server is listed again; `None` without a list, or if it would have to be started.
    fn due(&self, server: &Server, jitter: f64) -> Option<Duration> {
        if !server.spec().enabled || !server.can_list_without_start() {
            return None;
        }
        let due = due_in(self.lists().get(server.id())?, SystemTime::now(), jitter)?;
        Some(due.max(server.retry_delay().unwrap_or_default()))
    }
}

/// The time until a list expires, counted from the last attempt, whether or not it failed.
fn due_in(list: &CachedList, now: SystemTime, jitter: f64) -> Option<Duration> {
    let listed = list.listed_at?;
    let last = list.failure.as_ref().map_or(listed, |(failed, _)| listed.max(*failed));
    let ttl =
        list.ttl.unwrap_or(DEFAULT_LIST_TTL).clamp(MIN_INTERVAL, MAX_INTERVAL).mul_f64(1.0 + JITTER * jitter);
    // A time in the future, after the clock was set back, has age 0.
    let age = now.duration_since(last).unwrap_or_default();
    Some(ttl.saturating_sub(age))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn lists_are_due_at_expiry() {
        let check = |ttl: Option<u64>, failed: Option<u64>, now: u64, expect: Option<u64>| {
            let at = |second| UNIX_EPOCH + Duration::from_secs(second);
            let list = CachedList {
                fingerprint: String::new(),
                era: String::new(),
                peer: String::new(),
                listed_at: Some(at(1_000_000)),
                ttl: ttl.map(Duration::from_secs),
                tools: Vec::new(),
                skipped: Vec::new(),
                failure: failed.map(|second| (at(second), "why".into())),
                failures: 0,
                late_at: None,
                late_after: None,
            };
            let due = due_in(&list, at(now), 0.0);
            assert_eq!(due.map(|due| due.as_secs()), expect, "{ttl:?} {failed:?} {now}");
            let late = due_in(&list, at(now), 1.0);
            assert!(late >= due && late <= due.map(|due| due + MAX_INTERVAL.mul_f64(JITTER)), "{late:?}");
            let never = CachedList { listed_at: None, ..list };
            assert_eq!(due_in(&never, at(now), 0.0), None);
        };
        check(None, None, 1_000_000, Some(3600));
        check(None, None, 1_003_599, Some(1));
        check(None, None, 2_000_000, Some(0));
        check(Some(300), None, 1_000_100, Some(200));
        check(Some(0), None, 1_000_000, Some(60));
        check(Some(u64::MAX), None, 1_000_000, Some(MAX_INTERVAL.as_secs()));
        check(Some(300), Some(1_000_300), 1_000_310, Some(290));
        check(Some(300), Some(1_000_300), 1_000_900, Some(0));
        check(Some(300), None, 5, Some(300));
    }
}
