//! The failures of a run, with their texts in both languages.

use std::collections::HashMap;
use std::time::Duration;

use toolhub_core::RawJson;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::script_host::{ScriptHostEnd, ScriptHostEndCause};

use crate::excerpt;
use crate::host_process::StartError;
use crate::journal::CallRecord;
use crate::limits::ScriptLimits;
use crate::protocol::{HostError, HostErrorKind, NotAwaited};
use crate::report::{CallReport, FailureKind, ScriptFailure};
use crate::tools::ScriptTool;
use crate::violation::Violation;

/// Calls that a message names.
const MAX_NAMED_CALLS: usize = 10;
/// Characters of a message of the script that are kept.
const MAX_MESSAGE_CHARS: usize = 4_000;

impl From<Violation> for Box<ScriptFailure> {
    fn from(violation: Violation) -> Self {
        let (en, zh) = match violation {
            Violation::Malformed => ("a message that cannot be read", "无法解析的消息"),
            Violation::LineTooLong => ("a message that is too long", "过长的消息"),
            Violation::Unexpected => ("a message out of order", "顺序错误的消息"),
            Violation::CallNumber => ("a call with a wrong number", "编号错误的调用"),
            Violation::TooManyCalls => ("more calls than allowed", "超出数量限制的调用"),
            Violation::UnknownTool => ("a call of a tool that it was not given", "对未提供的工具的调用"),
            Violation::Arguments => ("a value of a form that is not allowed", "格式不允许的值"),
            Violation::ArgumentsTooLong => ("arguments that are too long", "过长的参数"),
            Violation::Sleep => ("a sleep that is not allowed", "不允许的等待"),
            Violation::LogTooLong => ("more log than allowed", "超出限制的日志"),
            Violation::OutputTooLong => ("a longer result than allowed", "超出长度限制的结果"),
        };
        fresh(
            FailureKind::Protocol,
            LocalizedText::new(
                format!("the script host sent {en} and was killed"),
                format!("脚本宿主进程发送了{zh}，已被终止"),
            ),
        )
    }
}

fn fresh(kind: FailureKind, message: LocalizedText) -> Box<ScriptFailure> {
    Box::new(ScriptFailure::new(kind, message))
}

fn fresh_with_hint(kind: FailureKind, message: LocalizedText, hint: LocalizedText) -> Box<ScriptFailure> {
    Box::new(ScriptFailure::new(kind, message).with_hint(hint))
}

/// A failure that a host reports.
pub(crate) fn of_host(
    error: &HostError,
    code: &str,
    tools: &HashMap<String, ScriptTool>,
    limits: &ScriptLimits,
) -> Box<ScriptFailure> {
    let position = excerpt::checked(code, error.line, error.column);
    let tool = error.tool.as_ref().and_then(|name| tools.get(name));
    let kind = match error.kind {
        HostErrorKind::Syntax => FailureKind::Syntax,
        HostErrorKind::Thrown if error.call_kind.is_some() => FailureKind::Tool,
        HostErrorKind::Thrown => FailureKind::Thrown,
        HostErrorKind::Stalled => FailureKind::Stalled,
        HostErrorKind::Cpu => FailureKind::CpuLimit,
        HostErrorKind::Memory => FailureKind::MemoryLimit,
        HostErrorKind::Output => FailureKind::OutputLimit,
        HostErrorKind::Result => FailureKind::Result,
    };
    let said = said(error);
    let mut failure = match kind {
        FailureKind::Stalled => stalled(),
        FailureKind::CpuLimit => cpu(limits.cpu),
        FailureKind::MemoryLimit => memory(limits.memory),
        FailureKind::OutputLimit => output(limits),
        FailureKind::Result => fresh(
            kind,
            LocalizedText::new(
                format!("the result cannot be written as JSON: {said}"),
                format!("结果无法转换为 JSON：{said}"),
            ),
        ),
        FailureKind::Tool if tool.is_some() => {
            let name = tool.map_or("", |tool| tool.path.name.as_str());
            let kind_name = error.call_kind.as_deref().unwrap_or_default();
            fresh(
                kind,
                LocalizedText::new(
                    format!("the call of `{name}` failed ({}): {said}", ellipsized(kind_name)),
                    format!("调用 `{name}` 失败（{}）：{said}", ellipsized(kind_name)),
                ),
            )
        }
        _ => fresh(kind, said.into()),
    };
    failure.position = position;
    failure.excerpt = position.map(|position| excerpt::excerpt(code, position));
    if let Some(hint) = &error.hint {
        failure.hint = Some(ellipsized(hint).into());
    }
    failure.tool = tool.map(|tool| tool.path.name.clone());
    failure
}

/// A script that returned a value without awaiting these calls. The place is that of the first one.
pub(crate) fn not_awaited(
    calls: &[(&CallReport, NotAwaited)],
    code: &str,
    value: &RawJson,
) -> Box<ScriptFailure> {
    let place = |call: &NotAwaited| excerpt::checked(code, call.line, call.column);
    let first = calls.first();
    let names = |lang: Lang| {
        let name = |(report, call): &(&CallReport, NotAwaited)| {
            let line = place(call).map(|place| {
                lang.choose(format!(" at line {}", place.line), format!("（第 {} 行）", place.line))
            });
            format!("`{}`{}", report.tool, line.unwrap_or_default())
        };
        let shown: Vec<String> = calls.iter().take(MAX_NAMED_CALLS).map(name).collect();
        shown.join(lang.choose(", ", "、"))
    };
    let message = match calls {
        // The place follows the message.
        [(report, _)] => LocalizedText::new(
            format!("the call of `{}` was not awaited", report.tool),
            format!("未等待对 `{}` 的调用", report.tool),
        ),
        _ => LocalizedText::new(
            format!("{} calls were not awaited: {}", calls.len(), names(Lang::En)),
            format!("有 {} 次调用未被等待：{}", calls.len(), names(Lang::Zh)),
        ),
    };
    let hint = LocalizedText::new(
        "write `await` before the call, or await `Promise.all` with its promise; what was cancelled may have run",
        "请在调用前写 `await`，或用 `Promise.all` 等待其 Promise；被取消的调用可能已经执行",
    );
    let mut failure = fresh_with_hint(FailureKind::NotAwaited, message, hint);
    failure.position = first.and_then(|(_, call)| place(call));
    failure.excerpt = failure.position.map(|position| excerpt::excerpt(code, position));
    failure.tool = first.map(|(report, _)| report.tool.clone());
    failure.returned = Some(value.get().to_owned());
    failure
}

/// `NAME: MESSAGE`, bounded.
fn said(error: &HostError) -> String {
    let (name, message) = (ellipsized(&error.name), ellipsized(&error.message));
    match error.call_kind {
        Some(_) => message,
        None if name.is_empty() => message,
        None => format!("{name}: {message}"),
    }
}

/// At most `MAX_MESSAGE_CHARS` characters of a text, with `…` after them if there are more.
fn ellipsized(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn stalled() -> Box<ScriptFailure> {
    fresh_with_hint(
        FailureKind::Stalled,
        LocalizedText::new(
            "the script waits for a promise that nothing will settle",
            "脚本在等待一个永远不会完成的 Promise",
        ),
        LocalizedText::new(
            "await calls of tools and `sleep(ms)`; there are no other events",
            "请等待工具调用或 `sleep(ms)`；没有其他事件",
        ),
    )
}

pub(crate) fn cpu(limit: Duration) -> Box<ScriptFailure> {
    let seconds = limit.as_secs_f64();
    fresh_with_hint(
        FailureKind::CpuLimit,
        LocalizedText::new(
            format!("the script used more than {seconds} s of CPU time and was stopped"),
            format!("脚本占用 CPU 超过 {seconds} 秒，已停止"),
        ),
        LocalizedText::new(
            "look for an endless loop, or process less data",
            "请检查是否有死循环，或减少处理的数据",
        ),
    )
}

pub(crate) fn wall(limit: Duration) -> Box<ScriptFailure> {
    let seconds = limit.as_secs_f64();
    fresh_with_hint(
        FailureKind::WallLimit,
        LocalizedText::new(
            format!("the script ran for more than {seconds} s and was stopped"),
            format!("脚本运行超过 {seconds} 秒，已停止"),
        ),
        LocalizedText::new(
            "call tools in parallel with `Promise.all`, or split the work into several scripts",
            "请用 `Promise.all` 并行调用，或拆成多个脚本",
        ),
    )
}

fn memory(limit: u64) -> Box<ScriptFailure> {
    let megabytes = limit >> 20;
    fresh_with_hint(
        FailureKind::MemoryLimit,
        LocalizedText::new(
            format!("the script needs more than {megabytes} MB of memory and was stopped"),
            format!("脚本占用内存超过 {megabytes} MB，已停止"),
        ),
        LocalizedText::new(
            "keep only the fields that you need, and process results page by page",
            "请只保留需要的字段，并分页处理结果",
        ),
    )
}

fn output(limits: &ScriptLimits) -> Box<ScriptFailure> {
    let kilobytes = limits.output >> 10;
    fresh_with_hint(
        FailureKind::OutputLimit,
        LocalizedText::new(
            format!("the result and the log have more than {kilobytes} kB"),
            format!("结果和日志超过 {kilobytes} kB"),
        ),
        LocalizedText::new(
            "return only what matters: counts, sums, the few items that were asked for",
            "请只返回必要内容：计数、汇总、所需的少量条目",
        ),
    )
}

/// A host that ended without a result.
pub(crate) fn exited(end: &ScriptHostEnd, limits: &ScriptLimits) -> Box<ScriptFailure> {
    match end.cause {
        ScriptHostEndCause::Memory => memory(limits.memory),
        ScriptHostEndCause::Cpu => cpu(limits.cpu),
        ScriptHostEndCause::Other => fresh(
            FailureKind::Crashed,
            LocalizedText::new(
                format!("the script host ended before the script did: {}", end.text.localize(Lang::En)),
                format!("脚本宿主进程在脚本完成前结束：{}", end.text.localize(Lang::Zh)),
            ),
        ),
    }
}

/// No other machine runs the script, and this one must not.
pub(crate) fn not_placed(why: LocalizedText) -> Box<ScriptFailure> {
    fresh(FailureKind::NotStarted, why)
}

pub(crate) fn not_started(error: &StartError) -> Box<ScriptFailure> {
    fresh(FailureKind::NotStarted, error.text())
}

pub(crate) fn busy() -> Box<ScriptFailure> {
    fresh_with_hint(
        FailureKind::Busy,
        LocalizedText::new("too many scripts run at the same time", "同时运行的脚本过多"),
        LocalizedText::new("try again later", "请稍后重试"),
    )
}

pub(crate) fn too_long(subject: &LocalizedText, limit: usize) -> Box<ScriptFailure> {
    let kilobytes = limit >> 10;
    fresh(
        FailureKind::Rejected,
        LocalizedText::new(
            format!("{} has more than {kilobytes} kB", subject.localize(Lang::En)),
            format!("{}超过 {kilobytes} kB", subject.localize(Lang::Zh)),
        ),
    )
}

pub(crate) fn duplicate_tool(name: &str) -> Box<ScriptFailure> {
    fresh(
        FailureKind::Rejected,
        LocalizedText::new(
            format!("two tools of the script are called `{name}`"),
            format!("脚本有两个名为 `{name}` 的工具"),
        ),
    )
}

pub(crate) fn journal(error: &std::io::Error) -> Box<ScriptFailure> {
    fresh(
        FailureKind::Journal,
        LocalizedText::new(
            format!("the journal of the script cannot be written: {error}"),
            format!("无法写入脚本的日志文件：{error}"),
        ),
    )
}

pub(crate) fn journal_damaged() -> Box<ScriptFailure> {
    fresh(
        FailureKind::Journal,
        LocalizedText::new(
            "the journal of the script contradicts itself: it is not repeated",
            "脚本的日志文件自相矛盾：不会重新运行",
        ),
    )
}

pub(crate) fn other_script() -> Box<ScriptFailure> {
    fresh(
        FailureKind::Diverged,
        LocalizedText::new(
            "the journal belongs to another script, input or set of tools: nothing was called",
            "日志文件属于另一脚本、输入或工具集：未调用任何工具",
        ),
    )
}

pub(crate) fn unknown(calls: &[CallRecord]) -> Box<ScriptFailure> {
    let names: Vec<String> = calls.iter().map(|call| format!("{}. `{}`", call.id, call.tool)).collect();
    let names = names.join(", ");
    fresh_with_hint(
        FailureKind::Unknown,
        LocalizedText::new(
            format!(
                "these calls were sent and have no end, so they may have run: {names}; nothing was called again"
            ),
            format!("以下调用已发送但没有结果，可能已执行：{names}；未重新调用"),
        ),
        LocalizedText::new(
            "check what they changed, then run a new script for the rest",
            "请检查它们的影响，再用新脚本完成其余部分",
        ),
    )
}

pub(crate) fn diverged_call(call: &CallRecord, recorded: Option<&CallRecord>) -> Box<ScriptFailure> {
    let (id, tool) = (call.id, &call.tool);
    let before = recorded.map_or("?", |begun| begun.tool.as_str());
    let same_tool = before == tool;
    let (en, zh) = match same_tool {
        true => ("with other arguments", "但参数不同"),
        false => ("and not", "而不是"),
    };
    let (en, zh) = match same_tool {
        true => (format!("`{tool}` {en}"), format!("`{tool}`，{zh}")),
        false => (format!("`{before}` {en} `{tool}`"), format!("`{before}`，{zh} `{tool}`")),
    };
    fresh(
        FailureKind::Diverged,
        LocalizedText::new(
            format!("the script does not repeat its journal: call {id} was {en}; nothing was sent"),
            format!("脚本与其日志不一致：第 {id} 次调用原为 {zh}；未发送"),
        ),
    )
}

pub(crate) fn diverged_missing() -> Box<ScriptFailure> {
    fresh(
        FailureKind::Diverged,
        LocalizedText::new(
            "the script does not repeat its journal: it did not make all calls and sleeps of its journal; nothing was sent",
            "脚本与其日志不一致：未完成日志中的全部调用和等待；未发送",
        ),
    )
}

/// A value that cannot be encoded, although it was decoded before.
#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
pub(crate) fn internal(error: serde_json::Error) -> Box<ScriptFailure> {
    fresh(FailureKind::Crashed, error.to_string().into())
}
