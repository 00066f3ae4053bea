//! Writing a call down: before it runs where it may change something, after it in any case. Where the first cannot be
//! done, the call is not run.

use std::time::{Duration, SystemTime};

use toolhub_core::lang::{Lang, Text};
use toolhub_core::memory::{AttemptNote, CallEnd, CallLog, CallStart, RecordId, Status, stored_arguments};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{
    CallId, Event, EventKind, EventSink, Outcome, Say as _, ToolCall, ToolError, ToolName, ToolOutput,
};

use crate::coerce::Coerced;
use crate::router::Route;
use crate::strategy::Ran;

/// One call, being written down.
pub(crate) struct Record<'a> {
    call: &'a ToolCall,
    at: SystemTime,
    route: Option<&'a Route>,
    /// Taken when all is written.
    log: Option<&'a dyn CallLog>,
    events: &'a dyn EventSink,
    may_change: bool,
    /// Names the record, once something was made ready for it.
    record: Option<RecordId>,
    /// Whether it is written that it began; then that it ended must be.
    begun: bool,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        (call, at): (&'a ToolCall, SystemTime),
        route: Option<&'a Route>,
        log: Option<&'a dyn CallLog>,
        events: &'a dyn EventSink,
    ) -> Self {
        let may_change = route.is_some_and(Route::may_change);
        Self { call, at, route, log, events, may_change, record: None, begun: false }
    }

    /// How the call began. Made ready when it is written: most calls are written once, after they ran.
    fn start(&mut self) -> CallStart {
        let candidates = self.route.map(|route| &route.candidates[..]).unwrap_or_default();
        CallStart {
            record: self.record.get_or_insert_with(|| RecordId::at(self.at)).clone(),
            call: stored_id(&self.call.id),
            tool: stored_name(&self.call.tool),
            // What is sent is what is remembered.
            arguments: stored_arguments(
                self.mended().map_or(&self.call.arguments, |mended| &mended.arguments),
            ),
            conversation: self.call.conversation.as_deref().map(|id| prefix(id, MAX_STORED_NAME).to_owned()),
            request: self.call.request.as_deref().map(|text| prefix(text, MAX_STORED_TEXT).to_owned()),
            strategy: self.route.map(|route| route.strategy.name()).unwrap_or_default().to_owned(),
            candidates: candidates.iter().map(|candidate| candidate.source().clone()).collect(),
            may_change: self.may_change,
            at: self.at,
        }
    }

    /// What was mended in the arguments.
    fn mended(&self) -> Option<&'a Coerced> {
        self.route?.candidates.first()?.mended.as_ref()
    }

    /// Writes that the call begins, where it may change something, and waits until that is safe. Waits while the call
    /// log is behind by too much.
    pub(crate) async fn begin(&mut self) -> Result<(), ToolError> {
        let Some(log) = self.log else { return Ok(()) };
        if let Some(room) = log.wait_for_room() {
            room.await;
        }
        if !self.may_change {
            return Ok(());
        }
        match log.begin(self.start()).await {
            Ok(()) => {
                self.begun = true;
                Ok(())
            }
            Err(error) => {
                Err(ToolError::NotRecorded { cause: Text::new(error.say(Lang::En), error.say(Lang::Zh)) })
            }
        }
    }

    /// Writes what came of it where it is written that it began, and waits until that is safe.
    pub(crate) async fn end_safely(&mut self, ran: &Ran, took: Duration) {
        let (Some(log), Some(record)) = (self.log.filter(|_| self.begun), &self.record) else { return };
        if let Err(error) = log.finish(self.end(record, ran, took)).await {
            // It ran, and the caller must hear of that; but nobody will find it later.
            let detail = format!("the end of the call could not be written: {error}");
            self.events.emit(Event::now(Some(self.call.id.clone()), EventKind::Fault { detail }));
        }
    }

    /// Makes the outcome. Where nothing was written yet, what came of it is noted, and nobody waits for that.
    pub(crate) fn finish(mut self, ran: Ran, took: Duration) -> Outcome {
        let handle = self.log.take().and_then(|log| self.noted(log, &ran, took));
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
            repaired: self.mended().map(|mended| mended.notes.clone()).unwrap_or_default(),
        }
    }

    /// Notes a call where that was not done yet; returns what its output can be found by.
    fn noted(&mut self, log: &dyn CallLog, ran: &Ran, took: Duration) -> Option<RecordId> {
        if !self.begun {
            // Where a sample is stored, the other calls that succeeded are only counted. A call that failed, or whose
            // output was shortened, is stored in any case.
            if !self.may_change && ran.result.is_ok() && ran.merged.is_none() && !log.wants_details() {
                log.count(&ran.attempts, self.at);
                return None;
            }
            let start = self.start();
            let end = self.end(&start.record, ran, took);
            log.note(start, end);
        }
        self.record.take().filter(|_| output_of(ran).is_some())
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
        let Some(log) = self.log.take().filter(|_| ran) else { return };
        let (start, error) = (self.start(), ToolError::Cancelled);
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
    let text = |lang| prefix(&error.say(lang), MAX_STORED_TEXT).to_owned();
    (error.kind().to_owned(), Text::new(text(Lang::En), text(Lang::Zh)))
}

/// Of a name or an id that a caller chose so many bytes are kept.
const MAX_STORED_NAME: usize = 1 << 10;
/// Of a request or the text of an error so many bytes are kept: an error may quote a whole message.
const MAX_STORED_TEXT: usize = 8 << 10;

/// The first bytes of a text.
fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn stored_name(tool: &ToolName) -> ToolName {
    match tool.as_str().len() <= MAX_STORED_NAME {
        true => tool.clone(),
        false => ToolName::new(prefix(tool.as_str(), MAX_STORED_NAME)),
    }
}

fn stored_id(id: &CallId) -> CallId {
    match id.as_str().len() <= MAX_STORED_NAME {
        true => id.clone(),
        false => CallId::new(prefix(id.as_str(), MAX_STORED_NAME)),
    }
}

fn note(attempt: &AttemptRecord) -> AttemptNote {
    AttemptNote {
        source: attempt.source.clone(),
        tool: attempt.tool.clone(),
        status: (&attempt.end).into(),
        took: attempt.took,
        error: attempt.error().map(told),
    }
}
