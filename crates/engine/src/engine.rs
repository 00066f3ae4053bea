//! The engine: the catalog, the tool hosts and the routing state of one process.

use std::sync::Arc;

use arc_swap::ArcSwap;
use toolhub_core::call_log::CallLog;
use toolhub_core::ports::Synthesizer;
use toolhub_core::{EventSink, FastMap, ServerId, Source, Tool, ToolError, ToolHost};

use crate::catalog::{Catalog, CatalogCell};
use crate::deadline_timer::DeadlineTimers;
use crate::deadlines::Deadlines;
use crate::reserved::ReservedNames;
use crate::router::{Route, RouteRequest, RoutingContext, RoutingPolicy, route};
use crate::score::Scores;
use crate::tags::Tagger;

/// The catalog, the hosts and the routing state of one process; runs tool calls.
pub struct Engine {
    catalog: CatalogCell,
    hosts: ArcSwap<FastMap<Source, Hosted>>,
    policy: ArcSwap<RoutingPolicy>,
    reserved: ArcSwap<ReservedNames>,
    scores: Scores,
    timers: DeadlineTimers,
    events: Arc<dyn EventSink>,
    log: Option<Arc<dyn CallLog>>,
    synthesizer: Option<Arc<dyn Synthesizer>>,
}

#[derive(Clone)]
struct Hosted {
    host: Arc<dyn ToolHost>,
    deadlines: Deadlines,
}

fn reserved_for<'a>(servers: impl IntoIterator<Item = &'a ServerId>) -> ReservedNames {
    ReservedNames::new(servers.into_iter().map(ServerId::as_str))
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("tools", &self.catalog().len())
            .field("policy", &self.policy())
            .finish()
    }
}

impl Engine {
    /// Creates an engine without tools and without a call log.
    pub fn new(policy: RoutingPolicy, events: Arc<dyn EventSink>) -> Self {
        Self {
            catalog: CatalogCell::default(),
            hosts: ArcSwap::default(),
            reserved: ArcSwap::from_pointee(reserved_for(&policy.servers)),
            policy: ArcSwap::from_pointee(policy),
            scores: Scores::default(),
            timers: DeadlineTimers::default(),
            events,
            log: None,
            synthesizer: None,
        }
    }

    /// Sets the tagger that assigns capabilities to tools. Must be called before any tools are set.
    #[must_use]
    pub fn with_tagger(mut self, tagger: Tagger) -> Self {
        self.catalog = CatalogCell::new(tagger);
        self
    }

    /// Reserves the name prefixes of these servers too. Must be called before any tools are set.
    #[must_use]
    pub fn with_reserved_servers<'a>(self, servers: impl IntoIterator<Item = &'a ServerId>) -> Self {
        self.set_reserved(servers);
        self
    }

    /// Replaces the servers whose prefixes are reserved. Tools already in the catalog keep their names until they are
    /// set again.
    pub fn set_reserved<'a>(&self, servers: impl IntoIterator<Item = &'a ServerId>) {
        self.reserved.store(Arc::new(reserved_for(servers)));
    }

    /// Replaces the routing policy. Running calls keep the policy they started with.
    pub fn set_policy(&self, policy: RoutingPolicy) {
        self.policy.store(Arc::new(policy));
    }

    /// The names that tool definitions must not use.
    pub fn reserved(&self) -> Arc<ReservedNames> {
        self.reserved.load_full()
    }

    /// Records calls in `log`.
    #[must_use]
    pub fn with_call_log(mut self, log: Arc<dyn CallLog>) -> Self {
        self.log = Some(log);
        self
    }

    /// Sets the synthesizer that merges the texts of several sources.
    #[must_use]
    pub fn with_synthesizer(mut self, synthesizer: Arc<dyn Synthesizer>) -> Self {
        self.synthesizer = Some(synthesizer);
        self
    }

    /// Adds the host of a source. Its tools are set separately with `set_tools`.
    pub fn add_host(&self, host: &Arc<dyn ToolHost>, deadlines: Deadlines) {
        self.hosts.rcu(|hosts| {
            let mut hosts = FastMap::clone(hosts);
            hosts.insert(host.source(), Hosted { host: Arc::clone(host), deadlines });
            hosts
        });
    }

    /// Replaces the deadlines of every source. Running calls keep theirs.
    pub fn set_deadlines(&self, of: impl Fn(&Source) -> Deadlines) {
        self.hosts.rcu(|hosts| {
            let mut hosts = FastMap::clone(hosts);
            for (source, hosted) in &mut hosts {
                hosted.deadlines = of(source);
            }
            hosts
        });
    }

    /// Removes the host of a source and its tools. Running calls keep the host until they end.
    pub fn remove_host(&self, source: &Source) {
        self.set_tools(source, &[]);
        self.hosts.rcu(|hosts| {
            let mut hosts = FastMap::clone(hosts);
            hosts.remove(source);
            hosts
        });
    }

    /// Replaces the tools of one source.
    pub fn set_tools(&self, source: &Source, tools: &[Tool]) {
        self.catalog.replace_source(source, &self.reserved.load().apply(source, tools));
    }

    /// The current catalog snapshot.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.snapshot()
    }

    /// The current routing policy.
    pub fn policy(&self) -> Arc<RoutingPolicy> {
        self.policy.load_full()
    }

    /// Success and latency scores of the tools.
    pub fn scores(&self) -> &Scores {
        &self.scores
    }

    /// The event sink.
    pub fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    pub(crate) fn log(&self) -> Option<&dyn CallLog> {
        self.log.as_deref()
    }

    pub(crate) fn timers(&self) -> &DeadlineTimers {
        &self.timers
    }

    pub(crate) fn synthesizer(&self) -> Option<&dyn Synthesizer> {
        self.synthesizer.as_deref()
    }

    pub(crate) fn host(&self, source: &Source) -> Option<(Arc<dyn ToolHost>, Deadlines)> {
        self.hosts.load().get(source).map(|hosted| (Arc::clone(&hosted.host), hosted.deadlines))
    }

    /// The route of a call: candidates in order, and how they run. Runs nothing.
    pub fn route(&self, request: RouteRequest<'_>) -> Result<Route, ToolError> {
        let (catalog, policy) = (self.catalog(), self.policy.load());
        route(request, RoutingContext { catalog: &catalog, policy: &policy, scores: &self.scores })
    }
}
