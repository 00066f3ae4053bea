//! One run of a script: checks every message of its host, calls tools, and keeps the journal.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;
use toolhub_core::millis::duration_millis;
use toolhub_core::{BoxFuture, RawJson};

use crate::failure;
use crate::host::Host;
use crate::host_process::HostEvent;
use crate::journal::{
    AnswerRecord, AnswerResult, CallRecord, EntryDurability, Journal, JournalEntry, WakeRecord,
};
use crate::limits::{MAX_PENDING_SLEEPS, MAX_SLEEPS, ScriptLimits};
use crate::protocol::{
    AnswerMessage, Call, CallError, Finish, FromHost, LogLine, MAX_UNKNOWN_TOOLS, NotAwaited, Sleep, ToHost,
    Wake,
};
use crate::replay::{Delivery, JournalMatch, Replay};
use crate::report::{CallReport, CallStatus, ScriptFailure};
use crate::tools::{ScriptCall, ScriptTool, ScriptToolError, ScriptTools};
use crate::violation::Violation;

/// Bytes counted for each line of the log beside its text.
const LOG_LINE_BYTES: usize = 1;

/// Time after which buffered entries of the journal are stored. In a loop of short calls, one write serves many of them.
const MAX_BUFFER_TIME: Duration = Duration::from_millis(50);

/// What a run needs beside its host.
pub(crate) struct SessionSetup<'a> {
    pub(crate) code: &'a str,
    pub(crate) limits: ScriptLimits,
    pub(crate) tools: &'a dyn ScriptTools,
    pub(crate) listed: &'a HashMap<String, ScriptTool>,
    pub(crate) journal: Option<&'a mut dyn Journal>,
    pub(crate) replay: Option<Replay>,
    pub(crate) deadline: Instant,
}

/// The state of a run.
pub(crate) struct Session<'a> {
    host: Host,
    setup: SessionSetup<'a>,
    /// All calls, by number.
    calls: CallList<'a>,
    /// Calls that wait for others to end.
    queue: VecDeque<ScriptCall>,
    /// Sleeps that wait for the end of the replay.
    held_sleeps: Vec<Sleep>,
    sleeps: u32,
    pending_sleeps: usize,
    running_calls: usize,
    /// Bytes of the arguments of calls that wait or run. The script keeps none of them, so that its own limit does not bound them.
    held_bytes: usize,
    /// Running calls that only read. They are written to the journal together with their answers.
    running_reads: HashMap<u32, CallRecord>,
    running: FuturesUnordered<BoxFuture<'a, Completion>>,
    /// CPU time of inner scripts that was reported to the host.
    told_inner_cpu: Duration,
    /// The CPU time that the host reported at its end.
    reported_cpu: Option<Duration>,
    /// Messages to the host that allow it one more `idle`.
    idle_allowed: u64,
    /// Whether the journal may have entries that are not stored.
    has_buffered: bool,
    pub(crate) log: Vec<LogLine>,
    log_bytes: usize,
    pub(crate) dropped_lines: u64,
}

/// The calls of a run. If they are dropped before the end of the run, it was interrupted.
struct CallList<'a> {
    list: Vec<CallReport>,
    /// Those to tell of an interruption.
    tools: Option<&'a dyn ScriptTools>,
}

impl Drop for CallList<'_> {
    fn drop(&mut self) {
        if let Some(tools) = self.tools {
            tools.interrupted(&self.list);
        }
    }
}

/// Something that the script waits for has ended.
enum Completion {
    Call { id: u32, bytes: usize, result: Result<RawJson, ScriptToolError> },
    Sleep(u32),
}

/// The run goes on, or has a value.
enum RunStep {
    Continue,
    Value(RawJson),
}

/// Passes on the names of unlisted tools that a script used. The host may send others.
async fn note_unknown_tools(tools: &dyn ScriptTools, listed: &HashMap<String, ScriptTool>, names: &[String]) {
    for name in names.iter().take(MAX_UNKNOWN_TOOLS) {
        if !listed.contains_key(name) {
            tools.note_unknown_tool(name).await;
        }
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(host: Host, setup: SessionSetup<'a>) -> Self {
        Self {
            host,
            calls: CallList { list: Vec::new(), tools: Some(setup.tools) },
            queue: VecDeque::new(),
            held_sleeps: Vec::new(),
            sleeps: 0,
            pending_sleeps: 0,
            running_calls: 0,
            held_bytes: 0,
            running_reads: HashMap::new(),
            running: FuturesUnordered::new(),
            setup,
            told_inner_cpu: Duration::ZERO,
            reported_cpu: None,
            idle_allowed: 1,
            has_buffered: false,
            log: Vec::new(),
            log_bytes: 0,
            dropped_lines: 0,
        }
    }

    /// Drives the script to its end. Dropping the session kills the host.
    pub(crate) async fn run(&mut self) -> Result<RawJson, Box<ScriptFailure>> {
        let deadline = tokio::time::sleep_until(self.setup.deadline);
        let flush = tokio::time::sleep_until(self.setup.deadline);
        tokio::pin!(deadline, flush);
        // Whether `flush` is set to the time at which the journal is flushed.
        let mut is_flush_set = false;
        loop {
            self.start_queued().await?;
            if self.has_buffered && !is_flush_set {
                flush.as_mut().reset(Instant::now() + MAX_BUFFER_TIME);
                is_flush_set = true;
            }
            // The end of a host is noticed by reading.
            let reads = self.held_bytes < self.setup.limits.held_arguments() || !self.host.accepts_answers();
            let step = tokio::select! {
                event = self.host.next_if(reads) => self.on_event(event).await?,
                Some(done) = self.running.next(), if !self.running.is_empty() => {
                    self.on_done(done).await?;
                    RunStep::Continue
                }
                () = &mut flush, if is_flush_set => {
                    is_flush_set = false;
                    self.flush()?;
                    RunStep::Continue
                }
                () = &mut deadline => return Err(failure::wall(self.setup.limits.wall)),
            };
            if let RunStep::Value(value) = step {
                return Ok(value);
            }
        }
    }

    /// The calls, after the end of the run.
    pub(crate) fn take_calls(&mut self) -> Vec<CallReport> {
        self.calls.tools = None;
        std::mem::take(&mut self.calls.list)
    }

    /// CPU time that the script has used. A host that did not report it and is gone has used all.
    pub(crate) fn cpu(&self) -> Duration {
        match (self.host.cpu_time(), self.reported_cpu) {
            (Some(measured), Some(reported)) => measured.max(reported),
            (measured, reported) => measured.or(reported).unwrap_or(self.setup.limits.cpu),
        }
    }

    /// The host, which can no longer be used.
    pub(crate) fn into_host(self) -> Host {
        self.host
    }

    async fn on_event(&mut self, event: HostEvent) -> Result<RunStep, Box<ScriptFailure>> {
        let line = match event {
            HostEvent::Line(line) => line,
            // Calls that waited for this are sent now.
            HostEvent::Written => return Ok(RunStep::Continue),
            HostEvent::LineTooLong => return Err(Violation::LineTooLong.into()),
            HostEvent::Closed => {
                let end = self.host.end().await;
                return Err(failure::exited(&end, &self.setup.limits));
            }
        };
        let message = serde_json::from_slice(&line).map_err(|_| Violation::Malformed)?;
        match message {
            FromHost::Ready(_) | FromHost::Started(_) => return Err(Violation::Unexpected.into()),
            FromHost::Call(call) => self.on_call(call)?,
            FromHost::Sleep(sleep) => self.on_sleep(sleep)?,
            FromHost::Log(line) => self.on_log(line)?,
            FromHost::Idle(_) => self.on_idle()?,
            FromHost::Finished(finished) => {
                let (tools, listed) = (self.setup.tools, self.setup.listed);
                note_unknown_tools(tools, listed, &finished.unknown_tools).await;
                return self.on_finished(*finished).map(RunStep::Value);
            }
        }
        Ok(RunStep::Continue)
    }

    fn on_call(&mut self, call: Call) -> Result<(), Box<ScriptFailure>> {
        let expected = u32::try_from(self.calls.list.len()).unwrap_or(u32::MAX).saturating_add(1);
        if call.id != expected {
            return Err(Violation::CallNumber.into());
        }
        if call.id > self.setup.limits.calls {
            return Err(Violation::TooManyCalls.into());
        }
        if !self.setup.listed.contains_key(&call.tool) {
            return Err(Violation::UnknownTool.into());
        }
        let text: String = Box::<str>::from(call.arguments).into();
        if text.len() > self.setup.limits.arguments {
            return Err(Violation::ArgumentsTooLong.into());
        }
        let arguments = RawJson::parse(text).map_err(|_| Violation::Malformed)?;
        if !arguments.is_object() || arguments.too_deep().is_some() {
            return Err(Violation::Arguments.into());
        }
        self.calls.list.push(CallReport {
            id: call.id,
            tool: call.tool.clone(),
            status: CallStatus::NotSent,
        });
        let begun = CallRecord { id: call.id, tool: call.tool, arguments };
        let recorded = self.setup.replay.as_ref().map_or(JournalMatch::New, |replay| replay.compare(&begun));
        match recorded {
            JournalMatch::Same => {}
            JournalMatch::Other => {
                let recorded = self.setup.replay.as_ref().and_then(|replay| replay.begun(begun.id));
                return Err(failure::diverged_call(&begun, recorded));
            }
            JournalMatch::New => {
                let CallRecord { id, tool, arguments } = begun;
                self.held_bytes = self.held_bytes.saturating_add(arguments.get().len());
                self.queue.push_back(ScriptCall { id, tool, arguments });
            }
        }
        Ok(())
    }

    fn on_sleep(&mut self, sleep: Sleep) -> Result<(), Box<ScriptFailure>> {
        self.sleeps += 1;
        self.pending_sleeps += 1;
        if sleep.id != self.sleeps || self.sleeps > MAX_SLEEPS || self.pending_sleeps > MAX_PENDING_SLEEPS {
            return Err(Violation::Sleep.into());
        }
        match &self.setup.replay {
            // Either its end is in the journal, or it begins when the replay has ended.
            Some(_) => self.held_sleeps.push(sleep),
            None => self.start_sleep(&sleep),
        }
        Ok(())
    }

    fn start_sleep(&mut self, sleep: &Sleep) {
        let (id, time) = (sleep.id, Duration::from_millis(sleep.ms));
        // A sleep beyond the deadline never ends.
        let time = time.min(self.setup.limits.wall.saturating_add(Duration::from_secs(1)));
        self.running.push(Box::pin(async move {
            tokio::time::sleep(time).await;
            Completion::Sleep(id)
        }));
    }

    fn on_log(&mut self, line: LogLine) -> Result<(), Box<ScriptFailure>> {
        self.log_bytes = self.log_bytes.saturating_add(line.text.len() + LOG_LINE_BYTES);
        if self.log_bytes > self.setup.limits.log() {
            return Err(Violation::LogTooLong.into());
        }
        self.log.push(line);
        Ok(())
    }

    /// The host waits. During a replay it gets what the journal has next.
    fn on_idle(&mut self) -> Result<(), Box<ScriptFailure>> {
        self.idle_allowed = self.idle_allowed.checked_sub(1).ok_or(Violation::Unexpected)?;
        let Some(replay) = &mut self.setup.replay else { return Ok(()) };
        match replay.next() {
            None => {
                self.setup.replay = None;
                for sleep in std::mem::take(&mut self.held_sleeps) {
                    self.start_sleep(&sleep);
                }
                Ok(())
            }
            Some(Delivery::Answer(answer)) if answer.id as usize > self.calls.list.len() => {
                Err(failure::diverged_missing())
            }
            Some(Delivery::Wake(woken)) if !self.held_sleeps.iter().any(|held| held.id == woken.id) => {
                Err(failure::diverged_missing())
            }
            Some(_) => match replay.take() {
                Some(Delivery::Answer(answer)) => self.deliver_answer(&answer),
                Some(Delivery::Wake(woken)) => {
                    self.held_sleeps.retain(|held| held.id != woken.id);
                    self.deliver_wake(woken.id)
                }
                None => Ok(()),
            },
        }
    }

    fn on_finished(&mut self, finished: Finish) -> Result<RawJson, Box<ScriptFailure>> {
        self.dropped_lines = finished.dropped_lines;
        self.reported_cpu = Some(Duration::from_millis(finished.cpu_ms));
        if self.setup.replay.as_ref().is_some_and(|replay| replay.next().is_some()) {
            return Err(failure::diverged_missing());
        }
        match (finished.value, finished.error) {
            (Some(value), None) => {
                let text: String = Box::<str>::from(value).into();
                if text.len().saturating_add(self.log_bytes) > self.setup.limits.output {
                    return Err(Violation::OutputTooLong.into());
                }
                let value = RawJson::parse(text).map_err(|_| Violation::Malformed)?;
                if value.too_deep().is_some() {
                    return Err(Violation::Arguments.into());
                }
                match self.not_awaited(&finished.not_awaited)? {
                    calls if calls.is_empty() => Ok(value),
                    calls => Err(failure::not_awaited(&calls, self.setup.code, &value)),
                }
            }
            (None, Some(error)) => {
                let SessionSetup { code, listed, limits, tools, .. } = &self.setup;
                let mut failure = failure::of_host(&error, code, listed, limits);
                failure.signature = failure.tool.as_deref().and_then(|tool| tools.signature(tool));
                Err(failure)
            }
            _ => Err(Violation::Malformed.into()),
        }
    }

    /// The calls that the script did not await, checked.
    fn not_awaited(
        &self,
        claimed: &[NotAwaited],
    ) -> Result<Vec<(&CallReport, NotAwaited)>, Box<ScriptFailure>> {
        if claimed.len() > self.calls.list.len() {
            return Err(Violation::Unexpected.into());
        }
        let found = claimed.iter().map(|call| {
            let index = (call.id as usize).checked_sub(1);
            let report = index.and_then(|index| self.calls.list.get(index));
            report.map(|report| (report, call.clone())).ok_or_else(|| Violation::CallNumber.into())
        });
        found.collect()
    }

    /// Sends calls that wait, within the limit of concurrent calls. A host that does not read its answers gets no more.
    async fn start_queued(&mut self) -> Result<(), Box<ScriptFailure>> {
        while self.setup.replay.is_none()
            && self.running_calls < self.setup.limits.concurrent_calls
            && self.host.accepts_answers()
            && self.host.unsent() <= self.setup.limits.answer
        {
            let Some(call) = self.queue.pop_front() else { return Ok(()) };
            let begun =
                CallRecord { id: call.id, tool: call.tool.clone(), arguments: call.arguments.clone() };
            let is_read_only = self.setup.listed.get(&call.tool).is_some_and(|tool| tool.read_only);
            match is_read_only {
                // It may be made again after a crash.
                true => drop(self.running_reads.insert(call.id, begun)),
                false => {
                    self.append(&JournalEntry::Begun(begun), EntryDurability::Disk).await?;
                    // Only such a call can run another script.
                    self.setup.tools.set_cpu(self.host.cpu_time().unwrap_or_default());
                }
            }
            self.set_status(call.id, CallStatus::Cancelled);
            self.running_calls += 1;
            let tools = self.setup.tools;
            self.running.push(Box::pin(async move {
                let (id, bytes) = (call.id, call.arguments.get().len());
                let answer = AssertUnwindSafe(async { tools.call(call).await }).catch_unwind().await;
                let panicked = |_| Err(ScriptToolError::new("internal", "the tool failed unexpectedly"));
                let result = answer.unwrap_or_else(panicked);
                Completion::Call { id, bytes, result }
            }));
        }
        Ok(())
    }

    async fn on_done(&mut self, done: Completion) -> Result<(), Box<ScriptFailure>> {
        match done {
            Completion::Call { id, bytes, result } => {
                self.running_calls -= 1;
                self.held_bytes = self.held_bytes.saturating_sub(bytes);
                let called = self.calls.list.get(id as usize - 1);
                let signature = || self.setup.tools.signature(&called?.tool);
                let result = bounded(result, signature, self.setup.limits.answer);
                let answer = AnswerRecord { id, result };
                let mut durability = EntryDurability::Process;
                if let Some(begun) = self.running_reads.remove(&id) {
                    durability = EntryDurability::Buffered;
                    self.append(&JournalEntry::Begun(begun), durability).await?;
                }
                self.append(&JournalEntry::Answered(answer.clone()), durability).await?;
                self.deliver_answer(&answer)
            }
            Completion::Sleep(id) => {
                self.append(&JournalEntry::Woken(WakeRecord { id }), EntryDurability::Buffered).await?;
                self.deliver_wake(id)
            }
        }
    }

    fn deliver_answer(&mut self, answer: &AnswerRecord) -> Result<(), Box<ScriptFailure>> {
        let (value, error, status) = match &answer.result {
            AnswerResult::Value(value) => (Some(value), None, CallStatus::Succeeded),
            AnswerResult::Error(error) => (None, Some(error), CallStatus::Failed(error.kind.clone())),
        };
        self.set_status(answer.id, status);
        self.idle_allowed += 1;
        let inner = self.setup.tools.inner_cpu();
        let since = inner.saturating_sub(self.told_inner_cpu);
        // Shares of scripts that still run are given back in part.
        self.told_inner_cpu = self.told_inner_cpu.max(inner);
        let inner_cpu_ms = duration_millis(since);
        let message = AnswerMessage::Answer { id: answer.id, value, error, inner_cpu_ms };
        self.host.send(&message).map_err(failure::internal)
    }

    fn deliver_wake(&mut self, id: u32) -> Result<(), Box<ScriptFailure>> {
        self.pending_sleeps = self.pending_sleeps.saturating_sub(1);
        self.send(&ToHost::Wake(Wake { id }))
    }

    fn send(&mut self, message: &ToHost) -> Result<(), Box<ScriptFailure>> {
        self.idle_allowed += 1;
        self.host.send(message).map_err(failure::internal)
    }

    async fn append(
        &mut self,
        entry: &JournalEntry,
        durability: EntryDurability,
    ) -> Result<(), Box<ScriptFailure>> {
        let Some(journal) = &mut self.setup.journal else { return Ok(()) };
        self.has_buffered = durability == EntryDurability::Buffered;
        journal.append(entry, durability).await.map_err(|error| failure::journal(&error))
    }

    fn flush(&mut self) -> Result<(), Box<ScriptFailure>> {
        let Some(journal) = self.setup.journal.as_mut().filter(|_| self.has_buffered) else { return Ok(()) };
        self.has_buffered = false;
        journal.flush().map_err(|error| failure::journal(&error))
    }

    fn set_status(&mut self, id: u32, status: CallStatus) {
        if let Some(call) = (id as usize).checked_sub(1).and_then(|index| self.calls.list.get_mut(index)) {
            call.status = status;
        }
    }
}

/// The answer as the script sees it: not too long, and with the signature if the arguments were wrong.
fn bounded(
    result: Result<RawJson, ScriptToolError>,
    signature: impl FnOnce() -> Option<String>,
    max_bytes: usize,
) -> AnswerResult {
    match result {
        Ok(value) if value.get().len() > max_bytes => {
            let (length, limit) = (value.get().len() >> 10, max_bytes >> 10);
            AnswerResult::Error(CallError {
                kind: "too_large".to_owned(),
                message: format!("the result has {length} kB, a script can take {limit} kB"),
                hint: Some("ask the tool for less, for example a page or a range".to_owned()),
                signature: None,
            })
        }
        Ok(value) if value.too_deep().is_some() => AnswerResult::Error(CallError {
            kind: "too_large".to_owned(),
            message: "the result is nested too deeply".to_owned(),
            hint: None,
            signature: None,
        }),
        Ok(value) => AnswerResult::Value(value),
        Err(error) => AnswerResult::Error(error.into_call_error(signature)),
    }
}
