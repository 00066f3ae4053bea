//! Decides which servers must be listed before a call can be routed, and lists them: concurrently, unavailable ones only
//! occasionally, and with a short timeout if another source can serve the call.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use tokio::sync::SemaphorePermit;
use toolhub_client_config::TransportSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::CachedList;
use toolhub_core::{BoxFuture, CallBy, Event, EventKind, RawJson, ServerId, Source, ToolError};
use toolhub_engine::{Route, RouteRequest, Strategy};
use toolhub_mcp_client::{Server, ServerListing};
use toolhub_mcp_wire::{Era, McpError, Offer};

use crate::failures::empty_list;
use crate::hub::{Hub, SHUTDOWN_TIMEOUT};
use crate::progress::ListingProgress;

/// How long a server is not waited for again after it returned an error, or after a call stopped waiting for it. Connection
/// failures are limited by the server's own circuit breaker.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The time-to-live of a list without one of its own.
pub(crate) const DEFAULT_LIST_TTL: Duration = Duration::from_secs(3600);
/// The maximum delay of a call by servers that failed recently, if no other source can serve it.
const FAILED_SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that was never listed and timed out is not waited for again, if a list can be shown without it.
const HUNG_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// If a candidate exists: the maximum delay of a call by servers of higher rank that were never listed. Many servers need longer
/// to start; they are listed while the call runs, for use by the next call.
const OPTIONAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The minimum age of a list before it is fetched again because of an unknown tool name without a server. Otherwise servers with
/// a time-to-live of 0 would be started for every typing error. For a call that names its server, the list's own time-to-live
/// applies.
const MIN_RELIST_AGE: Duration = Duration::from_secs(300);

/// Servers without a list of tools.
#[derive(Default)]
struct UnlistedServers {
    /// Servers without recent failures. Timeouts of calls that did not need the server do not count, nor those of calls with less
    /// time than `connect_timeout`: the next call that needs it waits as long as it can.
    new: Vec<Arc<Server>>,
    /// Servers without recent failures that a call stopped waiting for recently.
    late: Vec<Arc<Server>>,
    /// Servers that failed recently.
    failed: Vec<Arc<Server>>,
    /// Servers that did not respond within `connect_timeout`.
    hung: Vec<Arc<Server>>,
}

/// How long a listing is waited for.
#[derive(Clone, Copy)]
enum Wait {
    /// Without a limit.
    Unlimited,
    /// The call needs the server, and has this much time.
    Needed(Duration),
    /// The call does not need the server. A timeout is not recorded as a failure.
    Optional(Duration),
}

impl Hub {
    /// Lists the servers without a list that might serve the call, within the given time.
    pub(crate) async fn prepare(&self, request: RouteRequest<'_>, spare: Option<Duration>) {
        let UnlistedServers { mut new, late, failed, hung } = self.missing_by_age(request.source);
        let named = |server: &Arc<Server>| request.source == Some(server.id().as_str());
        if new.is_empty() && late.is_empty() && failed.is_empty() && hung.is_empty() {
            return;
        }
        let at_most = |limit: Duration| spare.map_or(limit, |spare| spare.min(limit));
        let (optional, needed) =
            (Wait::Optional(at_most(OPTIONAL_TIMEOUT)), spare.map_or(Wait::Unlimited, Wait::Needed));
        match self.engine.route(request) {
            Ok(route) => {
                let in_turn = request.by == CallBy::Name && route.strategy == Strategy::First;
                // If several candidates run concurrently, any of these servers may be one of them.
                let to_list = if in_turn { self.before(&route, request.tool, new) } else { new };
                self.list_all(to_list, optional).await;
            }
            Err(ToolError::UnknownTool(_) | ToolError::NoneCapable { have: 0, .. }) => {
                // The caller named that server: it is tried again despite earlier failures.
                if failed.iter().chain(&hung).any(named) {
                    self.allow_retry(request.source);
                    tokio::join!(self.list_all(failed, needed), self.list_all(hung, needed));
                    return;
                }
                new.extend(late);
                tokio::join!(
                    self.list_all(new, needed),
                    self.list_all(failed, Wait::Needed(at_most(FAILED_SERVER_TIMEOUT))),
                    self.list_all(hung, optional)
                );
            }
            // The tool exists, but that of another server may match better.
            Err(_) => self.list_all(new, optional).await,
        }
    }

    /// The servers that rank before all candidates of the route: they would be called first if they had the tool. No server can
    /// have a tool with a reserved name, such as `call_tool`.
    fn before(&self, route: &Route, tool: &str, mut servers: Vec<Arc<Server>>) -> Vec<Arc<Server>> {
        let (policy, reserved) = (self.engine.policy(), self.engine.reserved());
        let best = route.candidates.iter().filter_map(|candidate| policy.rank(candidate.source())).min();
        servers.retain(|server| {
            let source = Source::Server(server.id().clone());
            let first = policy.rank(&source).is_some_and(|rank| best.is_none_or(|best| rank < best));
            first && !reserved.reserves(&source, tool)
        });
        servers
    }

    /// Runs `work` and, concurrently, the listings that a call stopped waiting for. Listings that complete before the work are
    /// stored; the others are not awaited.
    pub(crate) async fn run_during_listings<T>(&self, work: impl Future<Output = T>) -> T {
        let mut late = self.missing(None);
        {
            let lists = self.lists();
            late.retain(|server| lists.get(server.id()).is_some_and(|list| list.late_at.is_some()));
        }
        late.retain(|server| server.is_connected_or_connecting());
        if late.is_empty() {
            return work.await;
        }
        let listings = async {
            self.list_all(late, Wait::Unlimited).await;
            std::future::pending().await
        };
        tokio::select! {
            done = work => done,
            never = listings => never,
        }
    }

    /// Lists servers with an expired list again. Returns whether there were any.
    pub(crate) async fn relist_stale(&self, source: Option<&str>, spare: Option<Duration>) -> bool {
        let mut stale = self.usable(source);
        let named = source.is_some_and(|id| self.servers.contains(id));
        let min_age = if named { Duration::ZERO } else { MIN_RELIST_AGE };
        stale.retain(|server| self.is_stale(server, min_age));
        let any = !stale.is_empty();
        self.list_all(stale, spare.map_or(Wait::Unlimited, Wait::Needed)).await;
        any
    }

    /// Lists every server that was never listed. Servers that failed or timed out before get a short timeout.
    pub fn list_missing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let UnlistedServers { mut new, late, failed, hung } = self.missing_by_age(None);
            new.extend(late);
            tokio::join!(
                self.list_all(new, Wait::Unlimited),
                self.list_all(failed, Wait::Needed(FAILED_SERVER_TIMEOUT)),
                self.list_all(hung, Wait::Optional(OPTIONAL_TIMEOUT))
            );
        })
    }

    /// Lists every server without a list, regardless of earlier failures, with the full timeout.
    pub(crate) async fn list_still_missing(&self) {
        self.list_all(self.missing(None), Wait::Unlimited).await;
    }

    /// The progress of listing servers.
    pub fn progress(&self) -> ListingProgress {
        self.progress.get()
    }

    /// Lists every server again.
    pub async fn list_again(&self) {
        self.list_again_of(None).await;
    }

    /// Lists a server again, or all if `source` is `None`. Sources that are not servers are ignored.
    pub fn list_again_of<'a>(&'a self, source: Option<&'a str>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut servers = self.usable(None);
            servers.retain(|server| source.is_none_or(|id| server.id().as_str() == id));
            self.list_all(servers, Wait::Unlimited).await;
        })
    }

    /// Connects to a server and lists it, regardless of its cached list.
    pub fn list_server<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Result<CachedList, ToolError>>> {
        Box::pin(async move {
            let server = self.servers.find(id)?;
            server.allow_retry();
            server.forget_era();
            Some(self.list_one(&server).await.map_err(|error| error.into_tool_error(server.id())))
        })
    }

    /// Ends the connections of a server, with the requests that use them. The next request opens a new one.
    pub fn stop_server<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(server) = self.servers.find(id) {
                server.stop(SHUTDOWN_TIMEOUT).await;
            }
        })
    }

    /// The resources, resource templates or prompts of a server, unchanged.
    pub async fn offers(&self, id: &str, offer: Offer) -> Option<Result<Vec<RawJson>, ToolError>> {
        let server = self.servers.find(id)?;
        Some(server.offers(offer).await.map_err(|error| error.into_tool_error(server.id())))
    }

    /// The enabled servers without a list, and why.
    pub(crate) fn unlisted(&self) -> Vec<(Arc<Server>, LocalizedText)> {
        let missing = self.missing(None);
        let lists = self.lists();
        let why = |server: Arc<Server>| {
            let problem = lists.get(server.id()).and_then(CachedList::known_problem);
            let cause = match (server.circuit_open_error(), problem) {
                (Some(circuit_open_error), _) => circuit_open_error.text(),
                (None, Some(problem)) => problem,
                (None, None) => LocalizedText::new("it has not answered yet", "它尚未回答"),
            };
            (server, cause)
        };
        missing.into_iter().map(why).collect()
    }

    /// The enabled servers whose tools are not in the catalog, because they were never listed. If it is read before the catalog,
    /// the catalog has the tools of all other servers.
    pub(crate) fn not_in_catalog(&self) -> Vec<ServerId> {
        let servers = self.usable(None);
        let in_catalog = self.in_catalog();
        servers.iter().map(|server| server.id()).filter(|id| !in_catalog.contains(*id)).cloned().collect()
    }

    /// The servers that a call with that source may reach.
    fn usable(&self, source: Option<&str>) -> Vec<Arc<Server>> {
        let servers = self.servers.load();
        let only = source.filter(|id| servers.iter().any(|server| server.id().as_str() == *id));
        let is_usable =
            |server: &&Arc<Server>| server.spec().enabled && only.is_none_or(|id| server.id().as_str() == id);
        servers.iter().filter(is_usable).cloned().collect()
    }

    /// The usable servers without a list.
    fn missing(&self, source: Option<&str>) -> Vec<Arc<Server>> {
        let mut servers = self.usable(source);
        let lists = self.lists();
        servers.retain(|server| lists.get(server.id()).is_none_or(|list| list.listed_at.is_none()));
        servers
    }

    /// Whether every usable server has a list.
    pub(crate) fn all_known(&self) -> bool {
        let (servers, lists) = (self.servers.load(), self.lists());
        // Lists exist only for these servers, so an equal count means that all have one.
        if lists.values().filter(|list| list.listed_at.is_some()).count() == servers.len() {
            return true;
        }
        let is_known =
            |server: &Arc<Server>| lists.get(server.id()).is_some_and(|list| list.listed_at.is_some());
        servers.iter().all(|server| !server.spec().enabled || is_known(server))
    }

    /// The usable servers without a list, by the result of the last attempt.
    fn missing_by_age(&self, source: Option<&str>) -> UnlistedServers {
        let servers = self.missing(source);
        let lists = self.lists();
        let mut missing = UnlistedServers::default();
        for server in servers {
            let list = lists.get(server.id());
            let refused = list.filter(|list| list.failures == 0).and_then(|list| list.failure.as_ref());
            let late_at = list.and_then(|list| list.late_at);
            let used_full_timeout = list.is_some_and(|list| timed_out_fully(&server, list));
            let hung = late_at.filter(|_| used_full_timeout);
            // A call with a timeout below `connect_timeout` does not count against the server.
            let cut_short = !used_full_timeout && list.is_some_and(|list| list.late_after.is_some());
            let failed = !cut_short
                && (server.retry_delay().is_some()
                    || refused.is_some_and(|(at, _)| !older(*at, RETRY_AFTER)));
            match hung {
                Some(at) if !older(at, HUNG_RETRY_AFTER) => missing.hung.push(server),
                _ if failed => missing.failed.push(server),
                _ if late_at.is_some_and(|at| !older(at, RETRY_AFTER)) => missing.late.push(server),
                _ => missing.new.push(server),
            }
        }
        missing
    }

    /// Whether a list is older than its time-to-live and `min_age`.
    fn is_stale(&self, server: &Arc<Server>, min_age: Duration) -> bool {
        let lists = self.lists();
        let Some(list) = lists.get(server.id()) else { return false };
        let tried = list.failure.as_ref().map(|(at, _)| *at).max(list.late_at);
        let tried_lately = tried.is_some_and(|at| !older(at, RETRY_AFTER));
        !tried_lately
            && list.listed_at.is_some_and(|at| older(at, list.ttl.unwrap_or(DEFAULT_LIST_TTL).max(min_age)))
    }

    async fn list_all(&self, servers: Vec<Arc<Server>>, wait: Wait) {
        join_all(servers.iter().map(|server| self.list_within(server, wait))).await;
    }

    /// Lists one server; records it as late on a timeout.
    async fn list_within(&self, server: &Arc<Server>, wait: Wait) {
        let (limit, needed) = match wait {
            Wait::Unlimited => {
                let _ = self.list_one(server).await;
                return;
            }
            Wait::Needed(limit) => (limit, Some(limit)),
            Wait::Optional(limit) => (limit, None),
        };
        if tokio::time::timeout(limit, self.list_one(server)).await.is_err() {
            self.note_late(server, needed).await;
        }
    }

    /// Records that a call stopped waiting for a server; `needed` is how long it waited, if it needed the server.
    async fn note_late(&self, server: &Arc<Server>, needed: Option<Duration>) {
        if !self.servers.is_current(server) {
            return;
        }
        let list = {
            let mut lists = self.lists();
            let list = lists.entry(server.id().clone()).or_insert_with(|| empty_list(server));
            let used_full_timeout = timed_out_fully(server, list);
            // An optional wait does not extend the period in which a server that timed out is not waited for.
            if needed.is_none()
                && used_full_timeout
                && list.late_at.is_some_and(|at| !older(at, HUNG_RETRY_AFTER))
            {
                return;
            }
            list.late_at = Some(SystemTime::now());
            list.late_after = needed.or(list.late_after.filter(|_| !used_full_timeout));
            list.clone()
        };
        self.save_list(server.id(), &list).await;
    }

    pub(crate) async fn list_one(&self, server: &Arc<Server>) -> Result<CachedList, McpError> {
        let counted = self.progress.count(server.id());
        let permit = self.start_permit(server).await;
        counted.start();
        let began = Instant::now();
        let listed = server.list().await;
        drop((permit, counted));
        let elapsed = began.elapsed();
        let hung = listed.is_err() && elapsed >= server.spec().connect_timeout;
        let stored_list = self.store_listing(server, listed).await;
        if hung {
            self.note_late(server, Some(elapsed)).await;
        }
        stored_list
    }

    /// A permit to start a server for a listing: processes that are started all at once delay each other beyond their timeouts.
    /// Permits are granted in FIFO order. Returns `None` if no process has to be started.
    pub(crate) async fn start_permit(&self, server: &Server) -> Option<SemaphorePermit<'_>> {
        let starts = matches!(server.spec().transport, TransportSpec::Stdio(_))
            && !server.is_remote()
            && !server.is_connected_or_connecting();
        if starts { self.starts.acquire().await.ok() } else { None }
    }

    /// Stores the result of listing a server in the catalog and in the store.
    pub(crate) async fn store_listing(
        &self,
        server: &Arc<Server>,
        listed: Result<ServerListing, McpError>,
    ) -> Result<CachedList, McpError> {
        // An open circuit breaker is not another failure.
        if let Err(McpError::CircuitOpen { .. }) = listed {
            return listed.map(|_| empty_list(server));
        }
        if listed.is_ok() && self.stored_list(server, &listed).is_none() {
            // Definitions are about to be compared with the approvals, which may have changed since this hub was built.
            self.reload_approvals().await;
        }
        if let Some(stored_list) = self.stored_list(server, &listed) {
            return Ok(stored_list);
        }
        let before = self.lists().get(server.id()).cloned();
        let list = match &listed {
            Ok(ServerListing { listing, at, era, peer }) => CachedList {
                fingerprint: server.spec().fingerprint(),
                era: era.map(Era::name).unwrap_or_default().to_owned(),
                peer: peer.clone(),
                listed_at: Some(*at),
                ttl: listing.ttl,
                tools: listing.tools.clone(),
                skipped: listing.skipped.clone(),
                failure: None,
                failures: 0,
                late_at: None,
                late_after: None,
            },
            // The previous list is kept, and the failure is recorded with it.
            Err(error) => CachedList {
                failure: Some((SystemTime::now(), error.text())),
                failures: server.failure_history().failures,
                late_at: None,
                late_after: None,
                ..before.unwrap_or_else(|| empty_list(server))
            },
        };
        if !self.servers.is_current(server) {
            // The server was removed or replaced while it was listed.
            return listed.map(|_| list);
        }
        self.lists().insert(server.id().clone(), list.clone());
        self.force_failure_check();
        self.refresh_server(server);
        self.lists_version.send_modify(|count| *count += 1);
        self.save_list(server.id(), &list).await;
        listed.map(|_| list)
    }

    /// The stored list, if this listing is already stored: several callers may have waited for the same listing, and the first
    /// one stores it.
    fn stored_list(&self, server: &Server, listed: &Result<ServerListing, McpError>) -> Option<CachedList> {
        let Ok(ServerListing { at, .. }) = listed else { return None };
        let lists = self.lists();
        lists
            .get(server.id())
            .filter(|stored_list| (stored_list.listed_at, &stored_list.failure) == (Some(*at), &None))
            .cloned()
    }

    /// Deletes the stored data of a server that was removed.
    pub async fn forget_server(&self, id: &str) {
        let id = ServerId::new(id);
        let _ = std::fs::remove_file(self.paths.log_of(id.as_str()));
        let source = Source::Server(id.clone());
        for approval in self.approvals().into_iter().filter(|approval| approval.source == source) {
            if let Err(error) = self.forget_approval(&source, &approval.tool).await {
                self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
            }
        }
        let Some(list) = self.lists().remove(&id) else { return };
        if let Some(store) = &self.store
            && let Err(error) = store.forget(&id, &list.fingerprint).await
        {
            self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
        }
    }
}

/// Whether a call waited for a server for at least `connect_timeout`.
fn timed_out_fully(server: &Server, list: &CachedList) -> bool {
    list.late_after.is_some_and(|elapsed| elapsed >= server.spec().connect_timeout)
}

/// Whether a time is longer ago than `span`. A time in the future, after the clock was set back, counts as old.
fn older(at: SystemTime, span: Duration) -> bool {
    SystemTime::now().duration_since(at).map_or(true, |age| age > span)
}
