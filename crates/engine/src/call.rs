//! Runs a call from its request to its outcome, on the registered tool hosts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::SystemTime;

use tokio::time::Instant;
use toolhub_core::{CallBy, Event, EventKind, Outcome, ToolCall};

use crate::engine::Engine;
use crate::record::CallRecorder;
use crate::router::{Route, RouteRequest, Strategy};
use crate::strategy::first::{self, NextCandidate};
use crate::strategy::{CallResult, RunningCall, merge, race};

impl Engine {
    /// Runs a call. Dropping the future cancels it.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        self.run_call(&call).await
    }

    /// Runs a call by reference. Dropping the future cancels it.
    pub async fn run_call(&self, call: &ToolCall) -> Outcome {
        let started = Instant::now();
        let has_listener = !self.events().is_disabled();
        let emit = |kind| {
            if has_listener {
                self.events().emit(Event::now(Some(call.id.clone()), kind));
            }
        };
        emit(EventKind::CallStarted { tool: call.tool.clone(), parent: call.parent.clone() });
        let route = self.route(RouteRequest {
            tool: call.tool.as_str(),
            by: call.by,
            source: call.source.as_deref(),
            arguments: Some(&call.arguments),
            coercion: call.coercion,
            sources: call.sources.as_deref(),
            seed: if call.by == CallBy::Capability { seed(call) } else { 0 },
            with_reasons: has_listener,
        });
        let at = SystemTime::now();
        let mut record = CallRecorder::new(call, at, route.as_ref().ok(), self);
        let ran = match &route {
            Err(error) => CallResult::failed(error.clone(), Vec::new()),
            Ok(route) => {
                if has_listener {
                    let sources = route.candidates.iter().map(|candidate| candidate.source().clone());
                    emit(EventKind::Routed {
                        candidates: sources.collect(),
                        strategy: route.strategy.name(),
                        reasons: route.reasons.clone(),
                    });
                }
                match record.begin().await {
                    Err(error) => CallResult::failed(error, Vec::new()),
                    Ok(()) => self.run(RunningCall { engine: self, call, started, at }, route).await,
                }
            }
        };
        let took = ran.ended.unwrap_or_else(Instant::now).saturating_duration_since(started);
        record.write_end(&ran, took).await;
        let outcome = record.finish(ran, took);
        emit(EventKind::CallFinished { success: outcome.success(), took });
        outcome
    }

    async fn run(&self, run: RunningCall<'_>, route: &Route) -> CallResult {
        match route.strategy {
            Strategy::First => {
                first::run(run, route.candidates.iter().map(NextCandidate::first), Vec::new()).await
            }
            // Rare and large futures: boxed so that they do not enlarge the future of every call.
            Strategy::Race => Box::pin(race::run(run, route)).await,
            Strategy::Merge => Box::pin(merge::run(run, route)).await,
        }
    }
}

/// Seed for shuffling equally ranked candidates. It differs between calls and is stable for one call id.
fn seed(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.id.hash(&mut hasher);
    hasher.finish() % 1_000_000
}
