//! Derives spans from events: one per client request, one per tool call of it, one per attempt of a call, and one per call
//! that a tool makes. The events of concurrent calls may be interleaved.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::mpsc::Sender;
use toolhub_core::trace::TraceContext;
use toolhub_core::{AccessRecord, CallId, Event, EventKind, EventSink, RequestTransport, Source};

use super::sampler::random_span_id;
use super::span::{Span, SpanKind};

/// Maximum number of calls tracked at a time.
const MAX_TRACKED_CALLS: usize = 10_000;
/// Maximum number of requests whose failed calls are remembered until the response.
const MAX_FAILED_REQUESTS: usize = 1_024;
/// Maximum length of an error message in characters.
const MAX_ERROR_CHARS: usize = 300;

/// A call in progress.
struct OpenCall {
    /// The trace context of the call.
    place: TraceContext,
    span: Span,
    /// The span id of the request that fails with this call; `None` for a nested call, whose failure its parent may handle.
    request: Option<u64>,
    attempts: Vec<(Source, Span)>,
    failure: Option<String>,
}

#[derive(Default)]
struct OpenSpans {
    calls: HashMap<CallId, OpenCall>,
    /// The span ids of requests with a failed call, and the errors; the newest last.
    failed: VecDeque<(u64, String)>,
}

impl OpenSpans {
    /// Places the span of a call below that of its parent, if the parent has one.
    fn nest(&mut self, call: &CallId, at: SystemTime, parent: &CallId) {
        let Some(outer) = self.calls.get(parent) else { return };
        let (place, above) = (outer.place.with_span(random_span_id()), Some(outer.span.number));
        let has_room = self.calls.len() < MAX_TRACKED_CALLS;
        match self.calls.get_mut(call) {
            Some(open) => (open.span.parent, open.request) = (above, None),
            None if has_room => {
                let span = Span::at(&place, above, at);
                let open = OpenCall { place, span, request: None, attempts: Vec::new(), failure: None };
                self.calls.insert(call.clone(), open);
            }
            None => {}
        }
    }
}

/// Derives spans from events.
pub(super) struct Spans {
    queue: Sender<Span>,
    lost: Arc<AtomicU64>,
    state: Mutex<OpenSpans>,
}

impl std::fmt::Debug for Spans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spans").finish_non_exhaustive()
    }
}

impl Spans {
    pub(super) fn new(queue: Sender<Span>, lost: Arc<AtomicU64>) -> Self {
        Self { queue, lost, state: Mutex::default() }
    }

    fn export(&self, mut span: Span, ended: SystemTime) {
        // If the clock is set back, a span still does not end before it started.
        span.ended = ended.max(span.began);
        if self.queue.try_send(span).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn record_request(&self, state: &mut OpenSpans, at: SystemTime, request: AccessRecord) {
        let place = request.trace.as_ref().and_then(|trace| trace.own.is_sampled().then_some(trace));
        let Some(trace) = place else { return };
        let began = at.checked_sub(request.took).unwrap_or(at);
        let mut span = Span::at(&trace.own, trace.parent, began);
        span.kind = SpanKind::Server;
        let tool = request.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let failed = state.failed.iter().position(|(number, _)| *number == trace.own.span());
        span.error = failed.and_then(|place| state.failed.remove(place)).map(|(_, why)| why);
        match request.transport {
            RequestTransport::Http { client, verb, path, status } => {
                let named = request.method.clone().unwrap_or_else(|| format!("{verb} {path}"));
                span.name = format!("{named}{tool}");
                span.set_attribute("http.request.method", verb);
                span.set_attribute("url.path", path);
                span.set_attribute("http.response.status_code", i64::from(status));
                span.set_attribute("client.address", client.ip().to_string());
                span.set_attribute("network.transport", "tcp");
                if status >= 400 && request.error.is_none() {
                    span.error.get_or_insert_with(|| format!("answered {status}"));
                    span.set_attribute("error.type", status.to_string());
                }
            }
            RequestTransport::Stdio => {
                span.name = format!("{}{tool}", request.method.clone().unwrap_or_default());
                span.set_attribute("network.transport", "pipe");
            }
        }
        if let Some(code) = request.error {
            span.error.get_or_insert_with(|| format!("answered {code}"));
            span.set_attribute("error.type", code.to_string());
        }
        if let Some(method) = request.method {
            span.set_attribute("mcp.method.name", method);
        }
        if let Some(tool) = request.tool {
            span.set_attribute("gen_ai.operation.name", "execute_tool");
            span.set_attribute("gen_ai.tool.name", tool);
        }
        if let Some(principal) = request.principal {
            span.set_attribute("enduser.id", principal.as_ref());
        }
        self.export(span, at);
    }

    /// Ends a call, and with it its unfinished attempts.
    fn finish_call(&self, state: &mut OpenSpans, call: &CallId, at: SystemTime, end: End) {
        let Some(OpenCall { mut span, request, attempts, failure, .. }) = state.calls.remove(call) else {
            return;
        };
        for (_, mut attempt) in attempts {
            attempt.set_attribute("toolhub.cancelled", true);
            self.export(attempt, at);
        }
        span.error = match end {
            End::Success => None,
            End::Failure => Some(failure.unwrap_or_else(|| "the call failed".to_owned())),
            End::Abandoned => Some("the client went away".to_owned()),
        };
        if let (Some(why), Some(request)) = (&span.error, request) {
            if state.failed.len() >= MAX_FAILED_REQUESTS {
                state.failed.pop_front();
            }
            state.failed.push_back((request, why.clone()));
        }
        self.export(span, at);
    }

    fn handle_call_event(&self, state: &mut OpenSpans, call: &CallId, at: SystemTime, kind: EventKind) {
        match kind {
            EventKind::Traced { source: None, trace } => {
                if trace.is_sampled() && state.calls.len() < MAX_TRACKED_CALLS {
                    let place = trace.with_span(random_span_id());
                    let request = Some(trace.span());
                    let span = Span::at(&place, request, at);
                    let open = OpenCall { place, span, request, attempts: Vec::new(), failure: None };
                    state.calls.insert(call.clone(), open);
                }
                return;
            }
            EventKind::CallStarted { parent: Some(ref parent), .. } => state.nest(call, at, parent),
            EventKind::CallFinished { success, .. } => {
                let end = if success { End::Success } else { End::Failure };
                return self.finish_call(state, call, at, end);
            }
            EventKind::CallAbandoned => return self.finish_call(state, call, at, End::Abandoned),
            _ => {}
        }
        let Some(open) = state.calls.get_mut(call) else { return };
        match kind {
            EventKind::CallStarted { tool, .. } => {
                open.span.name = format!("call {tool}");
                open.span.set_attribute("gen_ai.tool.name", tool.as_str());
            }
            EventKind::Routed { candidates, strategy, .. } => {
                open.span.set_attribute("toolhub.route.strategy", strategy);
                let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                open.span.set_attribute("toolhub.route.candidates", candidates);
            }
            EventKind::AttemptStarted { source } => {
                let mut span = Span::at(&open.place.with_span(random_span_id()), Some(open.span.number), at);
                span.name = format!("attempt {source}");
                span.kind =
                    if matches!(source, Source::Server(_)) { SpanKind::Client } else { SpanKind::Internal };
                span.set_attribute("toolhub.source", source.to_string());
                open.attempts.push((source, span));
            }
            // The server received this span id, so that its spans become children of this attempt.
            EventKind::Traced { source: Some(source), trace } => {
                if let Some((_, span)) = open.attempts.iter_mut().rfind(|(other, _)| *other == source) {
                    span.number = trace.span();
                }
            }
            EventKind::AttemptFinished { source, error, .. } => {
                let Some(mut span) = take_attempt(&mut open.attempts, &source) else { return };
                span.error = error.map(|error| truncate(&error));
                open.failure = span.error.clone().or(open.failure.take());
                self.export(span, at);
            }
            EventKind::AttemptCancelled { source, .. } => {
                let Some(mut span) = take_attempt(&mut open.attempts, &source) else { return };
                span.set_attribute("toolhub.cancelled", true);
                self.export(span, at);
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy)]
enum End {
    Success,
    Failure,
    Abandoned,
}

impl EventSink for Spans {
    fn emit(&self, event: Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (event.call, event.kind) {
            (_, EventKind::RequestServed(request)) => self.record_request(&mut state, event.at, *request),
            (Some(call), kind) => self.handle_call_event(&mut state, &call, event.at, kind),
            (None, _) => {}
        }
    }
}

/// Removes the latest attempt of a source.
fn take_attempt(attempts: &mut Vec<(Source, Span)>, source: &Source) -> Option<Span> {
    let place = attempts.iter().rposition(|(other, _)| other == source)?;
    Some(attempts.remove(place).1)
}

/// Returns the first line of an error, truncated.
fn truncate(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolhub_core::ToolName;

    use super::*;

    const TRACE: u128 = 7;
    const REQUEST: u64 = 8;

    fn sink() -> (Spans, tokio::sync::mpsc::Receiver<Span>) {
        let (queue, spans) = tokio::sync::mpsc::channel(16);
        (Spans::new(queue, Arc::default()), spans)
    }

    fn start(sink: &Spans, call: &str, parent: Option<&str>) {
        let tool = ToolName::new(format!("tool_of_{call}"));
        let kind = EventKind::CallStarted { tool, parent: parent.map(CallId::new) };
        sink.emit(Event::now(Some(CallId::new(call)), kind));
    }

    fn trace(sink: &Spans, call: &str) {
        let trace = TraceContext::new(TRACE, REQUEST, true).unwrap();
        sink.emit(Event::now(Some(CallId::new(call)), EventKind::Traced { source: None, trace }));
    }

    fn finish(sink: &Spans, call: &str, success: bool) {
        let kind = EventKind::CallFinished { success, took: Duration::ZERO };
        sink.emit(Event::now(Some(CallId::new(call)), kind));
    }

    #[test]
    fn nested_call_has_the_span_of_its_parent_as_parent() {
        let (sink, mut spans) = sink();
        trace(&sink, "outer");
        start(&sink, "outer", None);
        // One with a trace context of its own, one without, and one of a parent that is not traced.
        trace(&sink, "first");
        start(&sink, "first", Some("outer"));
        start(&sink, "second", Some("outer"));
        start(&sink, "other", Some("unknown"));
        finish(&sink, "first", false);
        finish(&sink, "second", true);
        finish(&sink, "other", true);
        finish(&sink, "outer", true);
        let mut next = || spans.try_recv().unwrap();
        let (first, second, outer) = (next(), next(), next());
        assert_eq!(outer.name, "call tool_of_outer");
        assert_eq!(
            (first.name.as_str(), second.name.as_str()),
            ("call tool_of_first", "call tool_of_second")
        );
        for nested in [&first, &second] {
            assert_eq!((nested.trace, nested.parent), (TRACE, Some(outer.number)));
            assert_ne!(nested.number, outer.number);
        }
        assert_eq!(outer.parent, Some(REQUEST));
        assert!(spans.try_recv().is_err(), "a span of an untraced call");
        // The script handled the failure: its request did not fail.
        assert!(first.error.is_some() && sink.state.lock().unwrap().failed.is_empty());
    }

    #[test]
    fn failed_call_of_a_request_fails_the_request() {
        let (sink, _spans) = sink();
        trace(&sink, "outer");
        start(&sink, "outer", None);
        finish(&sink, "outer", false);
        assert_eq!(sink.state.lock().unwrap().failed[0].0, REQUEST);
    }
}
