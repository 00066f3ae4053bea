//! One after another, in the routing order: the next is tried only if the one before certainly had no effect.

use std::time::Duration;

use tokio::time::Instant;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{Effect, Event, EventKind, Source, ToolCall, ToolError, ToolOutput};

use crate::attempt::Attempt;
use crate::engine::Engine;
use crate::retry::{self, MAX_TRIES};
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
    for (place, candidate) in route.candidates.iter().enumerate() {
        // With somebody else to ask, a server that cannot be reached is not waited for.
        let tries = if place + 1 == route.candidates.len() { MAX_TRIES } else { 1 };
        match try_candidate(engine, call, candidate, (tries, &mut attempts)).await {
            Ok(output) => {
                return Ran { result: Ok(output), source: Some(candidate.source().clone()), attempts };
            }
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

/// Tries one candidate, again where that is safe and of use, within the caller's own limit.
async fn try_candidate(
    engine: &Engine,
    call: &ToolCall,
    candidate: &Candidate,
    (most, attempts): (u32, &mut Vec<AttemptRecord>),
) -> Result<ToolOutput, ToolError> {
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        tries += 1;
        let spent = if tries == 1 { Duration::ZERO } else { begun.elapsed() };
        let left = call.timeout.map(|timeout| timeout.saturating_sub(spent));
        let call = ToolCall { timeout: left, ..call.clone() };
        let started = Instant::now();
        let result = attempt(engine, &call, candidate).await;
        let (source, error) = (candidate.source().clone(), result.as_ref().err().cloned());
        attempts.push(AttemptRecord { source: source.clone(), took: started.elapsed(), error });
        let Err(error) = result else { return result };
        let hints = candidate.entry.tool.hints();
        let pause = retry::pause(&error, hints, tries, fastrand::f64()).filter(|_| tries < most);
        let Some(pause) = pause.filter(|pause| left.is_none_or(|left| *pause < left)) else {
            return Err(error);
        };
        engine.events().emit(Event::now(Some(call.id.clone()), EventKind::Retrying { source, pause }));
        tokio::time::sleep(pause).await;
    }
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
