//! The engine: one call from its request to its outcome, over whatever hosts it was given.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::time::Instant;
use toolhub_core::{Event, EventKind, EventSink, Outcome, Source, Tool, ToolCall, ToolError, ToolHost};

use crate::attempt::Limits;
use crate::catalog::{Catalog, CatalogCell};
use crate::router::{Policy, Request, Route, Strategy, route};
use crate::strategy::first::{self, Ran};

/// Finds tools and runs them.
pub struct Engine {
    catalog: CatalogCell,
    hosts: ArcSwap<HashMap<Source, Hosted>>,
    policy: Policy,
    events: Arc<dyn EventSink>,
}

#[derive(Clone)]
struct Hosted {
    host: Arc<dyn ToolHost>,
    limits: Limits,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("tools", &self.catalog().len()).field("policy", &self.policy).finish()
    }
}

impl Engine {
    /// An engine without tools.
    pub fn new(policy: Policy, events: Arc<dyn EventSink>) -> Self {
        Self { catalog: CatalogCell::default(), hosts: ArcSwap::default(), policy, events }
    }

    /// Adds the host of a source; its tools are set apart from that.
    pub fn add_host(&self, host: &Arc<dyn ToolHost>, limits: Limits) {
        self.hosts.rcu(|hosts| {
            let mut hosts = HashMap::clone(hosts);
            hosts.insert(host.source(), Hosted { host: Arc::clone(host), limits });
            hosts
        });
    }

    /// Replaces the tools of one source.
    pub fn set_tools(&self, source: &Source, tools: &[Tool]) {
        self.catalog.replace_source(source, tools);
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.snapshot()
    }

    /// In which order sources are tried.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Who listens.
    pub fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    pub(crate) fn host(&self, source: &Source) -> Option<Arc<dyn ToolHost>> {
        self.hosts.load().get(source).map(|hosted| Arc::clone(&hosted.host))
    }

    pub(crate) fn limits_of(&self, source: &Source) -> Limits {
        self.hosts.load().get(source).map(|hosted| hosted.limits).unwrap_or_default()
    }

    /// Decides who would serve a call, and runs nothing.
    pub fn explain(&self, request: Request<'_>) -> Result<Route, ToolError> {
        route(request, &self.catalog(), &self.policy)
    }

    /// Runs a call. Dropping the future cancels it.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        let started = Instant::now();
        let emit = |kind| self.events.emit(Event::now(Some(call.id.clone()), kind));
        emit(EventKind::CallStarted { tool: call.tool.clone() });
        let request = Request {
            tool: call.tool.as_str(),
            source: call.source.as_deref(),
            arguments: Some(&call.arguments),
        };
        let ran = match self.explain(request) {
            Err(error) => Ran { result: Err(error), source: None, attempts: Vec::new() },
            Ok(route) => {
                emit(EventKind::Routed {
                    candidates: route.candidates.iter().map(|candidate| candidate.source().clone()).collect(),
                    strategy: route.strategy.name(),
                    reasons: route.reasons.clone(),
                });
                match route.strategy {
                    Strategy::First => first::run(self, &call, &route).await,
                }
            }
        };
        let took = started.elapsed();
        emit(EventKind::CallFinished { success: ran.result.is_ok(), took });
        Outcome {
            call_id: call.id,
            tool: call.tool,
            result: ran.result,
            source: ran.source,
            attempts: ran.attempts,
            took,
        }
    }
}
