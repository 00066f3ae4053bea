//! One try of one candidate: deadline, panic guard, and the tool's own error told from a success. The arguments
//! were checked while routing, since whether they fit decides who is a candidate at all.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;
use toolhub_core::{
    CallContext, Effect, Event, EventKind, EventSink, RawJson, Tool, ToolCall, ToolError, ToolHost,
    ToolOutput,
};

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
    /// Runs it. Dropping the future cancels the call.
    pub(crate) async fn run(self, events: &Arc<dyn EventSink>) -> Result<ToolOutput, ToolError> {
        let watch = Arc::new(Watch::new(Arc::clone(events)));
        let context = CallContext {
            call: self.call.id.clone(),
            conversation: self.call.conversation.clone(),
            caller: self.call.caller.clone(),
            events: Arc::clone(&watch) as Arc<dyn EventSink>,
        };
        let work = AssertUnwindSafe(self.host.call(self.tool, self.arguments, &context)).catch_unwind();
        // In a box: a timer wants more room around it than whatever holds it should have to give.
        let expiry = Box::pin(self.expiry(&watch));
        let finished = tokio::select! {
            // The work first: when it leaves its time changes, and who waited for that would be woken for nothing.
            biased;
            finished = work => finished,
            after = expiry => return Err(self.timed_out(after, &watch)),
        };
        match finished {
            Ok(Ok(output)) if output.is_error() => Err(own_error(output)),
            Ok(result) => result,
            Err(panic) => {
                let detail = format!("tool `{}` panicked: {}", self.tool.name(), panic_text(&*panic));
                context.emit(EventKind::Fault { detail });
                Err(ToolError::Panicked)
            }
        }
    }

    /// Waits until the attempt has had its time, and tells how much that was.
    async fn expiry(&self, watch: &Watch) -> Duration {
        loop {
            let limit = self.limit(watch);
            match limit.checked_sub(watch.start.elapsed()).filter(|left| !left.is_zero()) {
                None => return limit,
                Some(left) => {
                    tokio::select! {
                        () = tokio::time::sleep(left) => {}
                        () = watch.changed.notified() => {}
                    }
                }
            }
        }
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
    changed: Notify,
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
    fn new(events: Arc<dyn EventSink>) -> Self {
        let (sent, progress) = (Moment::default(), Moment::default());
        let questions = AtomicU64::new(0);
        let (asked, waited) = (Moment::default(), AtomicU64::new(0));
        let (start, changed) = (Instant::now(), Notify::new());
        Self { events, start, sent, progress, questions, asked, waited, changed }
    }

    fn stamp(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl EventSink for Watch {
    fn emit(&self, event: Event) {
        match event.kind {
            // Sent again after a session expired: the first time counts.
            EventKind::Sending => {
                let _ = self.sent.0.compare_exchange(0, self.stamp(), Ordering::AcqRel, Ordering::Acquire);
                self.changed.notify_one();
            }
            EventKind::Progress { .. } => {
                self.progress.0.store(self.stamp(), Ordering::Release);
                self.changed.notify_one();
            }
            EventKind::Questioned { .. } => {
                if self.questions.fetch_add(1, Ordering::AcqRel) == 0 {
                    self.asked.0.store(self.stamp(), Ordering::Release);
                }
                self.changed.notify_one();
            }
            EventKind::Answered => {
                self.progress.0.store(self.stamp(), Ordering::Release);
                if self.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
                    let asked = self.asked.0.load(Ordering::Acquire);
                    self.waited.fetch_add(self.stamp().saturating_sub(asked), Ordering::AcqRel);
                }
                self.changed.notify_one();
            }
            _ => {}
        }
        if self.events.is_deaf() {
            return;
        }
        self.events.emit(event);
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
