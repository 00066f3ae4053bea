//! The result of a run as data, and its text for a model.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolhub_core::RawJson;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::excerpt::Position;
use crate::protocol::{LogLevel, LogLine};

/// Calls that a text lists.
const MAX_LISTED_CALLS: usize = 20;

/// The result of a run. A run that could not start is a report with a failure, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptReport {
    /// The value of the script, or why there is none.
    pub outcome: ScriptOutcome,
    /// What the script wrote with `console`.
    pub log: Vec<LogLine>,
    /// Lines of the log beyond the limit.
    pub dropped_lines: u64,
    /// The calls, in the order in which the script made them.
    pub calls: Vec<CallReport>,
    /// The time of the run.
    pub duration: Duration,
    /// CPU time that the script has used, without that of scripts that it has called.
    #[serde(default)]
    pub cpu: Duration,
}

/// The end of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ScriptOutcome {
    /// The value of `return` or of the last expression.
    Value(RawJson),
    /// There is no value.
    Failure(Box<ScriptFailure>),
}

/// One call of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReport {
    /// The number of the call, from 1.
    pub id: u32,
    /// The unique name of the tool.
    pub tool: String,
    /// How it ended.
    pub status: CallStatus,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallStatus {
    /// With a result.
    Succeeded,
    /// With an error of this kind.
    Failed(String),
    /// It was sent and cancelled when the run ended; the tool may have run.
    Cancelled,
    /// It was not sent.
    NotSent,
}

/// Why a run has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// What happened.
    pub message: LocalizedText,
    /// Where in the script.
    pub position: Option<Position>,
    /// That place with a caret.
    pub excerpt: Option<String>,
    /// The next step.
    pub hint: Option<LocalizedText>,
    /// The unique name of the tool that it concerns.
    pub tool: Option<String>,
    /// The signature of that tool.
    pub signature: Option<String>,
    /// The value that the script returned nevertheless, as JSON: for [`FailureKind::NotAwaited`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureKind {
    /// The script is not JavaScript. Nothing was called.
    Syntax,
    /// An error that the script did not catch.
    Thrown,
    /// An error of a tool that the script did not catch.
    Tool,
    /// It returned a value before calls had ended that it did not await, or without looking at their errors.
    NotAwaited,
    /// The script waits for a promise that nothing will settle.
    Stalled,
    /// It used up its CPU time.
    CpuLimit,
    /// It ran for too long.
    WallLimit,
    /// It used up its memory.
    MemoryLimit,
    /// Its result is too long.
    OutputLimit,
    /// Its result cannot be written as JSON.
    Result,
    /// The host process ended by itself or was killed.
    Crashed,
    /// The host process sent a message that it may not send, and was killed.
    Protocol,
    /// The journal has a call that was sent and has no end: it is unknown whether the tool ran. Nothing was called.
    Unknown,
    /// The script did something else than its journal says. Nothing was sent after that.
    Diverged,
    /// The journal cannot be read or written.
    Journal,
    /// The script or its input is too long, or its tools have duplicate names. Nothing was called.
    Rejected,
    /// No host process could be started. Nothing was called.
    NotStarted,
    /// Too many scripts run. Nothing was called.
    Busy,
}

impl FailureKind {
    /// A stable name, for records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Thrown => "thrown",
            Self::Tool => "tool",
            Self::NotAwaited => "not_awaited",
            Self::Stalled => "stalled",
            Self::CpuLimit => "cpu_limit",
            Self::WallLimit => "wall_limit",
            Self::MemoryLimit => "memory_limit",
            Self::OutputLimit => "output_limit",
            Self::Result => "result",
            Self::Crashed => "crashed",
            Self::Protocol => "protocol",
            Self::Unknown => "unknown",
            Self::Diverged => "diverged",
            Self::Journal => "journal",
            Self::Rejected => "rejected",
            Self::NotStarted => "not_started",
            Self::Busy => "busy",
        }
    }
}

impl ScriptFailure {
    /// A failure without a place in the script.
    pub fn new(kind: FailureKind, message: LocalizedText) -> Self {
        Self {
            kind,
            message,
            position: None,
            excerpt: None,
            hint: None,
            tool: None,
            signature: None,
            returned: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: LocalizedText) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl Localize for ScriptFailure {
    fn localize(&self, lang: Lang) -> String {
        let mut text = self.message.localize(lang);
        if let Some(Position { line, column }) = self.position {
            text.push_str(&lang.choose(
                format!(" (line {line}, column {column})"),
                format!("（第 {line} 行，第 {column} 列）"),
            ));
        }
        let hint = self.hint.as_ref().map(|hint| hint.localize(lang));
        for part in [self.excerpt.clone(), hint].into_iter().flatten() {
            text.push('\n');
            text.push_str(&part);
        }
        if let Some(signature) = &self.signature {
            let label = lang.choose("signature", "签名");
            text.push_str(&format!("\n{label}: {signature}"));
        }
        text
    }
}

impl ScriptReport {
    /// A report of a run that called nothing.
    pub fn failed(failure: ScriptFailure) -> Self {
        Self {
            outcome: ScriptOutcome::Failure(Box::new(failure)),
            log: Vec::new(),
            dropped_lines: 0,
            calls: Vec::new(),
            duration: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    /// The failure, if there is one.
    pub fn failure(&self) -> Option<&ScriptFailure> {
        match &self.outcome {
            ScriptOutcome::Failure(failure) => Some(failure),
            ScriptOutcome::Value(_) => None,
        }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&RawJson> {
        match &self.outcome {
            ScriptOutcome::Value(value) => Some(value),
            ScriptOutcome::Failure(_) => None,
        }
    }

    /// Calls without an end when the run ended: those that `Promise.race` or `Promise.any` left, those that the script did not
    /// await, and those that a failure cut off.
    pub fn unfinished_calls(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter(|call| matches!(call.status, CallStatus::Cancelled | CallStatus::NotSent))
    }

    /// Whether a tool may have run: a call has ended, or was cancelled after it was sent.
    pub fn may_have_called(&self) -> bool {
        self.calls.iter().any(|call| call.status != CallStatus::NotSent)
    }

    /// Everything that a model needs beside the value: the failure, the log, the calls without an end and, after a
    /// failure, the calls that ran before it. Empty if there is nothing to say.
    pub fn notes(&self, lang: Lang) -> String {
        let mut parts = Vec::new();
        if let Some(failure) = self.failure() {
            parts.push(failure.localize(lang));
            let listed = listed(&self.calls.iter().collect::<Vec<_>>(), lang);
            if !listed.is_empty() {
                let label = match failure.kind {
                    FailureKind::NotAwaited => lang.choose("calls of the script", "脚本的调用"),
                    _ => lang.choose("calls before the failure", "失败前的调用"),
                };
                parts.push(format!("{label}: {listed}"));
            }
            if let Some(returned) = &failure.returned {
                parts.push(
                    lang.choose(
                        format!("the script returned: {returned}"),
                        format!("脚本的返回值：{returned}"),
                    ),
                );
            }
        } else {
            let listed = listed(&self.unfinished_calls().collect::<Vec<_>>(), lang);
            if !listed.is_empty() {
                let label = lang.choose(
                    "calls that had not ended when the script ended, and were cancelled",
                    "脚本结束时尚未结束、已被取消的调用",
                );
                parts.push(format!("{label}: {listed}"));
            }
        }
        if !self.log.is_empty() {
            let lines: Vec<String> = self.log.iter().map(log_text).collect();
            parts.push(format!("{}:\n{}", lang.choose("log", "日志"), lines.join("\n")));
        }
        if self.dropped_lines > 0 {
            let count = self.dropped_lines;
            parts.push(lang.choose(
                format!("{count} more lines of the log were dropped: log less"),
                format!("日志另有 {count} 行被丢弃：请减少日志"),
            ));
        }
        parts.join("\n")
    }
}

fn log_text(line: &LogLine) -> String {
    match line.level {
        LogLevel::Log | LogLevel::Info => line.text.clone(),
        LogLevel::Warn => format!("warning: {}", line.text),
        LogLevel::Error => format!("error: {}", line.text),
    }
}

/// What an interrupted script had called: calls that ended, those that were in flight, and those that were not started.
pub fn interruption_text(calls: &[CallReport]) -> LocalizedText {
    LocalizedText::new(interrupted_in(calls, Lang::En), interrupted_in(calls, Lang::Zh))
}

fn interrupted_in(calls: &[CallReport], lang: Lang) -> String {
    if calls.is_empty() {
        return lang
            .choose("cancelled before the script called a tool", "已取消：脚本尚未调用任何工具")
            .to_owned();
    }
    type Filter = fn(&CallStatus) -> bool;
    let groups: [(&str, Filter); 3] = [
        (lang.choose("ended", "已结束"), |status| {
            matches!(status, CallStatus::Succeeded | CallStatus::Failed(_))
        }),
        (lang.choose("in flight", "执行中"), |status| *status == CallStatus::Cancelled),
        (lang.choose("not started", "未开始"), |status| *status == CallStatus::NotSent),
    ];
    let mut parts = vec![lang.choose("cancelled", "已取消").to_owned()];
    for (label, is_in) in groups {
        let group: Vec<&CallReport> = calls.iter().filter(|call| is_in(&call.status)).collect();
        if !group.is_empty() {
            parts.push(format!("{label}: {}", listed(&group, lang)));
        }
    }
    parts.join("; ")
}

/// The calls with their ends. Of many calls the last are shown, since they are nearest to the end of the script.
fn listed(calls: &[&CallReport], lang: Lang) -> String {
    let hidden = calls.len().saturating_sub(MAX_LISTED_CALLS);
    let mut parts: Vec<String> = Vec::new();
    if hidden > 0 {
        parts.push(lang.choose(format!("{hidden} others"), format!("另有 {hidden} 次")));
    }
    parts.extend(calls.iter().skip(hidden).map(|call| call_text(call, lang)));
    parts.join(", ")
}

fn call_text(call: &CallReport, lang: Lang) -> String {
    let status = match &call.status {
        CallStatus::Succeeded => lang.choose("succeeded", "成功").to_owned(),
        CallStatus::Failed(kind) => lang.choose(format!("failed: {kind}"), format!("失败：{kind}")),
        CallStatus::Cancelled => lang.choose("cancelled, may have run", "已取消，可能已执行").to_owned(),
        CallStatus::NotSent => lang.choose("not sent", "未发送").to_owned(),
    };
    format!("{}. `{}` ({status})", call.id, call.tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: u32, status: CallStatus) -> CallReport {
        CallReport { id, tool: format!("tool{id}"), status }
    }

    #[test]
    fn notes_name_failure_place_and_calls() {
        let mut failure = ScriptFailure::new(FailureKind::Thrown, "TypeError: x".into());
        failure.position = Some(Position { line: 2, column: 5 });
        failure.excerpt = Some("2 | a.b\n  |   ^".to_owned());
        let mut report = ScriptReport::failed(failure);
        report.calls = vec![call(1, CallStatus::Succeeded), call(2, CallStatus::Cancelled)];
        assert_eq!(
            report.notes(Lang::En),
            "TypeError: x (line 2, column 5)\n2 | a.b\n  |   ^\ncalls before the failure: 1. `tool1` (succeeded), 2. `tool2` (cancelled, may have run)"
        );
        assert!(report.notes(Lang::Zh).contains("第 2 行，第 5 列"));
        assert!(report.may_have_called());
    }

    #[test]
    fn notes_of_a_success_name_calls_that_were_not_awaited() {
        let mut report = ScriptReport::failed(ScriptFailure::new(FailureKind::Thrown, "".into()));
        report.outcome = ScriptOutcome::Value(RawJson::null());
        assert_eq!(report.notes(Lang::En), "");
        report.calls = vec![call(1, CallStatus::Succeeded), call(2, CallStatus::NotSent)];
        assert!(report.notes(Lang::En).ends_with(": 2. `tool2` (not sent)"));
    }

    #[test]
    fn an_interruption_names_calls_by_what_became_of_them() {
        let calls = [
            call(1, CallStatus::Succeeded),
            call(2, CallStatus::Failed("timeout".to_owned())),
            call(3, CallStatus::Cancelled),
            call(4, CallStatus::NotSent),
        ];
        assert_eq!(
            interruption_text(&calls).localize(Lang::En),
            "cancelled; ended: 1. `tool1` (succeeded), 2. `tool2` (failed: timeout); in flight: 3. `tool3` (cancelled, may have run); not started: 4. `tool4` (not sent)"
        );
        assert!(interruption_text(&[]).localize(Lang::En).contains("before the script called"));
    }

    #[test]
    fn notes_list_the_last_of_many_calls() {
        let mut report = ScriptReport::failed(ScriptFailure::new(FailureKind::Thrown, "x".into()));
        report.calls = (1..=50).map(|id| call(id, CallStatus::Succeeded)).collect();
        let notes = report.notes(Lang::En);
        assert!(notes.contains("30 others, 31. `tool31`") && notes.contains("50. `tool50`"), "{notes}");
    }

    #[test]
    fn reports_survive_the_journal() {
        let mut report = ScriptReport::failed(ScriptFailure::new(FailureKind::Tool, "a".into()));
        report.calls = vec![call(1, CallStatus::Failed("timeout".to_owned()))];
        let text = serde_json::to_string(&report).unwrap();
        let read: ScriptReport = serde_json::from_str(&text).unwrap();
        assert_eq!((read.failure(), &read.calls), (report.failure(), &report.calls));
        report.outcome = ScriptOutcome::Value(RawJson::parse("{\"a\": [1]}").unwrap());
        let text = serde_json::to_string(&report).unwrap();
        let read: ScriptReport = serde_json::from_str(&text).unwrap();
        assert_eq!(read.value().map(RawJson::get), Some("{\"a\": [1]}"));
    }
}
