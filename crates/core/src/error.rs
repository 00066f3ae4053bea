//! Errors of calls, as messages for models and users in both languages, with the next step.

use std::time::Duration;

use crate::json::RawJson;
use crate::lang::{Lang, Localize, LocalizedText};
use crate::output::ToolOutput;
use crate::shell;
use crate::source::{ServerId, Source};
use crate::tool::ToolName;

/// The JSON-RPC error code for a method that does not exist or that the receiver does not support (JSON-RPC 2.0, section 5.1).
pub const METHOD_NOT_FOUND: i64 = -32601;

/// The possible effect of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// None: the tool certainly did not run.
    None,
    /// The tool may have run.
    Unknown,
}

impl Effect {
    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum ToolError {
    /// There is no such tool, or not at the requested source.
    UnknownTool(Box<UnknownTool>),
    /// The call names a source that is not configured; it was not executed.
    UnknownSource {
        /// The name.
        name: String,
        /// Similar names of configured sources.
        near: Vec<String>,
    },
    /// No tool has the capability, or none of those accepts the arguments.
    NoneCapable {
        /// The requested capability.
        capability: String,
        /// Number of tools that have it but do not accept the arguments.
        have: usize,
        /// The available capabilities.
        known: Vec<String>,
    },
    /// The arguments do not match the schema.
    InvalidArguments {
        /// The tool.
        tool: ToolName,
        /// The mismatches.
        problems: Vec<ArgumentProblem>,
    },
    /// The tool's schema cannot be used to check arguments.
    UnusableSchema {
        /// The tool.
        tool: ToolName,
        /// What is wrong with the schema.
        detail: String,
    },
    /// A tool call in text could not be parsed.
    UnreadableCall {
        /// The syntax error, and the correct syntax.
        detail: LocalizedText,
    },
    /// A server could not be reached.
    ConnectionFailed {
        /// The server.
        server: ServerId,
        /// The cause; with an unknown effect, a predicate about the server: "stopped during the call (exit 3)".
        cause: LocalizedText,
        /// The last lines of its standard error.
        stderr: Vec<String>,
        /// Whether the call may already have run.
        effect: Effect,
        /// Whether retrying is pointless until something is changed.
        permanent: bool,
    },
    /// A server responded with an HTTP error status.
    HttpStatus {
        /// The server.
        server: ServerId,
        /// The status.
        status: u16,
        /// The beginning of the response body.
        body: String,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
        /// Whether the call may already have run. No status alone rules that out: proxies send 502, 503 and 504 if a
        /// response is cut off, and rate limiters may count completed work.
        effect: Effect,
    },
    /// A server requires authentication, and there are no credentials.
    LoginNeeded {
        /// The server.
        server: ServerId,
    },
    /// A server responded with a JSON-RPC error.
    Protocol {
        /// The server.
        server: ServerId,
        /// The error's code.
        code: i64,
        /// Its message.
        message: String,
        /// Additional data, if any.
        data: Option<RawJson>,
    },
    /// A server's response could not be parsed.
    Unreadable {
        /// The server.
        server: ServerId,
        /// What was wrong with the response.
        detail: String,
    },
    /// The tool ran and returned an error result.
    Failed {
        /// Its message, in both languages if the tool provides them.
        message: LocalizedText,
        /// The complete output, if it contains more than text.
        output: Option<Box<ToolOutput>>,
    },
    /// No response before the deadline.
    TimedOut {
        /// The time limit.
        after: Duration,
        /// The possible effect.
        effect: Effect,
    },
    /// The tool may change state, and its intent could not be written to the call log, so that it was not executed.
    NotRecorded {
        /// The cause.
        cause: LocalizedText,
    },
    /// Every candidate is quarantined: its definition differs from the approved one.
    Quarantined {
        /// The tool.
        tool: ToolName,
        /// Its source.
        place: Source,
    },
    /// The tool was not started, so that it had no effect.
    NotStarted {
        /// The cause and the next step.
        why: LocalizedText,
    },
    /// The worker of a cluster that ran the tool was lost during the call.
    WorkerLost {
        /// What happened to the worker.
        cause: LocalizedText,
    },
    /// The caller cancelled or disconnected.
    Cancelled,
    /// A native tool panicked.
    Panicked,
    /// An internal error of toolhub; logged in full at its origin.
    Internal,
}

/// A call of an unknown tool.
#[derive(Debug, Clone, Default)]
pub struct UnknownTool {
    /// The requested name.
    pub tool: String,
    /// The requested server, if the caller named one.
    pub server: Option<ServerId>,
    /// Similar names.
    pub near: Vec<String>,
    /// Other sources that have a tool of this name.
    pub elsewhere: Vec<Source>,
    /// Servers whose tools could not be listed, each with the reason.
    pub unlisted: Vec<(ServerId, LocalizedText)>,
}

/// A mismatch between the arguments and the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// The path of the argument (`data[0].name`); empty for the arguments as a whole.
    pub argument: String,
    /// The expectation of the schema.
    pub expected: ArgumentExpectation,
    /// The actual value as JSON, shortened; `None` if it is missing.
    pub actual: Option<String>,
}

/// The expectation of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentExpectation {
    /// A value is required.
    Present,
    /// The argument is not declared.
    Absent {
        /// The declared argument that was probably meant.
        near: Option<String>,
    },
    /// One of these JSON types.
    Type(Vec<String>),
    /// One of these values, as JSON.
    OneOf(Vec<String>),
    /// Another rule, as a text of the validator.
    Rule(LocalizedText),
    /// The number of further problems that are not listed.
    More(usize),
}

impl ToolError {
    /// An error that the tool itself reports.
    pub fn failed(message: impl Into<LocalizedText>) -> Self {
        Self::Failed { message: message.into(), output: None }
    }

    /// Machine-readable kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownTool(_) => "unknown_tool",
            Self::UnknownSource { .. } => "unknown_source",
            Self::NoneCapable { .. } => "none_capable",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::UnusableSchema { .. } => "unusable_schema",
            Self::UnreadableCall { .. } => "unreadable_call",
            Self::ConnectionFailed { .. } => "connection_failed",
            Self::HttpStatus { .. } => "http_status",
            Self::LoginNeeded { .. } => "login_needed",
            Self::Protocol { .. } => "mcp_error",
            Self::Unreadable { .. } => "unreadable_answer",
            Self::Failed { .. } => "tool_failed",
            Self::TimedOut { .. } => "timed_out",
            Self::NotRecorded { .. } => "not_recorded",
            Self::Quarantined { .. } => "quarantined",
            Self::NotStarted { .. } => "not_started",
            Self::WorkerLost { .. } => "worker_lost",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
            Self::Internal => "internal",
        }
    }

    /// The error without the next step.
    pub fn brief(&self, lang: Lang) -> String {
        match self {
            Self::ConnectionFailed { server, cause, effect: Effect::Unknown, .. } => {
                let cause = cause.localize(lang);
                lang.choose(format!("server `{server}` {cause}"), format!("服务器 `{server}` {cause}"))
            }
            Self::ConnectionFailed { server, cause, .. } => {
                let cause = cause.localize(lang);
                lang.choose(
                    format!("server `{server}` could not be reached: {cause}"),
                    format!("无法连接服务器 `{server}`：{cause}"),
                )
            }
            Self::TimedOut { after, effect } => {
                let after = Seconds(*after);
                let effect = match effect {
                    Effect::None => "",
                    Effect::Unknown => lang.choose("; whether it took effect is unknown", "；是否生效未知"),
                };
                lang.choose(
                    format!("no answer within {after}{effect}"),
                    format!("{after} 内没有回答{effect}"),
                )
            }
            Self::InvalidArguments { tool, problems } => {
                let list =
                    problems.iter().map(|problem| problem.localize(lang)).collect::<Vec<_>>().join("; ");
                lang.choose(
                    format!("wrong arguments for `{tool}`: {list}"),
                    format!("`{tool}` 的参数不对：{list}"),
                )
            }
            other => other.localize(lang),
        }
    }

    /// The last lines of a server's standard error before it failed.
    pub fn stderr_tail(&self) -> &[String] {
        match self {
            Self::ConnectionFailed { stderr, .. } => stderr,
            _ => &[],
        }
    }

    /// The possible effect of the failed attempt.
    pub fn effect(&self) -> Effect {
        match self {
            Self::UnknownTool(_)
            | Self::UnknownSource { .. }
            | Self::NoneCapable { .. }
            | Self::InvalidArguments { .. }
            | Self::UnusableSchema { .. }
            | Self::UnreadableCall { .. }
            | Self::NotRecorded { .. }
            | Self::Quarantined { .. }
            | Self::NotStarted { .. }
            | Self::LoginNeeded { .. } => Effect::None,
            Self::ConnectionFailed { effect, .. }
            | Self::TimedOut { effect, .. }
            | Self::HttpStatus { effect, .. } => *effect,
            // Codes that are certainly sent before a tool runs: unknown method (JSON-RPC 2.0, section 5.1), and the
            // header and version checks of 2026-07-28. Handlers and SDKs also send the other codes after the tool
            // ran: the TypeScript SDK sends -32602 if the result does not match `outputSchema`, handlers send -32700
            // or -32600 for any input they cannot parse, and -32021 if they find a capability missing midway.
            Self::Protocol { code, .. } => match *code {
                METHOD_NOT_FOUND | -32022 | -32020 => Effect::None,
                _ => Effect::Unknown,
            },
            Self::Unreadable { .. }
            | Self::Failed { .. }
            | Self::WorkerLost { .. }
            | Self::Cancelled
            | Self::Panicked
            | Self::Internal => Effect::Unknown,
        }
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::failed(message)
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        Self::failed(message)
    }
}

impl Localize for ToolError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::UnknownTool(unknown) => unknown.localize(lang),
            Self::UnknownSource { name, near } => {
                let hint = if near.is_empty() {
                    lang.choose("`toolhub servers list` lists the servers", "`toolhub servers list` 列出现有服务器").to_owned()
                } else {
                    let near = quoted(near);
                    lang.choose(format!("did you mean {near}?"), format!("是否想用 {near}？"))
                };
                lang.choose(
                    format!("there is no source `{name}`, nothing was executed; {hint}"),
                    format!("没有来源 `{name}`，未执行任何操作；{hint}"),
                )
            }
            Self::NoneCapable { capability, have: 0, known: capabilities } => {
                let capabilities = capabilities.join(", ");
                lang.choose(
                    format!("no tool is known to be good for `{capability}`; there is: {capabilities}"),
                    format!("没有适用于 `{capability}` 的工具；现有类别：{capabilities}"),
                )
            }
            Self::NoneCapable { capability, have: 1, .. } => lang.choose(
                format!(
                    "the one tool for `{capability}` does not accept these arguments; see `toolhub tools --tag {}`", shell::shell_quote(capability)
                ),
                format!("唯一的 `{capability}` 类工具不接受这些参数；见 `toolhub tools --tag {}`", shell::shell_quote(capability)),
            ),
            Self::NoneCapable { capability, have, .. } => lang.choose(
                format!(
                    "none of the {have} tools for `{capability}` accepts these arguments; see `toolhub tools --tag {}`", shell::shell_quote(capability)
                ),
                format!(
                    "{have} 个 `{capability}` 类工具都不接受这些参数；见 `toolhub tools --tag {}`", shell::shell_quote(capability)
                ),
            ),
            Self::InvalidArguments { tool, problems } => {
                let list = problems.iter().map(|problem| problem.localize(lang)).collect::<Vec<_>>().join("; ");
                lang.choose(
                    format!("wrong arguments for `{tool}`: {list}; see `toolhub tools show {}`", shell::shell_quote(tool.as_str())),
                    format!("`{tool}` 的参数不对：{list}；用 `toolhub tools show {}` 查看参数", shell::shell_quote(tool.as_str())),
                )
            }
            Self::UnusableSchema { tool, detail } => lang.choose(
                format!(
                    "the schema of `{tool}` cannot be used, so its arguments cannot be checked: {detail}"
                ),
                format!("`{tool}` 的参数 schema 无法使用，不能校验参数：{detail}"),
            ),
            Self::UnreadableCall { detail } => detail.localize(lang),
            Self::ConnectionFailed { server, stderr, effect, .. } => {
                let mut text = self.brief(lang);
                if *effect == Effect::Unknown {
                    text += lang.choose(
                        "; whether it took effect is unknown",
                        "；是否生效未知",
                    );
                }
                text += &lang.choose(
                    format!("; check it with `toolhub servers test {}`", shell::shell_quote(server.as_str())),
                    format!("；用 `toolhub servers test {}` 检查", shell::shell_quote(server.as_str())),
                );
                if !stderr.is_empty() {
                    text += lang.choose("\nlast stderr output:", "\nstderr 的最后输出：");
                    for line in stderr {
                        text += "\n  ";
                        text += line;
                    }
                }
                text
            }
            Self::HttpStatus { server, status, body, effect, .. } => {
                let mut suffix = if body.is_empty() { String::new() } else { format!(": {body}") };
                if *effect == Effect::Unknown {
                    suffix += lang.choose("; whether the call took effect is unknown", "；调用是否生效未知");
                }
                let hint = match status {
                    401 | 403 => lang.choose(
                        "; it requires authentication: set `headers` for it in mcp.json",
                        "；它要求身份验证：请在 mcp.json 中为它设置 `headers`",
                    ),
                    404 => lang.choose("; check the path of its url", "；请检查 url 的路径"),
                    _ => "",
                };
                lang.choose(
                    format!("server `{server}` answered with HTTP status {status}{suffix}{hint}"),
                    format!("服务器 `{server}` 返回 HTTP 状态 {status}{suffix}{hint}"),
                )
            }
            Self::LoginNeeded { server } => lang.choose(
                format!("server `{server}` requires a login: run `toolhub servers login {}`", shell::shell_quote(server.as_str())),
                format!("服务器 `{server}` 需要登录：请运行 `toolhub servers login {}`", shell::shell_quote(server.as_str())),
            ),
            Self::Protocol { server, code, message, .. } => lang.choose(
                format!("server `{server}` answered with MCP error {code}: {message}"),
                format!("服务器 `{server}` 返回 MCP 错误 {code}：{message}"),
            ),
            Self::Unreadable { server, detail } => lang.choose(
                format!("the answer of server `{server}` could not be read: {detail}"),
                format!("无法读懂服务器 `{server}` 的回答：{detail}"),
            ),
            Self::Failed { message, .. } => message.localize(lang),
            Self::TimedOut { .. } => {
                let text = self.brief(lang);
                lang.choose(
                    format!("{text}; allow more with `--timeout`"),
                    format!("{text}；可用 `--timeout` 延长"),
                )
            }
            Self::NotRecorded { cause } => lang.choose(
                format!("not executed: the call log is unavailable ({}). Fix the store (`toolhub doctor` tests it) or set `[store] required = false`", cause.localize(lang)),
                format!("未执行：调用日志不可用（{}）。请修复存储（可用 `toolhub doctor` 检查），或设置 `[store] required = false`", cause.localize(lang)),
            ),
            Self::Quarantined { tool, place: Source::Skill } => lang.choose(
                format!("`{tool}` is held back until you approve its skill as it is now: read it with `toolhub skills show {0}`, then `toolhub skills approve {0}`", shell::shell_quote(tool.as_str())),
                format!("`{tool}` 所属的技能尚未按现状批准，暂被隔离：先用 `toolhub skills show {0}` 查看，再用 `toolhub skills approve {0}` 批准", shell::shell_quote(tool.as_str())),
            ),
            Self::Quarantined { tool, place } => lang.choose(
                format!("`{tool}` of {place} is held back: it is not what was approved; see `toolhub tools diff {0} --source {1}`, then `toolhub tools approve {0} --source {1}`", shell::shell_quote(tool.as_str()), shell::shell_quote(&place.to_string())),
                format!("{place} 的 `{tool}` 已被隔离：与批准的定义不同；先看 `toolhub tools diff {0} --source {1}`，再用 `toolhub tools approve {0} --source {1}` 批准", shell::shell_quote(tool.as_str()), shell::shell_quote(&place.to_string())),
            ),
            Self::NotStarted { why } => why.localize(lang),
            Self::WorkerLost { cause } => cause.localize(lang) + lang.choose("; whether it took effect is unknown", "；是否生效未知"),
            Self::Cancelled => lang.choose("cancelled", "已取消").to_owned(),
            Self::Panicked => lang
                .choose("the tool crashed; this is a bug in the tool", "工具崩溃了，这是该工具的缺陷")
                .to_owned(),
            Self::Internal => lang
                .choose(
                    "something went wrong inside toolhub; run with `--trace` for more",
                    "toolhub 内部出错，用 `--trace` 查看详情",
                )
                .to_owned(),
        }
    }
}

impl Localize for UnknownTool {
    fn localize(&self, lang: Lang) -> String {
        let tool = &self.tool;
        let mut text = match &self.server {
            Some(server) => lang.choose(
                format!("server `{server}` has no tool `{tool}`"),
                format!("服务器 `{server}` 没有工具 `{tool}`"),
            ),
            None => lang.choose(format!("there is no tool `{tool}`"), format!("没有工具 `{tool}`")),
        };
        if !self.elsewhere.is_empty() {
            let places = quoted(&self.elsewhere);
            text += &lang.choose(
                format!("; it exists in {places}: leave out the source, or name that one"),
                format!("；它在 {places} 中：省略 source，或改用该来源"),
            );
        } else if !self.near.is_empty() {
            let near = quoted(&self.near);
            text += &lang.choose(format!("; did you mean {near}?"), format!("；是否想用 {near}？"));
        } else {
            text += lang.choose("; `toolhub tools` lists what there is", "；`toolhub tools` 列出所有工具");
        }
        let most = 2;
        if self.unlisted.len() > most {
            let more = self.unlisted.len() - most;
            text += &lang.choose(
                format!("; {more} more servers could not be listed, see `toolhub servers test`"),
                format!("；另有 {more} 个服务器无法列出工具，见 `toolhub servers test`"),
            );
        }
        for (server, cause) in self.unlisted.iter().take(most) {
            let cause = cause.localize(lang);
            text += &lang.choose(
                format!("; the tools of server `{server}` are not known: {cause}"),
                format!("；服务器 `{server}` 的工具未知：{cause}"),
            );
        }
        text
    }
}

impl Localize for ArgumentProblem {
    fn localize(&self, lang: Lang) -> String {
        if let ArgumentExpectation::More(count) = self.expected {
            return lang.choose(format!("and {count} more"), format!("另有 {count} 处"));
        }
        let name = if self.argument.is_empty() {
            lang.choose("the arguments", "参数").to_owned()
        } else {
            format!("`{}`", self.argument)
        };
        let expected = match &self.expected {
            ArgumentExpectation::Present => {
                return lang.choose(format!("{name} is missing"), format!("缺少 {name}"));
            }
            ArgumentExpectation::Absent { near: Some(near) } => {
                return lang.choose(
                    format!("there is no argument {name} (did you mean `{near}`?)"),
                    format!("没有参数 {name}（是否想用 `{near}`？）"),
                );
            }
            ArgumentExpectation::Absent { near: None } => {
                return lang.choose(format!("there is no argument {name}"), format!("没有参数 {name}"));
            }
            ArgumentExpectation::Type(types) => {
                let types: Vec<&str> = types.iter().map(|name| type_name(name, lang)).collect();
                types.join(lang.choose(" or ", "或"))
            }
            ArgumentExpectation::OneOf(values) => {
                let values = values.join(", ");
                lang.choose(format!("one of {values}"), format!("{values} 之一"))
            }
            ArgumentExpectation::Rule(rule) => rule.localize(lang),
            ArgumentExpectation::More(count) => count.to_string(),
        };
        // Chinese text has a space only before Latin letters and digits.
        let space = if expected.starts_with(|first: char| first.is_ascii()) { " " } else { "" };
        match &self.actual {
            Some(actual) => lang.choose(
                format!("{name} should be {expected}, got {actual}"),
                format!("{name} 应为{space}{expected}，实际为 {actual}"),
            ),
            None => {
                lang.choose(format!("{name} should be {expected}"), format!("{name} 应为{space}{expected}"))
            }
        }
    }
}

/// The name of a JSON type in a language; a name that is no JSON type stays as it is.
fn type_name(name: &str, lang: Lang) -> &str {
    let chinese = match name {
        "string" => "字符串",
        "integer" => "整数",
        "number" => "数字",
        "boolean" => "布尔值",
        "object" => "对象",
        "array" => "数组",
        other => other,
    };
    lang.choose(name, chinese)
}

fn quoted(names: &[impl std::fmt::Display]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Formats a duration for messages.
pub(crate) struct Seconds(pub(crate) Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 < Duration::from_secs(1) || self.0.subsec_millis() != 0 {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            write!(f, "{} s", self.0.as_secs())
        }
    }
}
