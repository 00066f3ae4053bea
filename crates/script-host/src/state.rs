//! The state of the one script of this process: what it has sent, and what it may still send.

use std::io::{Write as _, stdout};

use serde_json::value::RawValue;
use toolhub_core::millis::duration_millis;
use toolhub_script::protocol::{
    Call, Empty, Finish, FromHost, HostError, HostErrorKind, HostLimits, LogLevel, LogLine,
    MAX_UNKNOWN_TOOLS, NotAwaited, Ready, Sleep, ToolPath, VERSION, encode,
};
use toolhub_script::{MAX_PENDING_SLEEPS, MAX_SLEEPS};

use crate::cpu_time;

/// Why the script may not do something; it becomes an error inside the script.
#[derive(Debug)]
pub(crate) struct ScriptRefusal {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// The state of the script.
#[derive(Debug)]
pub(crate) struct ScriptState {
    pub(crate) limits: HostLimits,
    pub(crate) tools: Vec<ToolPath>,
    /// Milliseconds since 1970. Moves only when a sleep ends.
    pub(crate) clock: i64,
    random: u64,
    calls: u32,
    pub(crate) pending_calls: usize,
    sleeps: u32,
    /// Ends of pending sleeps on the script's clock.
    pending_sleeps: Vec<(u32, i64)>,
    log_bytes: usize,
    dropped_lines: u64,
    /// Names of tools that do not exist and that the script used.
    unknown_tools: Vec<String>,
    /// Whether the script may send nothing any more.
    pub(crate) is_finished: bool,
    /// The end with a value, until it is known which calls were not awaited.
    value: Option<Finish>,
}

impl ScriptState {
    pub(crate) fn new(limits: HostLimits, tools: Vec<ToolPath>, seed: u64, clock: i64) -> Self {
        Self {
            limits,
            tools,
            clock,
            random: seed,
            calls: 0,
            pending_calls: 0,
            sleeps: 0,
            pending_sleeps: Vec::new(),
            log_bytes: 0,
            dropped_lines: 0,
            unknown_tools: Vec::new(),
            is_finished: false,
            value: None,
        }
    }

    /// Whether a message of the hub can let the script go on.
    pub(crate) fn waits(&self) -> bool {
        self.pending_calls > 0 || !self.pending_sleeps.is_empty()
    }

    /// Sends a call and returns its number.
    pub(crate) fn call(&mut self, tool: &str, arguments: String) -> Result<u32, ScriptRefusal> {
        let limit = self.limits.calls;
        if self.is_finished {
            return Err(ended());
        }
        if self.calls >= limit {
            return Err(ScriptRefusal {
                kind: "limit",
                message: format!("a script may make {limit} calls"),
                hint: "use a tool that takes several items, or split the work into several scripts",
            });
        }
        if arguments.len() > self.limits.arguments {
            let kilobytes = self.limits.arguments >> 10;
            return Err(ScriptRefusal {
                kind: "limit",
                message: format!("the arguments of a call may have {kilobytes} kB"),
                hint: "send less at once",
            });
        }
        if toolhub_core::json::too_deep(&arguments).is_some() {
            return Err(ScriptRefusal {
                kind: "invalid_arguments",
                message: "the arguments are nested too deeply".to_owned(),
                hint: "send a flatter value",
            });
        }
        let arguments =
            RawValue::from_string(well_formed(arguments)).ok().filter(|raw| raw.get().starts_with('{'));
        let Some(arguments) = arguments else {
            return Err(ScriptRefusal {
                kind: "invalid_arguments",
                message: format!("`{tool}` takes one object with named arguments"),
                hint: "write `({ name: value })`",
            });
        };
        self.calls += 1;
        self.pending_calls += 1;
        send(&FromHost::Call(Call { id: self.calls, tool: tool.to_owned(), arguments }));
        Ok(self.calls)
    }

    /// Starts a sleep and returns its number.
    pub(crate) fn sleep(&mut self, ms: f64) -> Result<u32, ScriptRefusal> {
        if self.is_finished {
            return Err(ended());
        }
        if self.sleeps >= MAX_SLEEPS || self.pending_sleeps.len() >= MAX_PENDING_SLEEPS {
            return Err(ScriptRefusal {
                kind: "limit",
                message: "too many sleeps".to_owned(),
                hint: "sleep less often",
            });
        }
        self.sleeps += 1;
        let ms = ms.clamp(0.0, MAX_SLEEP_MS) as u64;
        let end = self.clock.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        self.pending_sleeps.push((self.sleeps, end));
        send(&FromHost::Sleep(Sleep { id: self.sleeps, ms }));
        Ok(self.sleeps)
    }

    /// Ends a sleep: the clock moves to its end, unless it is later already.
    pub(crate) fn wake(&mut self, id: u32) {
        if let Some(index) = self.pending_sleeps.iter().position(|(pending, _)| *pending == id) {
            let (_, end) = self.pending_sleeps.swap_remove(index);
            self.clock = self.clock.max(end);
        }
    }

    /// Sends a line of the log, or counts it if the log is full.
    pub(crate) fn log(&mut self, level: LogLevel, text: String) {
        let bytes = self.log_bytes.saturating_add(text.len() + 1);
        if self.is_finished {
            return;
        }
        if bytes > self.limits.log {
            self.dropped_lines += 1;
            return;
        }
        self.log_bytes = bytes;
        send(&FromHost::Log(LogLine { level, text }));
    }

    /// Keeps the name of a tool that does not exist, for the audit log of the hub.
    pub(crate) fn note_unknown_tool(&mut self, name: &str) {
        let is_full = self.unknown_tools.len() >= MAX_UNKNOWN_TOOLS;
        if !is_full && name.len() <= MAX_TOOL_NAME_BYTES && !self.unknown_tools.iter().any(|one| one == name)
        {
            self.unknown_tools.push(name.to_owned());
        }
    }

    /// A number from 0 to 1 (SplitMix64), the same for the same seed in every version.
    pub(crate) fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Ends the script with a value.
    pub(crate) fn finish(&mut self, json: String) {
        if json.len().saturating_add(self.log_bytes) > self.limits.output {
            return self.fail(HostError { kind: HostErrorKind::Output, ..HostError::default() });
        }
        if toolhub_core::json::too_deep(&json).is_some() {
            let message = "the value is nested too deeply".to_owned();
            return self.fail(HostError { kind: HostErrorKind::Result, message, ..HostError::default() });
        }
        let Ok(value) = RawValue::from_string(well_formed(json)) else {
            let message = "the value has no JSON form".to_owned();
            return self.fail(HostError { kind: HostErrorKind::Result, message, ..HostError::default() });
        };
        if !self.is_finished {
            self.is_finished = true;
            self.value = Some(Finish { value: Some(value), ..Finish::default() });
        }
    }

    /// Whether the script has ended with a value that is not sent yet.
    pub(crate) fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// Sends the value, with the calls that were not awaited.
    pub(crate) fn send_value(&mut self, not_awaited: Vec<NotAwaited>) {
        if let Some(value) = self.value.take() {
            self.send_end(Finish { not_awaited, ..value });
        }
    }

    /// Ends the script with an error.
    pub(crate) fn fail(&mut self, mut error: HostError) {
        for text in [&mut error.name, &mut error.message].into_iter().chain(&mut error.hint) {
            limit_text(text);
        }
        self.end(Finish { error: Some(error), ..Finish::default() });
    }

    fn end(&mut self, finished: Finish) {
        if !self.is_finished {
            self.is_finished = true;
            self.send_end(finished);
        }
    }

    fn send_end(&self, finished: Finish) {
        let cpu_ms = duration_millis(cpu_time::used());
        let (dropped_lines, unknown_tools) = (self.dropped_lines, self.unknown_tools.clone());
        let finished = Finish { dropped_lines, unknown_tools, cpu_ms, ..finished };
        send(&FromHost::Finished(Box::new(finished)));
    }
}

/// Bytes of the name of a tool. Longer names are those of no tool.
const MAX_TOOL_NAME_BYTES: usize = 256;

/// Longer sleeps end with the run.
const MAX_SLEEP_MS: f64 = 1e12;
/// Bytes of a text of an error.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Drops what exceeds the bytes of a text of an error.
fn limit_text(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    }
}

/// Replaces half of a surrogate pair, which the engine writes as an escape and most readers reject. Pairs are no escapes.
fn well_formed(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let is_half =
            escape.starts_with("\\ud") && escape.as_bytes().get(3).is_some_and(|digit| *digit >= b'8');
        let length = if is_half { 6 } else { 2 };
        let (escape, behind) = escape.split_at_checked(length).unwrap_or((escape, ""));
        text.push_str(if is_half { "\u{fffd}" } else { escape });
        rest = behind;
    }
    text.push_str(rest);
    text
}

fn ended() -> ScriptRefusal {
    ScriptRefusal { kind: "ended", message: "the script has ended".to_owned(), hint: "await the call" }
}

/// The first message.
pub(crate) fn send_ready(restricted: bool) {
    send(&FromHost::Ready(Ready { version: VERSION, restricted }));
}

/// The answer to the script.
pub(crate) fn send_started() {
    send(&FromHost::Started(Empty {}));
}

/// The end of a script that the engine could not stop.
pub(crate) fn send_out_of_time() {
    let error = HostError { kind: HostErrorKind::Cpu, ..HostError::default() };
    let cpu_ms = duration_millis(cpu_time::used());
    send(&FromHost::Finished(Box::new(Finish { error: Some(error), cpu_ms, ..Finish::default() })));
}

/// The script can go on only after a message of the hub.
pub(crate) fn send_idle() {
    send(&FromHost::Idle(Empty {}));
}

/// Writes a message. If the hub no longer reads, the end of stdin follows.
fn send(message: &FromHost) {
    if let Ok(line) = encode(message) {
        let mut stdout = stdout().lock();
        let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_halves_of_surrogate_pairs_alone() {
        for (json, expect) in [
            (r#"{"a\ud800":"\udfffx"}"#, "{\"a\u{fffd}\":\"\u{fffd}x\"}"),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800""#, "\"\\\\\u{fffd}\""),
            (r#""\u0000 😀 \ud7ff""#, r#""\u0000 😀 \ud7ff""#),
        ] {
            assert_eq!(well_formed(json.to_owned()), expect);
        }
    }

    #[test]
    fn random_numbers_are_those_of_the_seed() {
        let limits = HostLimits { cpu_ms: 0, memory: 0, calls: 0, output: 0, log: 0, arguments: 0 };
        let mut state = ScriptState::new(limits, Vec::new(), 1234567, 0);
        // The first output of SplitMix64 for this seed is 6457827717110365317.
        assert_eq!(state.random(), (6_457_827_717_110_365_317_u64 >> 11) as f64 / (1_u64 << 53) as f64);
    }
}
