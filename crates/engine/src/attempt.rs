//! One try of one candidate: deadline, panic guard, and the tool's own error told from a success. The arguments
//! were checked while routing, since whether they fit decides who is a candidate at all.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;
use toolhub_core::ports::Sent;
use toolhub_core::{
    CallContext, Effect, Event, EventKind, EventSink, Tool, ToolCall, ToolError, ToolHost, ToolOutput,
};

/// How long calls may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A call, counted from the moment it leaves for the tool; progress extends it.
    pub call: Duration,
    /// The most that progress can extend it to.
    pub cap: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { call: Duration::from_secs(30), cap: Duration::from_secs(300) }
    }
}

/// Who runs what.
pub(crate) struct Attempt<'a> {
    pub(crate) host: &'a dyn ToolHost,
    pub(crate) tool: &'a Tool,
    pub(crate) call: &'a ToolCall,
    pub(crate) limits: Limits,
}

impl Attempt<'_> {
    /// Runs it. Dropping the future cancels the call.
    pub(crate) async fn run(self, events: &Arc<dyn EventSink>) -> Result<ToolOutput, ToolError> {
        let watch = Arc::new(Watch::new(Arc::clone(events)));
        let context = CallContext {
            call: self.call.id.clone(),
            sent: Sent::default(),
            events: Arc::clone(&watch) as Arc<dyn EventSink>,
        };
        let work = AssertUnwindSafe(self.host.call(self.tool, &self.call.arguments, &context)).catch_unwind();
        let finished = tokio::select! {
            finished = work => finished,
            after = self.expiry(&watch, &context.sent) => return Err(self.timed_out(after, &context.sent)),
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
    async fn expiry(&self, watch: &Watch, sent: &Sent) -> Duration {
        loop {
            let since_start = watch.start.elapsed();
            let limit = match self.call.timeout {
                // The caller's own limit counts from the start, connecting included.
                Some(timeout) => Some(timeout),
                // Before the request leaves, the host's own deadline for connecting holds.
                None if !sent.is_raised() => None,
                None => Some(watch.first_sent() + self.limits.call),
            };
            // Progress gives a fresh span, up to the cap.
            let limit = limit.map(|limit| {
                let span = self.call.timeout.unwrap_or(self.limits.call);
                let extended = watch.last_progress().map_or(limit, |at| limit.max(at + span));
                extended.min(watch.first_sent() + self.limits.cap.max(span))
            });
            match limit {
                Some(limit) if since_start >= limit => return since_start,
                Some(limit) => {
                    tokio::select! {
                        () = tokio::time::sleep(limit - since_start) => {}
                        () = watch.changed.notified() => {}
                    }
                }
                None => {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(50)) => {}
                        () = watch.changed.notified() => {}
                    }
                    if sent.is_raised() {
                        watch.note_sent();
                    }
                }
            }
        }
    }

    fn timed_out(&self, after: Duration, sent: &Sent) -> ToolError {
        let harmless = self.tool.hints().read_only == Some(true);
        let effect = if sent.is_raised() && !harmless { Effect::Unknown } else { Effect::None };
        ToolError::TimedOut { after: self.call.timeout.unwrap_or(after), effect }
    }
}

/// Listens to a call's own events, so that progress can extend its deadline.
struct Watch {
    events: Arc<dyn EventSink>,
    start: Instant,
    progress: AtomicU64,
    sent: AtomicU64,
    changed: Notify,
}

impl Watch {
    fn new(events: Arc<dyn EventSink>) -> Self {
        let zero = || AtomicU64::new(0);
        Self { events, start: Instant::now(), progress: zero(), sent: zero(), changed: Notify::new() }
    }

    /// Milliseconds since the start, never 0, so that 0 can mean "not yet".
    fn stamp(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn note_sent(&self) {
        let _ = self.sent.compare_exchange(0, self.stamp(), Ordering::AcqRel, Ordering::Acquire);
    }

    fn first_sent(&self) -> Duration {
        Duration::from_millis(self.sent.load(Ordering::Acquire))
    }

    fn last_progress(&self) -> Option<Duration> {
        match self.progress.load(Ordering::Acquire) {
            0 => None,
            at => Some(Duration::from_millis(at)),
        }
    }
}

impl EventSink for Watch {
    fn emit(&self, event: Event) {
        if matches!(event.kind, EventKind::Progress { .. }) {
            self.progress.store(self.stamp(), Ordering::Release);
            self.changed.notify_one();
        }
        self.events.emit(event);
    }
}

fn own_error(output: ToolOutput) -> ToolError {
    let text = output.texts().0.join("\n");
    let message = if text.trim().is_empty() { output.result().get().to_owned() } else { text };
    ToolError::Failed { message, output: Some(Box::new(output)) }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
