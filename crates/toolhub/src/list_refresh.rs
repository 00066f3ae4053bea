//! Keeping the lists of a hub that runs for long fresh: listed again when a server says that they changed, and when
//! the time is over for which they keep.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use toolhub_core::ports::CachedList;
use toolhub_mcp::Server;

use crate::discovery::FRESH;
use crate::hub::Hub;

/// How long further word of a change is waited for before a server is listed again.
const COALESCE: Duration = Duration::from_millis(200);
/// A list is not asked for again sooner than this, however short a time it keeps: one that keeps for no time at all
/// is not to be asked for without end.
const LEAST: Duration = Duration::from_secs(60);
/// Nor is it left longer than this, whatever its server says.
const MOST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The part of its time by which a list may be asked for late, so that many are not asked for at one moment.
const SPREAD: f64 = 0.1;

impl Hub {
    /// Keeps the lists fresh, for as long as it is polled. A server that says that its list changed is listed again,
    /// once for many such words in a short time; so is one whose list has kept its time. A program that does not run
    /// is not started for that: its turn comes when somebody needs it.
    pub async fn follow(&self) {
        let mut version = self.servers.version();
        let (mut followed, mut running) = (Vec::<Arc<Server>>::new(), FuturesUnordered::new());
        loop {
            version.mark_unchanged();
            followed.retain(|server| self.servers.is_current(server));
            for server in self.servers.snapshot().iter() {
                if !followed.iter().any(|known| Arc::ptr_eq(known, server)) {
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
        let gone = async {
            while self.servers.is_current(&server) {
                let _ = version.changed().await;
            }
        };
        tokio::select! {
            () = self.follow_one(&server) => {}
            () = gone => {}
        }
    }

    async fn follow_one(&self, server: &Arc<Server>) {
        let (mut changes, mut connects) = (server.changes(), server.connects());
        let mut kept = self.lists_kept.subscribe();
        let jitter = fastrand::f64();
        loop {
            let due = self.due(server, jitter);
            tokio::select! {
                told = changes.changed() => {
                    if told.is_err() {
                        return;
                    }
                    tokio::time::sleep(COALESCE).await;
                    changes.mark_unchanged();
                    let _ = self.list_one(server).await;
                }
                // Its list was had by somebody else, or it was started: what is due is looked at anew.
                _ = kept.changed() => {}
                _ = connects.changed() => {
                    // A call did not wait for it: now that it is there, the next one need not.
                    let late = self.lists().get(server.id()).is_some_and(|list| list.late_at.is_some());
                    if late || self.declared_less(server) {
                        let _ = self.list_one(server).await;
                    }
                }
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                    if let Some(listed) = server.refresh().await {
                        let _ = self.keep_listing(server, listed).await;
                    }
                }
            }
        }
    }

    /// Whether the list of a server may be that of a run that declared fewer capabilities: some servers offer certain tools
    /// only to clients with sampling, elicitation or roots. Calls from the command line declare none of these.
    fn declared_less(&self, server: &Server) -> bool {
        let from_before = |list: &CachedList| list.listed_at.is_some_and(|at| at < self.since);
        self.declares && self.lists().get(server.id()).is_some_and(from_before)
    }

    /// In how long a server is to be listed again; `None` where there is no list to renew, or nobody to ask.
    fn due(&self, server: &Server, jitter: f64) -> Option<Duration> {
        if !server.spec().enabled || !server.within_reach() {
            return None;
        }
        let due = due_in(self.lists().get(server.id())?, SystemTime::now(), jitter)?;
        Some(due.max(server.avoided_for().unwrap_or_default()))
    }
}

/// In how long a list is to be had again; the last try counts, whether or not it failed.
fn due_in(list: &CachedList, now: SystemTime, jitter: f64) -> Option<Duration> {
    let listed = list.listed_at?;
    let last = list.failure.as_ref().map_or(listed, |(failed, _)| listed.max(*failed));
    let keeps = list.ttl.unwrap_or(FRESH).clamp(LEAST, MOST).mul_f64(1.0 + SPREAD * jitter);
    // A moment in the future, after a clock was set back, has no age.
    let age = now.duration_since(last).unwrap_or_default();
    Some(keeps.saturating_sub(age))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn lists_are_due_when_their_time_is_over() {
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
            assert!(late >= due && late <= due.map(|due| due + MOST.mul_f64(SPREAD)), "{late:?}");
            let never = CachedList { listed_at: None, ..list };
            assert_eq!(due_in(&never, at(now), 0.0), None);
        };
        check(None, None, 1_000_000, Some(3600));
        check(None, None, 1_003_599, Some(1));
        check(None, None, 2_000_000, Some(0));
        check(Some(300), None, 1_000_100, Some(200));
        check(Some(0), None, 1_000_000, Some(60));
        check(Some(u64::MAX), None, 1_000_000, Some(MOST.as_secs()));
        check(Some(300), Some(1_000_300), 1_000_310, Some(290));
        check(Some(300), Some(1_000_300), 1_000_900, Some(0));
        check(Some(300), None, 5, Some(300));
    }
}
