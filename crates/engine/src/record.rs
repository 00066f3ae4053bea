//! Writing a call down: before it runs where it may change something, after it in any case. Where the first cannot be
//! done, the call is not run.

use std::time::{Duration, SystemTime};

use toolhub_core::lang::{Lang, Text};
use toolhub_core::memory::{AttemptNote, AttemptStatus, CallEnd, CallLog, CallStart, RecordId, Status};
use toolhub_core::outcome::{AttemptEnd, AttemptRecord};
use toolhub_core::{Event, EventKind, EventSink, Outcome, Say as _, ToolCall, ToolError};

use crate::router::Route;
use crate::strategy::Ran;

/// One call, being written down.
pub(crate) struct Record<'a> {
    call: &'a ToolCall,
    log: Option<&'a dyn CallLog>,
    events: &'a dyn EventSink,
    start: CallStart,
    /// What was mended in the arguments.
    repaired: Vec<Text>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is written yet.
    New,
    /// That it began is written; that it ended must be.
    Begun,
    /// All is written.
    Done,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        call: &'a ToolCall,
        route: Option<&Route>,
        log: Option<&'a dyn CallLog>,
        events: &'a dyn EventSink,
    ) -> Self {
        let candidates = route.map(|route| &route.candidates[..]).unwrap_or_default();
        let mended = candidates.first().and_then(|first| first.mended.as_ref());
        let start = CallStart {
            record: RecordId::fresh(),
            call: call.id.clone(),
            tool: call.tool.clone(),
            // What is sent is what is remembered.
            arguments: mended.map_or(&call.arguments, |mended| &mended.arguments).clone(),
            conversation: call.conversation.as_deref().map(str::to_owned),
            request: call.request.clone(),
            strategy: route.map(|route| route.strategy.name()).unwrap_or_default().to_owned(),
            candidates: candidates.iter().map(|candidate| candidate.source().clone()).collect(),
            may_change: route.is_some_and(Route::may_change),
            at: SystemTime::now(),
        };
        let repaired = mended.map(|mended| mended.notes.clone()).unwrap_or_default();
        Self { call, log, events, start, repaired, state: State::New }
    }

    /// Writes that the call begins, where it may change something, and waits until that is safe.
    pub(crate) async fn begin(&mut self) -> Result<(), ToolError> {
        let Some(log) = self.log.filter(|_| self.start.may_change) else { return Ok(()) };
        match log.begin(self.start.clone()).await {
            Ok(()) => {
                self.state = State::Begun;
                Ok(())
            }
            Err(error) => Err(ToolError::NotRecorded { cause: error.to_string() }),
        }
    }

    /// Writes what came of it, and makes the outcome.
    pub(crate) async fn finish(mut self, ran: Ran, took: Duration) -> Outcome {
        let end = self.end(&ran, took);
        let kept = self.log.is_some() && end.output.is_some();
        match (self.log, self.state) {
            (None, _) => {}
            (Some(log), State::Begun) => {
                if let Err(error) = log.finish(end).await {
                    // It ran, and the caller must hear of that; but nobody will find it later.
                    self.events.emit(Event::now(
                        Some(self.call.id.clone()),
                        EventKind::Fault {
                            detail: format!("the end of the call could not be written: {error}"),
                        },
                    ));
                }
            }
            (Some(log), _) => log.note(self.start.clone(), end),
        }
        self.state = State::Done;
        let truncated = ran.merged.as_ref().is_some_and(|merged| merged.whole.is_some());
        Outcome {
            result: ran.result,
            sources: ran.sources,
            synthesis: ran.merged.map(|merged| merged.synthesis),
            attempts: ran.attempts,
            took,
            handle: kept.then(|| self.start.record.clone()),
            truncated,
            repaired: std::mem::take(&mut self.repaired),
            ..Outcome::refused(self.call.id.clone(), self.call.tool.clone(), ToolError::Internal)
        }
    }

    fn end(&self, ran: &Ran, took: Duration) -> CallEnd {
        let error = ran.result.as_ref().err();
        let whole = ran.merged.as_ref().and_then(|merged| merged.whole.as_ref());
        let output = whole.or(match &ran.result {
            Ok(output) => Some(output),
            Err(ToolError::Failed { output, .. }) => output.as_deref(),
            Err(_) => None,
        });
        CallEnd {
            record: self.start.record.clone(),
            status: Status::of(error, self.start.may_change),
            took,
            error: error.map(told),
            sources: ran.sources.clone(),
            attempts: ran.attempts.iter().map(note).collect(),
            output: output.map(|output| output.raw().clone()),
        }
    }
}

impl Drop for Record<'_> {
    /// A call that was dropped half-way is written down too, without waiting.
    fn drop(&mut self) {
        // One that may change something and was not written down before was not run either.
        let ran = match self.state {
            State::New => !self.start.may_change,
            State::Begun => true,
            State::Done => false,
        };
        let Some(log) = self.log.filter(|_| ran) else { return };
        let error = ToolError::Cancelled;
        let end = CallEnd {
            record: self.start.record.clone(),
            status: Status::of(Some(&error), self.start.may_change),
            took: self.start.at.elapsed().unwrap_or_default(),
            error: Some(told(&error)),
            sources: Vec::new(),
            attempts: Vec::new(),
            output: None,
        };
        log.note(self.start.clone(), end);
    }
}

fn told(error: &ToolError) -> (String, Text) {
    (error.kind().to_owned(), Text::new(error.say(Lang::En), error.say(Lang::Zh)))
}

fn note(attempt: &AttemptRecord) -> AttemptNote {
    let status = match attempt.end {
        AttemptEnd::Succeeded => AttemptStatus::Succeeded,
        AttemptEnd::Failed(_) => AttemptStatus::Failed,
        AttemptEnd::Cancelled => AttemptStatus::Cancelled,
    };
    AttemptNote {
        source: attempt.source.clone(),
        tool: attempt.tool.clone(),
        status,
        took: attempt.took,
        error: attempt.error().map(told),
    }
}
