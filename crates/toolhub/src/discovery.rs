//! Which servers must be listed before a call can be routed, and listing them: all at once, none waiting for
//! another, a dead one only now and then, and none for long where somebody else can serve the call.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use tokio::sync::SemaphorePermit;
use toolhub_core::BoxFuture;
use toolhub_core::lang::Text;
use toolhub_core::ports::CachedList;
use toolhub_core::{CallBy, Event, EventKind, RawJson, ServerId, Source, ToolError};
use toolhub_engine::{Request, Route, Strategy};
use toolhub_mcp::config::TransportSpec;
use toolhub_mcp::{Era, Listed, McpError, Offer, Server};

use crate::failures::unknown;
use crate::hub::Hub;
use crate::progress::Progress;

/// A server that answered with an error is not waited for again so soon, nor is one looked at again so soon that a call could
/// do without. How long one is avoided that cannot be connected is the server's own to say.
const LEAVE_ALONE: Duration = Duration::from_secs(60);
/// A list without a time-to-live of its own is taken for fresh this long.
pub(crate) const FRESH: Duration = Duration::from_secs(3600);
/// Where nobody else can help, one that failed of late may delay a call this long.
const COURTESY: Duration = Duration::from_secs(5);
/// A server that was never listed and did not answer within its time is not waited for again so soon where a list can be shown
/// without it.
const HUNG: Duration = Duration::from_secs(3600);
/// Where a candidate is known, those that were never met and come before it may delay a call this long. Many need
/// longer to start; they are listed while the call runs, and known to the next one.
const GLANCE: Duration = Duration::from_secs(1);

/// A list is not requested again sooner than this for a name that no tool has and that says nothing of its server: servers
/// whose lists keep for no time at all would be started for each slip. A call that names the server goes by its own time.
const MIN_RELIST_AGE: Duration = Duration::from_secs(300);

/// Servers whose tools are not known.
#[derive(Default)]
struct Missing {
    /// Those with nothing against them. A call that could do without one tells nothing about it, nor does one that needed it
    /// and had less time than connecting may take: the next call that needs it waits as long as it can.
    new: Vec<Arc<Server>>,
    /// Of these, the ones that a call gave up waiting for a moment ago.
    late: Vec<Arc<Server>>,
    /// Those that failed of late.
    failed: Vec<Arc<Server>>,
    /// Those that did not answer within the time that connecting may take.
    hung: Vec<Arc<Server>>,
}

/// How long a listing is waited for.
#[derive(Clone, Copy)]
enum Wait {
    /// To its end.
    Unlimited,
    /// The call needs the server, and has this long.
    Needed(Duration),
    /// The call can do without the server. That it was not ready says nothing about it.
    Glance(Duration),
}

impl Hub {
    /// Lists whoever was never listed and might serve the call, within what the caller can spare.
    pub(crate) async fn prepare(&self, request: Request<'_>, spare: Option<Duration>) {
        let Missing { mut new, late, failed, hung } = self.missing_by_age(request.source);
        let named = |server: &Arc<Server>| request.source == Some(server.id().as_str());
        if new.is_empty() && late.is_empty() && failed.is_empty() && hung.is_empty() {
            return;
        }
        let at_most = |limit: Duration| spare.map_or(limit, |spare| spare.min(limit));
        let (glance, needed) = (Wait::Glance(at_most(GLANCE)), spare.map_or(Wait::Unlimited, Wait::Needed));
        match self.engine.explain(request) {
            Ok(route) => {
                let in_turn = request.by == CallBy::Name && route.strategy == Strategy::First;
                // Where several are asked side by side, whoever is good for it may be one of them.
                let wanted = if in_turn { self.before(&route, request.tool, new) } else { new };
                self.list_all(wanted, glance).await;
            }
            Err(ToolError::UnknownTool(_) | ToolError::NoneCapable { have: 0, .. }) => {
                // The caller wants that server and no other: whatever happened before, it is tried again.
                if failed.iter().chain(&hung).any(named) {
                    self.ask_for(request.source);
                    tokio::join!(self.list_all(failed, needed), self.list_all(hung, needed));
                    return;
                }
                new.extend(late);
                tokio::join!(
                    self.list_all(new, needed),
                    self.list_all(failed, Wait::Needed(at_most(COURTESY))),
                    self.list_all(hung, glance)
                );
            }
            // Somebody has the tool, and somebody else's may fit better.
            Err(_) => self.list_all(new, glance).await,
        }
    }

    /// Those that come before everybody the route has: they would be asked first, if they had the tool.
    /// No server has a tool of a reserved name, such as `call_tool`.
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

    /// Does something, and goes on listing those that a call gave up waiting for meanwhile. Nobody waits for them: what
    /// is learned before the work is done is kept.
    pub(crate) async fn beside_listings<T>(&self, work: impl Future<Output = T>) -> T {
        let mut late = self.missing(None);
        {
            let lists = self.lists();
            late.retain(|server| lists.get(server.id()).is_some_and(|list| list.late_at.is_some()));
        }
        late.retain(|server| server.is_being_met());
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

    /// Lists again whose list is old; whether there was anybody.
    pub(crate) async fn relist_stale(&self, source: Option<&str>, spare: Option<Duration>) -> bool {
        let mut stale = self.usable(source);
        let named = source.is_some_and(|id| self.servers.contains(id));
        let min_age = if named { Duration::ZERO } else { MIN_RELIST_AGE };
        stale.retain(|server| self.is_stale(server, min_age));
        let any = !stale.is_empty();
        self.list_all(stale, spare.map_or(Wait::Unlimited, Wait::Needed)).await;
        any
    }

    /// Lists every server that was never listed; for those who want to see everything. Servers that failed or hung before are
    /// not waited for long.
    pub fn list_missing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Missing { mut new, late, failed, hung } = self.missing_by_age(None);
            new.extend(late);
            tokio::join!(
                self.list_all(new, Wait::Unlimited),
                self.list_all(failed, Wait::Needed(COURTESY)),
                self.list_all(hung, Wait::Glance(GLANCE))
            );
        })
    }

    /// Lists every server that is not known, whatever happened before. Each has its full time.
    pub(crate) async fn list_still_missing(&self) {
        self.list_all(self.missing(None), Wait::Unlimited).await;
    }

    /// How far the listing of servers has come.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Lists every server again.
    pub async fn list_again(&self) {
        self.list_again_of(None).await;
    }

    /// Lists a server again, or all where none is named. A source that is no server needs no listing.
    pub fn list_again_of<'a>(&'a self, source: Option<&'a str>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut servers = self.usable(None);
            servers.retain(|server| source.is_none_or(|id| server.id().as_str() == id));
            self.list_all(servers, Wait::Unlimited).await;
        })
    }

    /// Connects one server and lists it, whatever is known of it.
    pub fn list_server<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Result<CachedList, ToolError>>> {
        Box::pin(async move {
            let server = self.servers.find(id)?;
            server.ask_for();
            server.forget_era();
            Some(self.list_one(&server).await.map_err(|error| error.into_tool_error(server.id())))
        })
    }

    /// What a server offers beside tools, as it gives it.
    pub async fn offers(&self, id: &str, offer: Offer) -> Option<Result<Vec<RawJson>, ToolError>> {
        let server = self.servers.find(id)?;
        Some(server.offers(offer).await.map_err(|error| error.into_tool_error(server.id())))
    }

    /// The enabled servers whose tools are not known, and why.
    pub(crate) fn unlisted(&self) -> Vec<(Arc<Server>, Text)> {
        let missing = self.missing(None);
        let lists = self.lists();
        let why = |server: Arc<Server>| {
            let trouble = lists.get(server.id()).and_then(CachedList::trouble);
            let cause = match (server.left_alone(), trouble) {
                (Some(left_alone), _) => left_alone.text(),
                (None, Some(trouble)) => trouble,
                (None, None) => Text::new("it has not answered yet", "它尚未回答"),
            };
            (server, cause)
        };
        missing.into_iter().map(why).collect()
    }

    /// The servers a call with that source may reach.
    fn usable(&self, source: Option<&str>) -> Vec<Arc<Server>> {
        let servers = self.servers.load();
        let only = source.filter(|id| servers.iter().any(|server| server.id().as_str() == *id));
        let is_usable =
            |server: &&Arc<Server>| server.spec().enabled && only.is_none_or(|id| server.id().as_str() == id);
        servers.iter().filter(is_usable).cloned().collect()
    }

    /// Those whose tools are not known.
    fn missing(&self, source: Option<&str>) -> Vec<Arc<Server>> {
        let mut servers = self.usable(source);
        let lists = self.lists();
        servers.retain(|server| lists.get(server.id()).is_none_or(|list| list.listed_at.is_none()));
        servers
    }

    /// Whether the tools of every usable server are known.
    pub(crate) fn all_known(&self) -> bool {
        let (servers, lists) = (self.servers.load(), self.lists());
        // There are lists of these servers alone, so as many as there are servers are those of all.
        if lists.values().filter(|list| list.listed_at.is_some()).count() == servers.len() {
            return true;
        }
        let known =
            |server: &Arc<Server>| lists.get(server.id()).is_some_and(|list| list.listed_at.is_some());
        servers.iter().all(|server| !server.spec().enabled || known(server))
    }

    /// The same, by what happened when they were last tried.
    fn missing_by_age(&self, source: Option<&str>) -> Missing {
        let servers = self.missing(source);
        let lists = self.lists();
        let mut missing = Missing::default();
        for server in servers {
            let list = lists.get(server.id());
            let refused = list.filter(|list| list.failures == 0).and_then(|list| list.failure.as_ref());
            let late_at = list.and_then(|list| list.late_at);
            let had_its_time = list.is_some_and(|list| had_its_time(&server, list));
            let hung = late_at.filter(|_| had_its_time);
            // A call that gave up sooner than connecting may take leaves the server its chance.
            let cut_short = !had_its_time && list.is_some_and(|list| list.late_after.is_some());
            let failed = !cut_short
                && (server.avoided_for().is_some()
                    || refused.is_some_and(|(at, _)| !older(*at, LEAVE_ALONE)));
            match hung {
                Some(at) if !older(at, HUNG) => missing.hung.push(server),
                _ if failed => missing.failed.push(server),
                _ if late_at.is_some_and(|at| !older(at, LEAVE_ALONE)) => missing.late.push(server),
                _ => missing.new.push(server),
            }
        }
        missing
    }

    /// Whether a list has kept its time, at least `min_age`.
    fn is_stale(&self, server: &Arc<Server>, min_age: Duration) -> bool {
        let lists = self.lists();
        let Some(list) = lists.get(server.id()) else { return false };
        let tried = list.failure.as_ref().map(|(at, _)| *at).max(list.late_at);
        let tried_lately = tried.is_some_and(|at| !older(at, LEAVE_ALONE));
        !tried_lately && list.listed_at.is_some_and(|at| older(at, list.ttl.unwrap_or(FRESH).max(min_age)))
    }

    async fn list_all(&self, servers: Vec<Arc<Server>>, wait: Wait) {
        join_all(servers.iter().map(|server| self.list_within(server, wait))).await;
    }

    /// Lists one server; one that is not done in time is late.
    async fn list_within(&self, server: &Arc<Server>, wait: Wait) {
        let (limit, needed) = match wait {
            Wait::Unlimited => {
                let _ = self.list_one(server).await;
                return;
            }
            Wait::Needed(limit) => (limit, Some(limit)),
            Wait::Glance(limit) => (limit, None),
        };
        if tokio::time::timeout(limit, self.list_one(server)).await.is_err() {
            self.note_late(server, needed).await;
        }
    }

    /// Notes that a call did not wait until a server was listed; `needed` is how long one did that needed it.
    async fn note_late(&self, server: &Arc<Server>, needed: Option<Duration>) {
        if !self.servers.is_current(server) {
            return;
        }
        let list = {
            let mut lists = self.lists();
            let list = lists.entry(server.id().clone()).or_insert_with(|| unknown(server));
            let had_its_time = had_its_time(server, list);
            // A glance does not prolong the time for which a server that hung is not waited for.
            if needed.is_none() && had_its_time && list.late_at.is_some_and(|at| !older(at, HUNG)) {
                return;
            }
            list.late_at = Some(SystemTime::now());
            list.late_after = needed.or(list.late_after.filter(|_| !had_its_time));
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
        let waited = began.elapsed();
        let hung = listed.is_err() && waited >= server.spec().connect_timeout;
        let kept = self.keep_listing(server, listed).await;
        if hung {
            self.note_late(server, Some(waited)).await;
        }
        kept
    }

    /// A permit to start a server for a listing: programs that start all at once keep each other from starting in time.
    /// Whoever waits is served in order. `None` if no program has to be started.
    pub(crate) async fn start_permit(&self, server: &Server) -> Option<SemaphorePermit<'_>> {
        let starts = matches!(server.spec().transport, TransportSpec::Stdio(_)) && !server.is_being_met();
        if starts { self.starts.acquire().await.ok() } else { None }
    }

    /// Keeps what came of listing a server, in the catalog and in the store.
    pub(crate) async fn keep_listing(
        &self,
        server: &Arc<Server>,
        listed: Result<Listed, McpError>,
    ) -> Result<CachedList, McpError> {
        // Not to have been tried is no failure.
        if let Err(McpError::LeftAlone { .. }) = listed {
            return listed.map(|_| unknown(server));
        }
        if listed.is_ok() && self.kept(server, &listed).is_none() {
            // Definitions are about to be held to what was approved, perhaps after this hub began.
            self.reload_approvals().await;
        }
        if let Some(kept) = self.kept(server, &listed) {
            return Ok(kept);
        }
        let before = self.lists().get(server.id()).cloned();
        let list = match &listed {
            Ok(Listed { listing, at, era, peer }) => CachedList {
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
            // What was known stays; that it could not be had again is remembered beside it.
            Err(error) => CachedList {
                failure: Some((SystemTime::now(), error.text())),
                failures: server.past().failures,
                late_at: None,
                late_after: None,
                ..before.unwrap_or_else(|| unknown(server))
            },
        };
        if !self.servers.is_current(server) {
            // It was removed or replaced while it was listed.
            return listed.map(|_| list);
        }
        self.lists().insert(server.id().clone(), list.clone());
        self.look_for_news();
        self.refresh_server(server);
        self.lists_kept.send_modify(|count| *count += 1);
        self.save_list(server.id(), &list).await;
        listed.map(|_| list)
    }

    /// The list that came of a listing, where it is kept already: many may have waited for the same one, and the first
    /// of them keeps it.
    fn kept(&self, server: &Server, listed: &Result<Listed, McpError>) -> Option<CachedList> {
        let Ok(Listed { at, .. }) = listed else { return None };
        let lists = self.lists();
        lists.get(server.id()).filter(|kept| (kept.listed_at, &kept.failure) == (Some(*at), &None)).cloned()
    }

    /// Forgets what is known of a server that was removed.
    pub async fn forget_server(&self, id: &str) {
        let id = ServerId::new(id);
        let _ = std::fs::remove_file(self.places.log_of(id.as_str()));
        let source = Source::Server(id.clone());
        for approval in self.approvals().into_iter().filter(|approval| approval.source == source) {
            if let Err(error) = self.revoke(&source, &approval.tool).await {
                self.events.emit(Event::now(None, EventKind::Fault { detail: error.to_string() }));
            }
        }
        let Some(list) = self.lists().remove(&id) else { return };
        if let Some(store) = &self.store
            && let Err(error) = store.forget(&id, &list.fingerprint).await
        {
            self.events.emit(Event::now(None, EventKind::Fault { detail: error.to_string() }));
        }
    }
}

/// Whether a call waited for a server, in vain, as long as connecting may take.
fn had_its_time(server: &Server, list: &CachedList) -> bool {
    list.late_after.is_some_and(|waited| waited >= server.spec().connect_timeout)
}

/// Whether a moment is longer ago than `span`; one in the future, after a clock was set back, counts as old.
fn older(at: SystemTime, span: Duration) -> bool {
    SystemTime::now().duration_since(at).map_or(true, |age| age > span)
}
