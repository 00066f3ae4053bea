//! One attempt to call one candidate: deadline, panic guard, and the distinction between a success and an error
//! result of the tool. Arguments are validated during routing, because their validity decides which tools are
//! candidates.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use toolhub_core::millis::duration_millis;
use toolhub_core::{
    CallContext, CallId, Effect, Event, EventKind, EventSink, RawJson, Tool, ToolCall, ToolError, ToolHost,
    ToolOutput,
};

use crate::deadline_timer::{DeadlineTimers, TimerKey};
use crate::deadlines::Deadlines;
use crate::engine::Engine;

/// Interval at which the deadline is re-evaluated while a request to the caller (elicitation, sampling) is open. The
/// component that sends such a request limits its duration.
const INPUT_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum interval between two evaluations of a deadline.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Replaces deadlines that overflow `Instant`.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The inputs of one attempt.
pub(crate) struct Attempt<'a> {
    pub(crate) host: &'a dyn ToolHost,
    pub(crate) tool: &'a Tool,
    pub(crate) call: &'a ToolCall,
    /// The arguments of the call, coerced to the schema if necessary.
    pub(crate) arguments: &'a RawJson,
    /// Remaining time of the caller's own timeout, if it set one.
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadlines: Deadlines,
}

impl Attempt<'_> {
    /// Runs the attempt; its time counts from `start`. Dropping the future cancels the call.
    pub(crate) async fn run(self, engine: &Engine, start: Instant) -> Result<ToolOutput, ToolError> {
        let watch = Arc::new(AttemptMonitor::new(Arc::clone(engine.events()), start));
        let context = CallContext {
            call: self.call.id.clone(),
            conversation: self.call.conversation.clone(),
            caller: self.call.caller.clone(),
            events: Arc::clone(&watch) as Arc<dyn EventSink>,
            nested: self.call.nested.clone(),
        };
        let mut work = AssertUnwindSafe(self.host.call(self.tool, self.arguments, &context)).catch_unwind();
        let mut expiry = Expiry { timers: engine.timers(), key: None, asking: false };
        let finished = poll_fn(|waiter| match work.poll_unpin(waiter) {
            Poll::Ready(finished) => Poll::Ready(Ok(finished)),
            Poll::Pending => expiry.poll(&self, &watch, waiter).map(Err),
        });
        match finished.await {
            Ok(Ok(Ok(output))) if output.is_error() => Err(own_error(output)),
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let detail = format!("tool `{}` panicked: {}", self.tool.name(), panic_text(&*panic));
                context.emit(EventKind::InternalError { detail });
                Err(ToolError::Panicked)
            }
            Err(after) => Err(self.timed_out(after, &watch)),
        }
    }

    /// Earliest possible end, relative to the start: the request is sent immediately and no progress is reported.
    fn earliest_end(&self) -> Duration {
        self.timeout.unwrap_or(self.deadlines.call.min(self.deadlines.cap))
    }

    /// Current limit of the attempt, relative to its start.
    fn limit(&self, watch: &AttemptMonitor) -> Duration {
        // A person may answer the open request, so that the limit of the call does not apply.
        if self.timeout.is_none() && watch.questions.load(Ordering::Acquire) > 0 {
            return watch.start.elapsed() + INPUT_POLL_INTERVAL;
        }
        let span = self.timeout.unwrap_or(self.deadlines.call);
        let sent = watch.sent.since_start();
        let limit = match (self.timeout, sent) {
            // The caller's own timeout counts from the start, includes connecting, and is never extended.
            (Some(timeout), _) => return timeout,
            (None, Some(sent)) => sent + span,
            // Until the request is sent, the connect timeout of the host applies. The cap covers hosts without one.
            (None, None) => return self.deadlines.cap,
        };
        // Progress restarts the span, up to the cap.
        let extended = watch.progress.since_start().map_or(limit, |at| limit.max(at + span));
        let question_wait = Duration::from_millis(watch.question_wait.load(Ordering::Acquire));
        extended.min(sent.unwrap_or_default() + self.deadlines.cap.max(span) + question_wait)
    }

    fn timed_out(&self, after: Duration, watch: &AttemptMonitor) -> ToolError {
        let is_read_only = self.tool.hints().read_only == Some(true);
        let effect = match watch.sent.since_start() {
            Some(_) if !is_read_only => Effect::Unknown,
            _ => Effect::None,
        };
        ToolError::TimedOut { after: self.call.timeout.unwrap_or(after), effect }
    }
}

/// Tracks the deadline of an attempt. It is evaluated only when the timer fires: events of an attempt only ever move
/// its deadline later.
struct Expiry<'a> {
    timers: &'a DeadlineTimers,
    key: Option<TimerKey>,
    /// Whether a request to the caller was open at the last evaluation; the deadline then depends on the answer.
    asking: bool,
}

impl Expiry<'_> {
    /// Ready when the time of the attempt is over; returns the limit that was exceeded.
    fn poll(
        &mut self,
        attempt: &Attempt<'_>,
        watch: &AttemptMonitor,
        waiter: &Context<'_>,
    ) -> Poll<Duration> {
        let Some(key) = self.key else {
            self.wait(watch, attempt.earliest_end(), waiter);
            return Poll::Pending;
        };
        if !self.timers.has_fired(key, waiter.waker()) && !self.asking {
            return Poll::Pending;
        }
        // Registered before the state is read, so that an answer in between still wakes the task.
        watch.answered.register(waiter.waker());
        self.asking = watch.questions.load(Ordering::Acquire) > 0;
        let (limit, elapsed) = (attempt.limit(watch), watch.start.elapsed());
        if elapsed >= limit {
            return Poll::Ready(limit);
        }
        // If the request has not been sent yet, it may be sent at any moment, and the call limit then applies.
        let span = attempt.timeout.unwrap_or(attempt.deadlines.call).max(MIN_POLL_INTERVAL);
        self.leave();
        self.wait(watch, limit.min(elapsed.saturating_add(span)), waiter);
        Poll::Pending
    }

    fn wait(&mut self, watch: &AttemptMonitor, limit: Duration, waiter: &Context<'_>) {
        // A limit that overflows `Instant` becomes a very late deadline.
        let due = watch.start.checked_add(limit).unwrap_or_else(|| watch.start + FAR_FUTURE);
        self.key = Some(self.timers.register(due, waiter.waker()));
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.timers.unregister(key);
        }
    }
}

impl Drop for Expiry<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Event sink of a call that records when its request was sent and when it made progress, then forwards the events.
struct AttemptMonitor {
    events: Arc<dyn EventSink>,
    start: Instant,
    sent: Moment,
    progress: Moment,
    /// Number of open requests to the caller.
    questions: AtomicU64,
    /// Start of the earliest open request.
    asked_at: Moment,
    /// Total time spent waiting for answers, in milliseconds.
    question_wait: AtomicU64,
    /// Woken when a request to the caller is answered.
    answered: AtomicWaker,
}

/// Milliseconds after the start; 0 means unset.
#[derive(Default)]
struct Moment(AtomicU64);

impl Moment {
    fn since_start(&self) -> Option<Duration> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            at => Some(Duration::from_millis(at)),
        }
    }
}

impl AttemptMonitor {
    fn new(events: Arc<dyn EventSink>, start: Instant) -> Self {
        let (sent, progress) = (Moment::default(), Moment::default());
        let questions = AtomicU64::new(0);
        let (asked_at, question_wait) = (Moment::default(), AtomicU64::new(0));
        Self {
            events,
            start,
            sent,
            progress,
            questions,
            asked_at,
            question_wait,
            answered: AtomicWaker::new(),
        }
    }

    /// Records that the request is sent. If it is resent after a session has expired, the first time counts.
    fn record_sent(&self) {
        let _ = self.sent.0.compare_exchange(0, self.stamp(), Ordering::AcqRel, Ordering::Acquire);
    }

    fn stamp(&self) -> u64 {
        duration_millis(self.start.elapsed()).max(1)
    }
}

impl EventSink for AttemptMonitor {
    fn emit(&self, event: Event) {
        match event.kind {
            EventKind::Sending => self.record_sent(),
            EventKind::Progress { .. } => {
                self.progress.0.store(self.stamp(), Ordering::Release);
            }
            EventKind::InputRequested { .. } => {
                let open = self.questions.fetch_add(1, Ordering::AcqRel);
                if open == 0 {
                    self.asked_at.0.store(self.stamp(), Ordering::Release);
                }
            }
            EventKind::InputReceived => {
                self.progress.0.store(self.stamp(), Ordering::Release);
                if self.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
                    let asked_at = self.asked_at.0.load(Ordering::Acquire);
                    self.question_wait.fetch_add(self.stamp().saturating_sub(asked_at), Ordering::AcqRel);
                }
                self.answered.wake();
            }
            _ => {}
        }
        if self.events.is_disabled() {
            return;
        }
        self.events.emit(event);
    }

    fn sending(&self, call: &CallId) {
        self.record_sent();
        if !self.events.is_disabled() {
            self.events.sending(call);
        }
    }
}

fn own_error(output: ToolOutput) -> ToolError {
    let text = output.texts().0.join("\n");
    let message = if text.trim().is_empty() { output.result().get().to_owned() } else { text };
    ToolError::Failed { message: message.into(), output: Some(Box::new(output)) }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
