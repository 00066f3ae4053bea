//! Writes calls to the call log: before execution if the call may change state, and always after it. A call whose
//! intent cannot be written is not executed.

use std::time::{Duration, SystemTime};

use toolhub_core::call_log::{
    CallEnd, CallLog, CallStart, CallStatus, RecordId, StoredAttempt, stored_arguments,
};
use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::{
    CallId, Event, EventKind, EventSink, Localize, Outcome, RawJson, RawObject, ToolCall, ToolError,
    ToolName, ToolOutput, meta_keys,
};

use crate::coerce::Coerced;
use crate::engine::Engine;
use crate::router::Route;
use crate::strategy::CallResult;

/// The log record of one call.
pub(crate) struct CallRecorder<'a> {
    call: &'a ToolCall,
    at: SystemTime,
    route: Option<&'a Route>,
    /// Taken once everything is written.
    log: Option<&'a dyn CallLog>,
    events: &'a dyn EventSink,
    may_change: bool,
    /// The record id, set when the first entry is built.
    record: Option<RecordId>,
    /// Whether the start is written; then the end must be written too.
    begun: bool,
}

impl<'a> CallRecorder<'a> {
    pub(crate) fn new(
        call: &'a ToolCall,
        at: SystemTime,
        route: Option<&'a Route>,
        engine: &'a Engine,
    ) -> Self {
        let may_change = route.is_some_and(Route::may_change);
        let (log, events) = (engine.log(), &**engine.events());
        Self { call, at, route, log, events, may_change, record: None, begun: false }
    }

    /// The start entry. Built on demand: most calls are written once, after execution.
    fn start(&mut self) -> CallStart {
        let candidates = self.route.map(|route| &route.candidates[..]).unwrap_or_default();
        CallStart {
            record: self.record.get_or_insert_with(|| RecordId::at(self.at)).clone(),
            call: stored_id(&self.call.id),
            tool: stored_name(&self.call.tool),
            // Stores the arguments as sent to the tool.
            arguments: stored_arguments(
                self.coerced().map_or(&self.call.arguments, |coerced| &coerced.arguments),
            ),
            conversation: self
                .call
                .conversation
                .as_deref()
                .map(|id| prefix(id, MAX_STORED_NAME_BYTES).to_owned()),
            request: self.call.request.as_deref().map(|text| prefix(text, MAX_STORED_TEXT_BYTES).to_owned()),
            strategy: self.route.map(|route| route.strategy.name()).unwrap_or_default().to_owned(),
            candidates: candidates.iter().map(|candidate| candidate.source().clone()).collect(),
            may_change: self.may_change,
            at: self.at,
            authorization: self.call.authorization.clone(),
            parent: self.call.parent.as_ref().map(stored_id),
        }
    }

    /// The coercions of the arguments.
    fn coerced(&self) -> Option<&'a Coerced> {
        self.route?.candidates.first()?.coerced.as_ref()
    }

    /// Writes the start of a call that may change state, and waits until it is durable. Also waits while the queue of
    /// the call log is full.
    pub(crate) async fn begin(&mut self) -> Result<(), ToolError> {
        let Some(log) = self.log else { return Ok(()) };
        if let Some(capacity) = log.wait_for_capacity() {
            capacity.await;
        }
        if !self.may_change {
            return Ok(());
        }
        match log.begin(self.start()).await {
            Ok(()) => {
                self.begun = true;
                Ok(())
            }
            Err(error) => Err(ToolError::NotRecorded {
                cause: LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)),
            }),
        }
    }

    /// Writes the end of a call whose start is written, and waits until it is durable.
    pub(crate) async fn write_end(&mut self, ran: &CallResult, took: Duration) {
        let (Some(log), Some(record)) = (self.log.filter(|_| self.begun), &self.record) else { return };
        if let Err(error) = log.finish(self.end(record, ran, took)).await {
            // The call was executed, so that its result is still returned; only its record is incomplete.
            let detail = format!("the end of the call could not be written: {error}");
            self.events.emit(Event::now(Some(self.call.id.clone()), EventKind::InternalError { detail }));
        }
    }

    /// Builds the outcome. If nothing is written yet, passes the call to the log: one with a journal has appended it there when this
    /// returns, without waiting for the database.
    pub(crate) fn finish(mut self, ran: CallResult, took: Duration) -> Outcome {
        let handle = self.log.take().and_then(|log| self.record_finished_call(log, &ran, took));
        let truncated = ran.merged.as_ref().is_some_and(|merged| merged.full_output.is_some());
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
            repaired: self.coerced().map(|coerced| coerced.notes.clone()).unwrap_or_default(),
        }
    }

    /// Passes a call to the log unless it is written already. Returns the handle of its stored output.
    fn record_finished_call(
        &mut self,
        log: &dyn CallLog,
        ran: &CallResult,
        took: Duration,
    ) -> Option<RecordId> {
        if !self.begun {
            // With sampling, other successful calls are only counted. Failed calls and those with shortened output
            // are always stored.
            if !self.may_change && ran.result.is_ok() && ran.merged.is_none() && !log.should_store_details() {
                log.count(&ran.attempts, self.at);
                return None;
            }
            let start = self.start();
            let end = self.end(&start.record, ran, took);
            log.record_finished(start, end);
        }
        self.record.take().filter(|_| output_of(ran).is_some())
    }

    /// The output as it is stored: complete, or its beginning if the calls of a script have used up their budget.
    fn stored_output(&self, output: &ToolOutput) -> RawJson {
        let raw = output.raw();
        let bytes = raw.get().len();
        if bytes <= MAX_STORED_TEXT_BYTES
            || self.call.budget.as_ref().is_none_or(|budget| budget.take_stored_bytes(bytes))
        {
            return raw.clone();
        }
        let texts = output.texts().0.join("\n");
        let text = if texts.is_empty() { raw.get() } else { &texts };
        let start = ToolOutput::text(format!("{}…", prefix(text, MAX_STORED_TEXT_BYTES)));
        let truncated = RawObject::default().with("bytes", RawJson::of(&bytes));
        let mut members = start.raw().object().unwrap_or_default();
        members.set("_meta", RawObject::default().with(meta_keys::TRUNCATED, truncated));
        members.into_raw()
    }

    fn end(&self, record: &RecordId, ran: &CallResult, took: Duration) -> CallEnd {
        let error = ran.result.as_ref().err();
        CallEnd {
            record: record.clone(),
            status: CallStatus::of(error, self.may_change),
            took,
            error: error.map(stored_error),
            sources: ran.sources.clone(),
            attempts: ran.attempts.iter().map(stored_attempt).collect(),
            output: output_of(ran).map(|output| self.stored_output(output)),
        }
    }
}

impl Drop for CallRecorder<'_> {
    /// Also records a call that was cancelled while running, without waiting.
    fn drop(&mut self) {
        // A call that may change state and has no start record was not executed.
        let ran = self.begun || !self.may_change;
        let Some(log) = self.log.take().filter(|_| ran) else { return };
        let (start, error) = (self.start(), ToolError::Cancelled);
        // What a script had called until then.
        let interruption = self.call.nested.as_ref().and_then(|nested| nested.interruption());
        let text = interruption.map(|text| stored_text(&text));
        let end = CallEnd {
            record: start.record.clone(),
            status: CallStatus::of(Some(&error), self.may_change),
            took: start.at.elapsed().unwrap_or_default(),
            error: Some(match text {
                Some(text) => (error.kind().to_owned(), text),
                None => stored_error(&error),
            }),
            sources: Vec::new(),
            attempts: Vec::new(),
            output: None,
        };
        log.record_finished(start, end);
    }
}

/// The output to store: the complete one if the result is shortened.
fn output_of(ran: &CallResult) -> Option<&ToolOutput> {
    let full_output = ran.merged.as_ref().and_then(|merged| merged.full_output.as_ref());
    full_output.or(match &ran.result {
        Ok(output) => Some(output),
        Err(ToolError::Failed { output, .. }) => output.as_deref(),
        Err(_) => None,
    })
}

fn stored_error(error: &ToolError) -> (String, LocalizedText) {
    (error.kind().to_owned(), stored_text(error))
}

fn stored_text(text: &impl Localize) -> LocalizedText {
    let text = |lang| prefix(&text.localize(lang), MAX_STORED_TEXT_BYTES).to_owned();
    LocalizedText::new(text(Lang::En), text(Lang::Zh))
}

/// Maximum stored bytes of a name or id that the caller chose.
const MAX_STORED_NAME_BYTES: usize = 1 << 10;
/// Maximum stored bytes of a request or an error text; an error may quote a whole message.
const MAX_STORED_TEXT_BYTES: usize = 8 << 10;

/// The first `bytes` bytes, cut at a character boundary.
fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn stored_name(tool: &ToolName) -> ToolName {
    match tool.as_str().len() <= MAX_STORED_NAME_BYTES {
        true => tool.clone(),
        false => ToolName::new(prefix(tool.as_str(), MAX_STORED_NAME_BYTES)),
    }
}

fn stored_id(id: &CallId) -> CallId {
    match id.as_str().len() <= MAX_STORED_NAME_BYTES {
        true => id.clone(),
        false => CallId::new(prefix(id.as_str(), MAX_STORED_NAME_BYTES)),
    }
}

fn stored_attempt(attempt: &AttemptRecord) -> StoredAttempt {
    StoredAttempt {
        source: attempt.source.clone(),
        tool: attempt.tool.clone(),
        status: (&attempt.end).into(),
        took: attempt.took,
        error: attempt.error().map(stored_error),
    }
}
