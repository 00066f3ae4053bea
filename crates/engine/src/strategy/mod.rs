//! The strategies for running several candidates, one file each, and their shared code: trying one candidate, and the
//! combined result.

mod batch;
pub(crate) mod first;
pub(crate) mod merge;
pub(crate) mod race;

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolhub_core::outcome::{AttemptEnd, AttemptRecord, Synthesis};
use toolhub_core::{Event, EventKind, Source, ToolCall, ToolError, ToolOutput};

use crate::attempt::Attempt;
use crate::engine::Engine;
use crate::retry;
use crate::router::Candidate;
use crate::score::Use;

/// The combined result of the candidates.
pub(crate) struct CallResult {
    pub(crate) result: Result<ToolOutput, ToolError>,
    /// The sources of the output.
    pub(crate) sources: Vec<Source>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) merged: Option<Merged>,
    /// When the last attempt ended, if known; saves another clock read.
    pub(crate) ended: Option<Instant>,
}

/// How an output was merged from several.
pub(crate) struct Merged {
    pub(crate) synthesis: Synthesis,
    /// The complete output, if `result` is shortened.
    pub(crate) full_output: Option<ToolOutput>,
}

impl CallResult {
    pub(crate) fn failed(error: ToolError, attempts: Vec<AttemptRecord>) -> Self {
        Self { result: Err(error), sources: Vec::new(), attempts, merged: None, ended: None }
    }

    pub(crate) fn from(candidate: &Candidate, output: ToolOutput, attempts: Vec<AttemptRecord>) -> Self {
        let sources = vec![candidate.source().clone()];
        Self { result: Ok(output), sources, attempts, merged: None, ended: None }
    }
}

/// A running call.
#[derive(Clone, Copy)]
pub(crate) struct RunningCall<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) call: &'a ToolCall,
    pub(crate) started: Instant,
    /// The wall-clock time of `started`.
    pub(crate) at: SystemTime,
}

/// The result of trying one candidate, with all attempts.
pub(crate) struct CandidateResult {
    pub(crate) result: Result<ToolOutput, ToolError>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) ended: Instant,
}

impl RunningCall<'_> {
    fn has_listener(&self) -> bool {
        !self.engine.events().is_disabled()
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        if self.has_listener() {
            self.engine.events().emit(Event::now(Some(self.call.id.clone()), kind));
        }
    }

    /// Remaining time of the caller's own timeout at `now`; `None` if it set none.
    fn remaining_time(&self, now: Instant) -> Option<Duration> {
        self.call.timeout.map(|timeout| timeout.saturating_sub(now - self.started))
    }

    /// Whether there is time for another candidate.
    pub(crate) fn has_time(&self) -> bool {
        self.remaining_time(Instant::now()).is_none_or(|remaining_time| !remaining_time.is_zero())
    }

    /// Whether there is time left after this pause.
    fn has_time_after(&self, pause: Duration, now: Instant) -> bool {
        self.remaining_time(now).is_none_or(|remaining_time| pause < remaining_time)
    }

    /// Tries one candidate at most `max_attempts` times. Retries only if that is safe and the error is transient, within the
    /// caller's own timeout.
    pub(crate) async fn try_candidate(&self, candidate: &Candidate, max_attempts: u32) -> CandidateResult {
        let mut attempts = Vec::with_capacity(1);
        loop {
            let started = Instant::now();
            let (result, ended) = self.run_attempt(candidate, started).await;
            let took = ended - started;
            let (source, tool) = (candidate.source().clone(), candidate.entry.tool.name().clone());
            let end = match &result {
                Ok(_) => AttemptEnd::Succeeded,
                Err(error) => AttemptEnd::Failed(error.clone()),
            };
            attempts.push(AttemptRecord { source, tool, took, end });
            let Err(error) = &result else { return CandidateResult { result, attempts, ended } };
            let tries = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
            let hints = candidate.entry.tool.hints();
            let pause = retry::backoff(error, hints, tries, fastrand::f64()).filter(|_| tries < max_attempts);
            let Some(pause) = pause.filter(|pause| self.has_time_after(*pause, ended)) else {
                return CandidateResult { result, attempts, ended };
            };
            self.emit(EventKind::Retrying { source: candidate.source().clone(), pause });
            // Boxed: retries are rare, and a `Sleep` would enlarge the future of every call.
            Box::pin(tokio::time::sleep(pause)).await;
        }
    }

    /// Runs one attempt. Returns its result and its end.
    async fn run_attempt(
        &self,
        candidate: &Candidate,
        started: Instant,
    ) -> (Result<ToolOutput, ToolError>, Instant) {
        let source = candidate.source();
        let Some((host, deadlines)) = self.engine.host(source) else {
            self.emit(EventKind::InternalError { detail: format!("no host for source `{source}`") });
            return (Err(ToolError::Internal), Instant::now());
        };
        if self.has_listener() {
            self.emit(EventKind::AttemptStarted { source: source.clone() });
        }
        let tool = &candidate.entry.tool;
        let coerced = candidate.coerced.as_ref().map(|coerced| &coerced.arguments);
        let arguments = coerced.unwrap_or(&self.call.arguments);
        // The first try gets the whole timeout: connecting and queueing count against it.
        let timeout = self.remaining_time(started);
        let attempt = Attempt { host: &*host, tool, call: self.call, arguments, timeout, deadlines };
        let result = attempt.run(self.engine, started).await;
        let ended = Instant::now();
        let (took, at) = (ended - started, self.at + (ended - self.started));
        self.engine.scores().note(source, tool.name(), Use { success: result.is_ok(), took, at });
        if self.has_listener() {
            let error = result.as_ref().err().map(ToString::to_string);
            self.emit(EventKind::AttemptFinished { source: source.clone(), took, error });
        }
        (result, ended)
    }
}
