//! Which servers must be listed before a call can be routed, and listing them: all at once, none waiting for
//! another, and a dead one only now and then.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use toolhub_core::lang::Text;
use toolhub_core::ports::CachedList;
use toolhub_core::{CallBy, Event, EventKind, RawJson, ServerId, ToolError};
use toolhub_mcp::{Listed, McpError, Offer, Server};

use crate::hub::Hub;

/// A server that could not be listed is left alone this long, unless nobody else can help.
const LEAVE_ALONE: Duration = Duration::from_secs(60);
/// A list without a time-to-live of its own is taken for fresh this long.
pub(crate) const FRESH: Duration = Duration::from_secs(3600);
/// With a candidate known already, servers that were never met may delay a call this long.
const COURTESY: Duration = Duration::from_secs(5);

impl Hub {
    /// Lists whoever was never listed and might serve the call, within what the caller can spare.
    pub(crate) async fn prepare(
        &self,
        (by, tool): (CallBy, &str),
        source: Option<&str>,
        spare: Option<Duration>,
    ) {
        let (mut new, failed) = self.missing_by_age(source);
        // What came with a project is started only by name, until it was once.
        new.retain(|server| !server.spec().from_project || source == Some(server.id().as_str()));
        let known = match by {
            CallBy::Name => self.catalog().named(tool).next().is_some(),
            CallBy::Capability => self.catalog().tagged(tool).next().is_some(),
        };
        let within = |patience: Option<Duration>| [patience, spare].into_iter().flatten().min();
        if known {
            self.list_all(new, within(Some(COURTESY))).await;
        } else if source.is_some_and(|id| failed.iter().any(|server| server.id().as_str() == id)) {
            // The caller wants that server and no other: whatever happened before, it is tried again.
            self.list_all(failed, spare).await;
        } else {
            tokio::join!(self.list_all(new, spare), self.list_all(failed, within(Some(COURTESY))));
        }
    }

    /// Lists again whose list is old; whether there was anybody.
    pub(crate) async fn relist_stale(&self, source: Option<&str>, spare: Option<Duration>) -> bool {
        let stale: Vec<_> = self.usable(source).filter(|server| self.is_stale(server)).cloned().collect();
        let any = !stale.is_empty();
        self.list_all(stale, spare).await;
        any
    }

    /// Lists every server that was never listed; for those who want to see everything.
    pub async fn list_missing(&self) {
        let (mut new, failed) = self.missing_by_age(None);
        new.retain(|server| !server.spec().from_project);
        tokio::join!(self.list_all(new, None), self.list_all(failed, Some(COURTESY)));
    }

    /// Lists every server again.
    pub async fn list_again(&self) {
        self.list_all(self.usable(None).cloned().collect(), None).await;
    }

    /// Connects one server and lists it, whatever is known of it.
    pub async fn list_server(&self, id: &str) -> Option<Result<CachedList, ToolError>> {
        let server = self.servers.iter().find(|server| server.id().as_str() == id)?;
        server.forgive();
        Some(self.list_one(server).await.map_err(|error| error.into_tool_error(server.id())))
    }

    /// What a server offers beside tools, as it gives it.
    pub async fn offers(&self, id: &str, offer: Offer) -> Option<Result<Vec<RawJson>, ToolError>> {
        let server = self.servers.iter().find(|server| server.id().as_str() == id)?;
        Some(server.offers(offer).await.map_err(|error| error.into_tool_error(server.id())))
    }

    /// The enabled servers whose tools are not known, and why.
    pub(crate) fn unlisted(&self) -> Vec<(Arc<Server>, Text)> {
        let missing = self.missing(None);
        let lists = self.lists();
        let why = |server: Arc<Server>| {
            let failure = lists.get(server.id()).and_then(|list| list.failure.as_ref());
            let cause = match failure {
                Some((_, why)) => why.clone(),
                None if server.spec().from_project => untried(&server),
                None => Text::new("it has not answered yet", "它尚未回答"),
            };
            (server, cause)
        };
        missing.into_iter().map(why).collect()
    }

    /// The servers a call with that source may reach.
    fn usable(&self, source: Option<&str>) -> impl Iterator<Item = &Arc<Server>> {
        let only = source.filter(|id| self.servers.iter().any(|server| server.id().as_str() == *id));
        let only = only.map(str::to_owned);
        self.servers.iter().filter(move |server| {
            server.spec().enabled && only.as_deref().is_none_or(|id| server.id().as_str() == id)
        })
    }

    /// Those whose tools are not known.
    fn missing(&self, source: Option<&str>) -> Vec<Arc<Server>> {
        let lists = self.lists();
        let known =
            |server: &Arc<Server>| lists.get(server.id()).is_some_and(|list| list.listed_at.is_some());
        self.usable(source).filter(|server| !known(server)).cloned().collect()
    }

    /// The same, those that failed of late apart.
    fn missing_by_age(&self, source: Option<&str>) -> (Vec<Arc<Server>>, Vec<Arc<Server>>) {
        let missing = self.missing(source);
        let lists = self.lists();
        missing.into_iter().partition(|server| {
            let failure = lists.get(server.id()).and_then(|list| list.failure.as_ref());
            failure.is_none_or(|(at, _)| older(*at, LEAVE_ALONE))
        })
    }

    fn is_stale(&self, server: &Arc<Server>) -> bool {
        let lists = self.lists();
        let Some(list) = lists.get(server.id()) else { return false };
        let failed_lately = list.failure.as_ref().is_some_and(|(at, _)| !older(*at, LEAVE_ALONE));
        !failed_lately && list.listed_at.is_some_and(|at| older(at, list.ttl.unwrap_or(FRESH)))
    }

    async fn list_all(&self, servers: Vec<Arc<Server>>, patience: Option<Duration>) {
        join_all(servers.iter().map(|server| self.list_within(server, patience))).await;
    }

    /// Lists one server; one that is not done in time has failed, and so is left alone for a while.
    async fn list_within(&self, server: &Arc<Server>, patience: Option<Duration>) {
        let Some(patience) = patience else {
            let _ = self.list_one(server).await;
            return;
        };
        if tokio::time::timeout(patience, self.list_one(server)).await.is_err() {
            let late = Err(McpError::TimedOut(patience));
            let _ = self.keep_listing(server, late).await;
        }
    }

    pub(crate) async fn list_one(&self, server: &Arc<Server>) -> Result<CachedList, McpError> {
        let listed = server.list().await;
        self.keep_listing(server, listed).await
    }

    /// Keeps what came of listing a server, in the catalog and in the store.
    pub(crate) async fn keep_listing(
        &self,
        server: &Arc<Server>,
        listed: Result<Listed, McpError>,
    ) -> Result<CachedList, McpError> {
        // Definitions are about to be held to what was approved, which may have been since this hub began.
        if listed.is_ok() {
            self.reload_approvals().await;
        }
        let before = self.lists().get(server.id()).cloned();
        // Many may have waited for the same listing: the first of them keeps it.
        if let (Ok(Listed { at, .. }), Some(kept)) = (&listed, &before)
            && (kept.listed_at, &kept.failure) == (Some(*at), &None)
        {
            return Ok(kept.clone());
        }
        let list = match &listed {
            Ok(Listed { listing, at, era, peer }) => CachedList {
                fingerprint: server.spec().fingerprint(),
                era: era.name().to_owned(),
                peer: peer.clone(),
                listed_at: Some(*at),
                ttl: listing.ttl,
                tools: listing.tools.clone(),
                skipped: listing.skipped.clone(),
                failure: None,
            },
            // What was known stays; that it could not be had again is remembered beside it.
            Err(error) => CachedList {
                failure: Some((SystemTime::now(), error.text())),
                ..before.unwrap_or_else(|| unknown(server))
            },
        };
        self.lists().insert(server.id().clone(), list.clone());
        self.refresh_server(server);
        self.lists_kept.send_modify(|count| *count += 1);
        if let Some(store) = &self.store
            && let Err(error) = store.save(server.id(), &list).await
        {
            self.events.emit(Event::now(None, EventKind::Fault { detail: error.to_string() }));
        }
        listed.map(|_| list)
    }

    /// Forgets what is known of a server that was removed.
    pub async fn forget_server(&self, id: &str) {
        let id = ServerId::new(id);
        let Some(list) = self.lists().remove(&id) else { return };
        if let Some(store) = &self.store
            && let Err(error) = store.forget(&id, &list.fingerprint).await
        {
            self.events.emit(Event::now(None, EventKind::Fault { detail: error.to_string() }));
        }
    }
}

fn untried(server: &Server) -> Text {
    let (id, file) = (server.id(), server.spec().origin.display());
    Text::new(
        format!(
            "it comes from `{file}` and was never started; if you trust it, run `toolhub servers test {id}`"
        ),
        format!("它来自 `{file}`，从未启动过；如果信任它，请运行 `toolhub servers test {id}`"),
    )
}

fn unknown(server: &Server) -> CachedList {
    CachedList {
        fingerprint: server.spec().fingerprint(),
        era: String::new(),
        peer: String::new(),
        listed_at: None,
        ttl: None,
        tools: Vec::new(),
        skipped: Vec::new(),
        failure: None,
    }
}

/// Whether a moment is longer ago than `span`; one in the future, after a clock was set back, counts as old.
fn older(at: SystemTime, span: Duration) -> bool {
    SystemTime::now().duration_since(at).map_or(true, |age| age > span)
}
