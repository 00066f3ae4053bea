//! One after another, in the routing order: the next is tried only if the one before certainly had no effect.

use tokio::time::Instant;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{Effect, Event, EventKind, Source, ToolCall, ToolError, ToolOutput};

use crate::attempt::Attempt;
use crate::engine::Engine;
use crate::router::{Candidate, Route};

/// What came of the candidates.
pub(crate) struct Ran {
    pub(crate) result: Result<ToolOutput, ToolError>,
    pub(crate) source: Option<Source>,
    pub(crate) attempts: Vec<AttemptRecord>,
}

/// Tries the candidates in order.
pub(crate) async fn run(engine: &Engine, call: &ToolCall, route: &Route) -> Ran {
    let mut attempts = Vec::with_capacity(route.candidates.len());
    let mut last_error = ToolError::Internal;
    for candidate in &route.candidates {
        let source = candidate.source().clone();
        let started = Instant::now();
        let result = attempt(engine, call, candidate).await;
        let took = started.elapsed();
        attempts.push(AttemptRecord { source: source.clone(), took, error: result.as_ref().err().cloned() });
        match result {
            Ok(output) => return Ran { result: Ok(output), source: Some(source), attempts },
            Err(error) => {
                let harmless =
                    candidate.entry.tool.hints().read_only == Some(true) || error.effect() == Effect::None;
                last_error = error;
                if !harmless {
                    break;
                }
            }
        }
    }
    Ran { result: Err(last_error), source: None, attempts }
}

async fn attempt(engine: &Engine, call: &ToolCall, candidate: &Candidate) -> Result<ToolOutput, ToolError> {
    let source = candidate.source().clone();
    let emit = |kind| engine.events().emit(Event::now(Some(call.id.clone()), kind));
    let Some(host) = engine.host(&source) else {
        emit(EventKind::Fault { detail: format!("no host for source `{source}`") });
        return Err(ToolError::Internal);
    };
    emit(EventKind::AttemptStarted { source: source.clone() });
    let started = Instant::now();
    let limits = engine.limits_of(&source);
    let attempt = Attempt { host: &*host, tool: &candidate.entry.tool, call, limits };
    let result = attempt.run(engine.events()).await;
    let error = result.as_ref().err().map(ToString::to_string);
    emit(EventKind::AttemptFinished { source, took: started.elapsed(), error });
    result
}
