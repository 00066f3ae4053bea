//! Writing a call down: before it runs where it may change something, after it in any case. Where the first cannot be
//! done, the call is not run.

use std::time::{Duration, SystemTime};

use toolhub_core::lang::{Lang, Text};
use toolhub_core::memory::{AttemptNote, AttemptStatus, CallEnd, CallLog, CallStart, RecordId, Status};
use toolhub_core::outcome::{AttemptEnd, AttemptRecord};
use toolhub_core::{Event, EventKind, EventSink, Outcome, Say as _, ToolCall, ToolError, ToolOutput};

use crate::router::Route;
use crate::strategy::Ran;

/// One call, being written down.
pub(crate) struct Record<'a> {
    call: &'a ToolCall,
    log: Option<&'a dyn CallLog>,
    events: &'a dyn EventSink,
    /// Taken when all is written.
    start: Option<CallStart>,
    may_change: bool,
    /// What was mended in the arguments.
    repaired: Vec<Text>,
    /// Whether it is written that it began; then that it ended must be.
    begun: bool,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        (call, at): (&'a ToolCall, SystemTime),
        route: Option<&Route>,
        log: Option<&'a dyn CallLog>,
        events: &'a dyn EventSink,
    ) -> Self {
        let candidates = route.map(|route| &route.candidates[..]).unwrap_or_default();
        let mended = candidates.first().and_then(|first| first.mended.as_ref());
        let may_change = route.is_some_and(Route::may_change);
        let start = || CallStart {
            record: RecordId::at(at),
            call: call.id.clone(),
            tool: call.tool.clone(),
            // What is sent is what is remembered.
            arguments: mended.map_or(&call.arguments, |mended| &mended.arguments).clone(),
            conversation: call.conversation.as_deref().map(str::to_owned),
            request: call.request.clone(),
            strategy: route.map(|route| route.strategy.name()).unwrap_or_default().to_owned(),
            candidates: candidates.iter().map(|candidate| candidate.source().clone()).collect(),
            may_change,
            at,
        };
        // Where nothing is written down, there is nothing to make ready.
        let start = log.map(|_| start());
        let repaired = mended.map(|mended| mended.notes.clone()).unwrap_or_default();
        Self { call, log, events, start, may_change, repaired, begun: false }
    }

    /// Writes that the call begins, where it may change something, and waits until that is safe.
    pub(crate) async fn begin(&mut self) -> Result<(), ToolError> {
        let (Some(log), Some(start)) = (self.log.filter(|_| self.may_change), &self.start) else {
            return Ok(());
        };
        match log.begin(start.clone()).await {
            Ok(()) => {
                self.begun = true;
                Ok(())
            }
            Err(error) => Err(ToolError::NotRecorded { cause: error.to_string() }),
        }
    }

    /// Writes what came of it where it is written that it began, and waits until that is safe.
    pub(crate) async fn end_safely(&mut self, ran: &Ran, took: Duration) {
        let (Some(log), Some(start)) = (self.log.filter(|_| self.begun), &self.start) else { return };
        if let Err(error) = log.finish(self.end(&start.record, ran, took)).await {
            // It ran, and the caller must hear of that; but nobody will find it later.
            let detail = format!("the end of the call could not be written: {error}");
            self.events.emit(Event::now(Some(self.call.id.clone()), EventKind::Fault { detail }));
        }
    }

    /// Makes the outcome. Where nothing was written yet, what came of it is noted, and nobody waits for that.
    pub(crate) fn finish(mut self, ran: Ran, took: Duration) -> Outcome {
        let kept = self.start.as_ref().filter(|_| output_of(&ran).is_some());
        let handle = kept.map(|start| start.record.clone());
        if let (Some(log), Some(start)) = (self.log, self.start.take())
            && !self.begun
        {
            let end = self.end(&start.record, &ran, took);
            log.note(start, end);
        }
        let truncated = ran.merged.as_ref().is_some_and(|merged| merged.whole.is_some());
        Outcome {
            call_id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            result: ran.result,
            sources: ran.sources,
            synthesis: ran.merged.map(|merged| merged.synthesis),
            attempts: ran.attempts,
            took,
            handle,
            truncated,
            verification: None,
            repaired: std::mem::take(&mut self.repaired),
        }
    }

    fn end(&self, record: &RecordId, ran: &Ran, took: Duration) -> CallEnd {
        let error = ran.result.as_ref().err();
        CallEnd {
            record: record.clone(),
            status: Status::of(error, self.may_change),
            took,
            error: error.map(told),
            sources: ran.sources.clone(),
            attempts: ran.attempts.iter().map(note).collect(),
            output: output_of(ran).map(|output| output.raw().clone()),
        }
    }
}

impl Drop for Record<'_> {
    /// A call that was dropped half-way is written down too, without waiting.
    fn drop(&mut self) {
        // One that may change something and was not written down before was not run either.
        let ran = self.begun || !self.may_change;
        let Some((log, start)) = self.log.filter(|_| ran).zip(self.start.take()) else { return };
        let error = ToolError::Cancelled;
        let end = CallEnd {
            record: start.record.clone(),
            status: Status::of(Some(&error), self.may_change),
            took: start.at.elapsed().unwrap_or_default(),
            error: Some(told(&error)),
            sources: Vec::new(),
            attempts: Vec::new(),
            output: None,
        };
        log.note(start, end);
    }
}

/// What is remembered as the output: all of it, where less is handed on.
fn output_of(ran: &Ran) -> Option<&ToolOutput> {
    let whole = ran.merged.as_ref().and_then(|merged| merged.whole.as_ref());
    whole.or(match &ran.result {
        Ok(output) => Some(output),
        Err(ToolError::Failed { output, .. }) => output.as_deref(),
        Err(_) => None,
    })
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
