//! One try of one candidate: deadline, panic guard, and the tool's own error told from a success. The arguments
//! were checked while routing, since whether they fit decides who is a candidate at all.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use toolhub_core::{
    CallContext, CallId, Effect, Event, EventKind, EventSink, RawJson, Tool, ToolCall, ToolError, ToolHost,
    ToolOutput,
};

use crate::deadline_timer::{DeadlineTimers, TimerKey};
use crate::engine::Engine;

/// How long calls may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// A call, counted from the moment it leaves for the tool; progress extends it.
    pub call: Duration,
    /// The most that progress can extend it to.
    pub cap: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { call: Duration::from_secs(30), cap: Duration::from_secs(300) }
    }
}

/// A call is looked at again so often while its caller is asked something. How long that may last is for whoever
/// asks to say.
const QUESTION: Duration = Duration::from_secs(60);
/// A call that has more time is not looked at again sooner.
const SHORTEST: Duration = Duration::from_millis(10);
/// Later than any call ends.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Who runs what.
pub(crate) struct Attempt<'a> {
    pub(crate) host: &'a dyn ToolHost,
    pub(crate) tool: &'a Tool,
    pub(crate) call: &'a ToolCall,
    /// What it is given: the call's arguments, mended where they had to be.
    pub(crate) arguments: &'a RawJson,
    /// What is left of the caller's own limit, where there is one.
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadlines: Deadlines,
}

impl Attempt<'_> {
    /// Runs it, from that moment on. Dropping the future cancels the call.
    pub(crate) async fn run(self, engine: &Engine, start: Instant) -> Result<ToolOutput, ToolError> {
        let watch = Arc::new(Watch::new(Arc::clone(engine.events()), start));
        let context = CallContext {
            call: self.call.id.clone(),
            conversation: self.call.conversation.clone(),
            caller: self.call.caller.clone(),
            events: Arc::clone(&watch) as Arc<dyn EventSink>,
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
                context.emit(EventKind::Fault { detail });
                Err(ToolError::Panicked)
            }
            Err(after) => Err(self.timed_out(after, &watch)),
        }
    }

    /// How long after its start the attempt may end at the soonest, whatever happens: it leaves at once, and nothing is
    /// heard of it.
    fn soonest(&self) -> Duration {
        self.timeout.unwrap_or(self.deadlines.call.min(self.deadlines.cap))
    }

    /// How long after its start the attempt must end, as things stand.
    fn limit(&self, watch: &Watch) -> Duration {
        // People think longer than programs.
        if self.timeout.is_none() && watch.questions.load(Ordering::Acquire) > 0 {
            return watch.start.elapsed() + QUESTION;
        }
        let span = self.timeout.unwrap_or(self.deadlines.call);
        let sent = watch.sent.since_start();
        let limit = match (self.timeout, sent) {
            // The caller's own limit counts from the start, connecting included, and nothing extends it.
            (Some(timeout), _) => return timeout,
            (None, Some(sent)) => sent + span,
            // Before the request leaves, the host's own deadline for connecting holds; this is for one without.
            (None, None) => return self.deadlines.cap,
        };
        // Progress gives a fresh span, up to the cap.
        let extended = watch.progress.since_start().map_or(limit, |at| limit.max(at + span));
        let waited = Duration::from_millis(watch.waited.load(Ordering::Acquire));
        extended.min(sent.unwrap_or_default() + self.deadlines.cap.max(span) + waited)
    }

    fn timed_out(&self, after: Duration, watch: &Watch) -> ToolError {
        let harmless = self.tool.hints().read_only == Some(true);
        let effect = match watch.sent.since_start() {
            Some(_) if !harmless => Effect::Unknown,
            _ => Effect::None,
        };
        ToolError::TimedOut { after: self.call.timeout.unwrap_or(after), effect }
    }
}

/// The end of an attempt's time. It is looked at only when it may have come: what happens to an attempt gives it more
/// time, and never less than it had from the start.
struct Expiry<'a> {
    timers: &'a DeadlineTimers,
    key: Option<TimerKey>,
    /// Whether its caller was being asked something when it was last looked at; then its time depends on the answer.
    asking: bool,
}

impl Expiry<'_> {
    /// Waits until the attempt has had its time, and tells how much that was.
    fn poll(&mut self, attempt: &Attempt<'_>, watch: &Watch, waiter: &Context<'_>) -> Poll<Duration> {
        let Some(key) = self.key else {
            self.wait(watch, attempt.soonest(), waiter);
            return Poll::Pending;
        };
        if !self.timers.has_fired(key, waiter.waker()) && !self.asking {
            return Poll::Pending;
        }
        // Before anything is looked at, so that no answer comes unheard in between.
        watch.answered.register(waiter.waker());
        self.asking = watch.questions.load(Ordering::Acquire) > 0;
        let (limit, elapsed) = (attempt.limit(watch), watch.start.elapsed());
        if elapsed >= limit {
            return Poll::Ready(limit);
        }
        // One that has not left yet may leave now, and then its time is that of a call.
        let span = attempt.timeout.unwrap_or(attempt.deadlines.call).max(SHORTEST);
        self.leave();
        self.wait(watch, limit.min(elapsed.saturating_add(span)), waiter);
        Poll::Pending
    }

    fn wait(&mut self, watch: &Watch, limit: Duration, waiter: &Context<'_>) {
        // A limit past all time is as good as a very late one.
        let due = watch.start.checked_add(limit).unwrap_or_else(|| watch.start + FAR);
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

/// Listens to a call's own events, so that its deadline knows when the request left and when it got on.
struct Watch {
    events: Arc<dyn EventSink>,
    start: Instant,
    sent: Moment,
    progress: Moment,
    /// Questions to the caller that are open.
    questions: AtomicU64,
    /// When the first of those was asked.
    asked: Moment,
    /// How long the call waited for answers, in milliseconds.
    waited: AtomicU64,
    /// Who wants to hear that a question was answered.
    answered: AtomicWaker,
}

/// A moment after the start, in milliseconds; 0 is not yet.
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

impl Watch {
    fn new(events: Arc<dyn EventSink>, start: Instant) -> Self {
        let (sent, progress) = (Moment::default(), Moment::default());
        let questions = AtomicU64::new(0);
        let (asked, waited) = (Moment::default(), AtomicU64::new(0));
        Self { events, start, sent, progress, questions, asked, waited, answered: AtomicWaker::new() }
    }

    /// The request leaves. Where it is sent again after a session expired, the first time counts.
    fn leaves(&self) {
        let _ = self.sent.0.compare_exchange(0, self.stamp(), Ordering::AcqRel, Ordering::Acquire);
    }

    fn stamp(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl EventSink for Watch {
    fn emit(&self, event: Event) {
        match event.kind {
            EventKind::Sending => self.leaves(),
            EventKind::Progress { .. } => {
                self.progress.0.store(self.stamp(), Ordering::Release);
            }
            EventKind::Questioned { .. } => {
                let open = self.questions.fetch_add(1, Ordering::AcqRel);
                if open == 0 {
                    self.asked.0.store(self.stamp(), Ordering::Release);
                }
            }
            EventKind::Answered => {
                self.progress.0.store(self.stamp(), Ordering::Release);
                if self.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
                    let asked = self.asked.0.load(Ordering::Acquire);
                    self.waited.fetch_add(self.stamp().saturating_sub(asked), Ordering::AcqRel);
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
        self.leaves();
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
