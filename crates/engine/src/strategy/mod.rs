//! How several candidates are run, one file per strategy; and what they share: trying one candidate, and what came
//! of all of them.

mod batch;
pub(crate) mod first;
pub(crate) mod merge;
pub(crate) mod race;

use std::time::Duration;

use tokio::time::Instant;
use toolhub_core::outcome::{AttemptEnd, AttemptRecord, Synthesis};
use toolhub_core::{Event, EventKind, Source, ToolCall, ToolError, ToolOutput};

use crate::attempt::Attempt;
use crate::engine::Engine;
use crate::retry;
use crate::router::Candidate;

/// What came of the candidates.
pub(crate) struct Ran {
    pub(crate) result: Result<ToolOutput, ToolError>,
    /// Where the output came from.
    pub(crate) sources: Vec<Source>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) merged: Option<Merged>,
}

/// How an output was made of several.
pub(crate) struct Merged {
    pub(crate) synthesis: Synthesis,
    /// Everything, where the output is less.
    pub(crate) whole: Option<ToolOutput>,
}

impl Ran {
    pub(crate) fn failed(error: ToolError, attempts: Vec<AttemptRecord>) -> Self {
        Self { result: Err(error), sources: Vec::new(), attempts, merged: None }
    }

    pub(crate) fn from(candidate: &Candidate, output: ToolOutput, attempts: Vec<AttemptRecord>) -> Self {
        Self { result: Ok(output), sources: vec![candidate.source().clone()], attempts, merged: None }
    }
}

/// One call under way.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) call: &'a ToolCall,
    pub(crate) started: Instant,
}

/// One candidate, tried once or more.
pub(crate) struct Tried {
    pub(crate) result: Result<ToolOutput, ToolError>,
    pub(crate) attempts: Vec<AttemptRecord>,
}

impl Run<'_> {
    pub(crate) fn emit(&self, kind: EventKind) {
        if self.engine.events().is_deaf() {
            return;
        }
        self.engine.events().emit(Event::now(Some(self.call.id.clone()), kind));
    }

    /// What is left of the caller's own limit; `None` where there is none.
    fn left(&self) -> Option<Duration> {
        self.call.timeout.map(|timeout| timeout.saturating_sub(self.started.elapsed()))
    }

    /// Whether there is time for another candidate.
    pub(crate) fn has_time(&self) -> bool {
        self.left().is_none_or(|left| !left.is_zero())
    }

    /// Tries one candidate at most `most` times, again where that is safe and of use, within the caller's own limit.
    pub(crate) async fn candidate(&self, candidate: &Candidate, most: u32) -> Tried {
        let mut attempts = Vec::with_capacity(1);
        loop {
            let started = Instant::now();
            // The whole limit for the first try: connecting and waiting have been counted by nobody yet.
            let left = self.left();
            let result = self.attempt(candidate, left).await;
            let (source, tool) = (candidate.source().clone(), candidate.entry.tool.name().clone());
            let end = match &result {
                Ok(_) => AttemptEnd::Succeeded,
                Err(error) => AttemptEnd::Failed(error.clone()),
            };
            attempts.push(AttemptRecord { source: source.clone(), tool, took: started.elapsed(), end });
            let Err(error) = &result else { return Tried { result, attempts } };
            let tries = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
            let hints = candidate.entry.tool.hints();
            let pause = retry::pause(error, hints, tries, fastrand::f64()).filter(|_| tries < most);
            let Some(pause) = pause.filter(|pause| self.left().is_none_or(|left| *pause < left)) else {
                return Tried { result, attempts };
            };
            self.emit(EventKind::Retrying { source, pause });
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, candidate: &Candidate, left: Option<Duration>) -> Result<ToolOutput, ToolError> {
        let source = candidate.source().clone();
        let Some((host, deadlines)) = self.engine.host(&source) else {
            self.emit(EventKind::Fault { detail: format!("no host for source `{source}`") });
            return Err(ToolError::Internal);
        };
        self.emit(EventKind::AttemptStarted { source: source.clone() });
        let started = Instant::now();
        let tool = &candidate.entry.tool;
        let mended = candidate.mended.as_ref().map(|mended| &mended.arguments);
        let arguments = mended.unwrap_or(&self.call.arguments);
        let attempt = Attempt { host: &*host, tool, call: self.call, arguments, timeout: left, deadlines };
        let result = attempt.run(self.engine.events()).await;
        let took = started.elapsed();
        self.engine.scores().count((&source, tool.name()), result.is_ok(), took);
        let error = result.as_ref().err().map(ToString::to_string);
        self.emit(EventKind::AttemptFinished { source, took, error });
        result
    }
}
