//! Events of a running call, as one stream. The trace, the log and the statistics are derived from it.

use std::time::{Duration, SystemTime};

use crate::access_record::AccessRecord;
use crate::call::CallId;
use crate::lang::{Lang, Localize, LocalizedText};
use crate::source::{ServerId, Source};
use crate::tool::ToolName;
use crate::trace::TraceContext;

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Time of the event.
    pub at: SystemTime,
    /// The call it belongs to, if any.
    pub call: Option<CallId>,
    /// The kind of event, with its data.
    pub kind: EventKind,
}

impl Event {
    /// An event at the current time.
    pub fn now(call: Option<CallId>, kind: EventKind) -> Self {
        Self { at: SystemTime::now(), call, kind }
    }
}

/// The kinds of events.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A call was received.
    CallStarted {
        /// The requested tool.
        tool: ToolName,
        /// The call that makes this one, if a tool does.
        parent: Option<CallId>,
    },
    /// Routing has finished.
    Routed {
        /// The sources of the candidates, in order.
        candidates: Vec<Source>,
        /// The strategy.
        strategy: &'static str,
        /// The reasons.
        reasons: Vec<LocalizedText>,
    },
    /// A connection to a server is being established, on demand.
    Connecting {
        /// The server.
        server: ServerId,
    },
    /// A connection to a server is established.
    Connected {
        /// The server.
        server: ServerId,
        /// The MCP protocol generation.
        era: &'static str,
        /// The name that the server reports.
        peer: String,
        /// Duration of connecting.
        took: Duration,
    },
    /// A connection to a server failed.
    ConnectFailed {
        /// The server.
        server: ServerId,
        /// The cause.
        cause: LocalizedText,
    },
    /// A server's tools have been listed.
    Listed {
        /// The server.
        server: ServerId,
        /// Number of usable tools.
        tools: usize,
        /// Unusable tools, each with the reason.
        skipped: Vec<LocalizedText>,
    },
    /// An attempt to call a candidate has started.
    AttemptStarted {
        /// The source of the candidate.
        source: Source,
    },
    /// The request is being sent to the tool: from now on it may take effect.
    Sending,
    /// An attempt has ended.
    AttemptFinished {
        /// The source of the candidate.
        source: Source,
        /// Duration of the attempt.
        took: Duration,
        /// The error, if the attempt failed.
        error: Option<String>,
    },
    /// An attempt was cancelled because its result is no longer needed.
    AttemptCancelled {
        /// The source of the candidate.
        source: Source,
        /// Running time until cancellation.
        took: Duration,
    },
    /// Several results were merged.
    Merged {
        /// Their sources.
        sources: Vec<Source>,
        /// Agreements and conflicts of the sources.
        note: LocalizedText,
    },
    /// A failed attempt is retried after a pause.
    Retrying {
        /// The source of the candidate.
        source: Source,
        /// Duration of the pause.
        pause: Duration,
    },
    /// A tool reports progress.
    Progress {
        /// Current progress.
        progress: f64,
        /// Total, if known.
        total: Option<f64>,
        /// Description of the current work.
        message: Option<String>,
    },
    /// A server sends a request to the caller (elicitation, sampling); the deadline of the call is suspended.
    InputRequested {
        /// The MCP method of the request.
        method: String,
    },
    /// The request to the caller is answered.
    InputReceived,
    /// A message or incident of a server.
    ServerNote {
        /// The server.
        server: ServerId,
        /// The text.
        text: LocalizedText,
    },
    /// Reports whether a running `toolhub serve` connects to a server instead of this process.
    RunningHub {
        /// The server.
        server: ServerId,
        /// Confirmation, or the reason why not.
        text: LocalizedText,
    },
    /// The call has ended.
    CallFinished {
        /// Whether it succeeded.
        success: bool,
        /// Total duration.
        took: Duration,
    },
    /// A request to a language model was sent.
    ModelRequested {
        /// The model.
        model: String,
        /// The purpose of the request.
        purpose: LocalizedText,
    },
    /// A language model has replied.
    ModelReplied {
        /// Duration of the request.
        took: Duration,
        /// Input and output tokens, if reported.
        tokens: Option<(u64, u64)>,
    },
    /// A request to a language model failed.
    ModelFailed {
        /// The cause.
        why: LocalizedText,
    },
    /// A plan for a request is ready.
    Planned {
        /// Its steps.
        steps: Vec<String>,
        /// Problems: steps that are impossible or lack information.
        problems: Vec<LocalizedText>,
    },
    /// A step of a plan has started.
    StepStarted {
        /// The step.
        step: String,
        /// Its description.
        description: String,
        /// Its tool.
        tool: Option<ToolName>,
    },
    /// A step of a plan has ended.
    StepFinished {
        /// The step.
        step: String,
        /// Duration of the step.
        took: Duration,
        /// The error, if the step failed.
        error: Option<LocalizedText>,
    },
    /// The trace context of the call. With a source, that of the attempt there, as sent to its server.
    Traced {
        /// The source of the attempt, if the span is that of an attempt.
        source: Option<Source>,
        /// The trace context.
        trace: TraceContext,
    },
    /// The caller disconnected or cancelled before the call ended.
    CallAbandoned,
    /// A request of a gateway client was answered.
    RequestServed(Box<AccessRecord>),
    /// An internal error of toolhub, in full.
    InternalError {
        /// Details of the error.
        detail: String,
    },
}

impl Localize for EventKind {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::CallStarted { tool, .. } => lang.choose(format!("call `{tool}`"), format!("调用 `{tool}`")),
            Self::Routed { candidates, strategy, reasons } => {
                let order = candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ");
                let why = reasons.iter().map(|reason| reason.localize(lang)).collect::<Vec<_>>();
                let why = why.join(lang.choose("; ", "；"));
                lang.choose(
                    format!("route: {order} ({strategy}): {why}"),
                    format!("路由：{order}（{strategy}）：{why}"),
                )
            }
            Self::Connecting { server } => {
                lang.choose(format!("connecting to `{server}`"), format!("正在连接 `{server}`"))
            }
            Self::Connected { server, era, peer, took } => lang.choose(
                format!("connected to `{server}` ({peer}, {era}) in {} ms", took.as_millis()),
                format!("已连接 `{server}`（{peer}，{era}），用时 {} 毫秒", took.as_millis()),
            ),
            Self::ConnectFailed { server, cause } => {
                let cause = cause.localize(lang);
                lang.choose(
                    format!("could not connect to `{server}`: {cause}"),
                    format!("无法连接 `{server}`：{cause}"),
                )
            }
            Self::Listed { server, tools, skipped } => {
                let s = if *tools == 1 { "" } else { "s" };
                let mut text = lang.choose(
                    format!("`{server}` has {tools} tool{s}"),
                    format!("`{server}` 有 {tools} 个工具"),
                );
                if !skipped.is_empty() {
                    let list = skipped.iter().map(|skipped| skipped.localize(lang)).collect::<Vec<_>>();
                    let list = list.join(lang.choose("; ", "；"));
                    text += &lang.choose(format!(", skipped: {list}"), format!("，跳过：{list}"));
                }
                text
            }
            Self::AttemptStarted { source } => {
                lang.choose(format!("trying {source}"), format!("尝试 {source}"))
            }
            Self::Sending => lang.choose("calling", "正在调用").to_owned(),
            Self::AttemptFinished { source, took, error: None } => lang.choose(
                format!("{source} succeeded in {} ms", took.as_millis()),
                format!("{source} 成功，用时 {} 毫秒", took.as_millis()),
            ),
            Self::AttemptFinished { source, took, error: Some(error) } => lang.choose(
                format!("{source} failed after {} ms: {error}", took.as_millis()),
                format!("{source} 失败，用时 {} 毫秒：{error}", took.as_millis()),
            ),
            Self::AttemptCancelled { source, took } => lang.choose(
                format!("{source} cancelled after {} ms: not needed any more", took.as_millis()),
                format!("{source} 已取消，用时 {} 毫秒：不再需要", took.as_millis()),
            ),
            Self::Merged { note, .. } => note.localize(lang),
            Self::Retrying { source, pause } => lang.choose(
                format!("trying {source} again in {} ms", pause.as_millis()),
                format!("{} 毫秒后重试 {source}", pause.as_millis()),
            ),
            Self::Progress { progress, total, message } => {
                let of = total.map(|total| format!("/{total}")).unwrap_or_default();
                let message = message.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
                lang.choose(
                    format!("progress {progress}{of}{message}"),
                    format!("进度 {progress}{of}{message}"),
                )
            }
            Self::InputRequested { method } => {
                lang.choose(format!("request to the caller: {method}"), format!("服务器请求输入：{method}"))
            }
            Self::InputReceived => lang.choose("the question is settled", "输入请求已有结果").to_owned(),
            Self::ServerNote { server, text } | Self::RunningHub { server, text } => {
                format!("`{server}`: {}", text.localize(lang))
            }
            Self::CallFinished { success: true, took } => lang.choose(
                format!("done in {} ms", took.as_millis()),
                format!("完成，用时 {} 毫秒", took.as_millis()),
            ),
            Self::CallFinished { success: false, took } => lang.choose(
                format!("failed after {} ms", took.as_millis()),
                format!("失败，用时 {} 毫秒", took.as_millis()),
            ),
            Self::ModelRequested { model, purpose } => {
                let purpose = purpose.localize(lang);
                lang.choose(format!("asking {model}: {purpose}"), format!("询问 {model}：{purpose}"))
            }
            Self::ModelReplied { took, tokens } => {
                let tokens = tokens.map(|(read, written)| {
                    lang.choose(
                        format!(", {read} tokens read, {written} written"),
                        format!("，读入 {read} token，写出 {written} token"),
                    )
                });
                lang.choose(
                    format!(
                        "the model answered in {} ms{}",
                        took.as_millis(),
                        tokens.as_deref().unwrap_or("")
                    ),
                    format!("模型已回答，用时 {} 毫秒{}", took.as_millis(), tokens.as_deref().unwrap_or("")),
                )
            }
            Self::ModelFailed { why } => {
                let why = why.localize(lang);
                lang.choose(format!("no answer from the model: {why}"), format!("模型没有回答：{why}"))
            }
            Self::Planned { steps, problems } => {
                let problems = problems.iter().map(|problem| problem.localize(lang));
                let parts: Vec<String> = steps.iter().cloned().chain(problems).collect();
                let parts = parts.join(lang.choose("; ", "；"));
                lang.choose(format!("plan: {parts}"), format!("计划：{parts}"))
            }
            Self::StepStarted { step, description, tool } => {
                let tool = tool.as_ref().map(|tool| format!(" (`{tool}`)")).unwrap_or_default();
                lang.choose(
                    format!("step {step}: {description}{tool}"),
                    format!("步骤 {step}：{description}{tool}"),
                )
            }
            Self::StepFinished { step, took, error: None } => lang.choose(
                format!("step {step} done in {} ms", took.as_millis()),
                format!("步骤 {step} 完成，用时 {} 毫秒", took.as_millis()),
            ),
            Self::StepFinished { step, took, error: Some(error) } => {
                let (error, took) = (error.localize(lang), took.as_millis());
                lang.choose(
                    format!("step {step} failed after {took} ms: {error}"),
                    format!("步骤 {step} 失败，用时 {took} 毫秒：{error}"),
                )
            }
            Self::Traced { trace, .. } => lang.choose(format!("trace {trace}"), format!("追踪 {trace}")),
            Self::CallAbandoned => lang.choose("the caller disconnected", "调用方已断开连接").to_owned(),
            Self::RequestServed(request) => request.localize(lang),
            Self::InternalError { detail } => {
                lang.choose(format!("fault: {detail}"), format!("内部错误：{detail}"))
            }
        }
    }
}
