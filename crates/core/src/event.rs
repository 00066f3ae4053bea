//! What happens while a call runs, as one stream: the trace, the log and the statistics are views of it.

use std::time::{Duration, SystemTime};

use crate::access_record::AccessRecord;
use crate::call::CallId;
use crate::lang::{Lang, Say, Text};
use crate::source::{ServerId, Source};
use crate::tool::ToolName;
use crate::trace::TraceContext;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// When.
    pub at: SystemTime,
    /// During which call, if any.
    pub call: Option<CallId>,
    /// What.
    pub kind: EventKind,
}

impl Event {
    /// Something that happened just now.
    pub fn now(call: Option<CallId>, kind: EventKind) -> Self {
        Self { at: SystemTime::now(), call, kind }
    }
}

/// What happened.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A call came in.
    CallStarted {
        /// For which tool.
        tool: ToolName,
    },
    /// The router decided.
    Routed {
        /// Where the candidates live, in order.
        candidates: Vec<Source>,
        /// How they are run.
        strategy: &'static str,
        /// Why.
        reasons: Vec<Text>,
    },
    /// A server is being connected, because it is needed.
    Connecting {
        /// Which.
        server: ServerId,
    },
    /// A server is connected.
    Connected {
        /// Which.
        server: ServerId,
        /// What generation of MCP it speaks.
        era: &'static str,
        /// What it calls itself.
        peer: String,
        /// How long it took.
        took: Duration,
    },
    /// A server could not be connected.
    ConnectFailed {
        /// Which.
        server: ServerId,
        /// Why.
        cause: Text,
    },
    /// A server's tools are known.
    Listed {
        /// Which.
        server: ServerId,
        /// How many tools it has.
        tools: usize,
        /// Tools that could not be used, each with the reason.
        skipped: Vec<Text>,
    },
    /// A candidate is being tried.
    AttemptStarted {
        /// Where it lives.
        source: Source,
    },
    /// The request leaves for the tool: from here on it may take effect.
    Sending,
    /// An attempt ended.
    AttemptFinished {
        /// Where the candidate lives.
        source: Source,
        /// How long it took.
        took: Duration,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// An attempt is not needed any more, and was told so.
    AttemptCancelled {
        /// Where the candidate lives.
        source: Source,
        /// How long it ran.
        took: Duration,
    },
    /// Several answers became one.
    Merged {
        /// Where they came from.
        sources: Vec<Source>,
        /// Who agrees, who differs.
        note: Text,
    },
    /// A failed attempt is made again after a pause.
    Retrying {
        /// Where the candidate lives.
        source: Source,
        /// How long the pause is.
        pause: Duration,
    },
    /// A tool reports that it is getting on.
    Progress {
        /// How far it is.
        progress: f64,
        /// Of how much, where known.
        total: Option<f64>,
        /// What it is doing.
        message: Option<String>,
    },
    /// Whoever made the call is asked something before it can go on; its deadline waits.
    Questioned {
        /// What is asked for.
        method: String,
    },
    /// The question is settled.
    Answered,
    /// A server said or did something worth knowing.
    ServerNote {
        /// Which.
        server: ServerId,
        /// What.
        text: Text,
    },
    /// Whether a `toolhub serve` that runs already connects to a server in place of this process.
    RunningHub {
        /// Which server.
        server: ServerId,
        /// That it does, or why not.
        text: Text,
    },
    /// The call is over.
    CallFinished {
        /// Whether it succeeded.
        success: bool,
        /// How long it took.
        took: Duration,
    },
    /// A language model is asked.
    ModelAsked {
        /// Which.
        model: String,
        /// For what.
        purpose: Text,
    },
    /// A language model has answered.
    ModelAnswered {
        /// How long it took.
        took: Duration,
        /// Tokens read and written, where that was told.
        tokens: Option<(u64, u64)>,
    },
    /// A language model gave no answer.
    ModelFailed {
        /// Why.
        why: Text,
    },
    /// A request has a plan.
    Planned {
        /// What is to be done, step by step.
        steps: Vec<String>,
        /// What cannot be done, or is missing.
        problems: Vec<Text>,
    },
    /// A step of a plan begins.
    StepStarted {
        /// Which.
        step: String,
        /// What it does.
        description: String,
        /// With which tool.
        tool: Option<ToolName>,
    },
    /// A step of a plan is over.
    StepFinished {
        /// Which.
        step: String,
        /// How long it took.
        took: Duration,
        /// Why it failed, if it did.
        error: Option<Text>,
    },
    /// The call is part of a trace: it belongs to that span. Where a source is named, the attempt there is that span, and
    /// its server was told so.
    Traced {
        /// Whose attempt, if one.
        source: Option<Source>,
        /// The place in the trace.
        trace: TraceContext,
    },
    /// Whoever made the call went away before its end.
    CallGivenUp,
    /// A client of the gateway had its request answered.
    Served(Box<AccessRecord>),
    /// A fault of the hub's own, in full.
    Fault {
        /// What went wrong.
        detail: String,
    },
}

impl Say for EventKind {
    fn say(&self, lang: Lang) -> String {
        match self {
            Self::CallStarted { tool } => lang.pick(format!("call `{tool}`"), format!("调用 `{tool}`")),
            Self::Routed { candidates, strategy, reasons } => {
                let order = candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ");
                let why = reasons.iter().map(|reason| reason.say(lang)).collect::<Vec<_>>();
                let why = why.join(lang.pick("; ", "；"));
                lang.pick(
                    format!("route: {order} ({strategy}): {why}"),
                    format!("路由：{order}（{strategy}）：{why}"),
                )
            }
            Self::Connecting { server } => {
                lang.pick(format!("connecting to `{server}`"), format!("正在连接 `{server}`"))
            }
            Self::Connected { server, era, peer, took } => lang.pick(
                format!("connected to `{server}` ({peer}, {era}) in {} ms", took.as_millis()),
                format!("已连接 `{server}`（{peer}，{era}），用时 {} 毫秒", took.as_millis()),
            ),
            Self::ConnectFailed { server, cause } => {
                let cause = cause.say(lang);
                lang.pick(
                    format!("could not connect to `{server}`: {cause}"),
                    format!("无法连接 `{server}`：{cause}"),
                )
            }
            Self::Listed { server, tools, skipped } => {
                let s = if *tools == 1 { "" } else { "s" };
                let mut text = lang
                    .pick(format!("`{server}` has {tools} tool{s}"), format!("`{server}` 有 {tools} 个工具"));
                if !skipped.is_empty() {
                    let list = skipped.iter().map(|skipped| skipped.say(lang)).collect::<Vec<_>>();
                    let list = list.join(lang.pick("; ", "；"));
                    text += &lang.pick(format!(", skipped: {list}"), format!("，跳过：{list}"));
                }
                text
            }
            Self::AttemptStarted { source } => {
                lang.pick(format!("trying {source}"), format!("尝试 {source}"))
            }
            Self::Sending => lang.pick("calling", "正在调用").to_owned(),
            Self::AttemptFinished { source, took, error: None } => lang.pick(
                format!("{source} succeeded in {} ms", took.as_millis()),
                format!("{source} 成功，用时 {} 毫秒", took.as_millis()),
            ),
            Self::AttemptFinished { source, took, error: Some(error) } => lang.pick(
                format!("{source} failed after {} ms: {error}", took.as_millis()),
                format!("{source} 失败，用时 {} 毫秒：{error}", took.as_millis()),
            ),
            Self::AttemptCancelled { source, took } => lang.pick(
                format!("{source} cancelled after {} ms: not needed any more", took.as_millis()),
                format!("{source} 已取消，用时 {} 毫秒：不再需要", took.as_millis()),
            ),
            Self::Merged { note, .. } => note.say(lang),
            Self::Retrying { source, pause } => lang.pick(
                format!("trying {source} again in {} ms", pause.as_millis()),
                format!("{} 毫秒后重试 {source}", pause.as_millis()),
            ),
            Self::Progress { progress, total, message } => {
                let of = total.map(|total| format!("/{total}")).unwrap_or_default();
                let message = message.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
                lang.pick(
                    format!("progress {progress}{of}{message}"),
                    format!("进度 {progress}{of}{message}"),
                )
            }
            Self::Questioned { method } => {
                lang.pick(format!("the caller is asked: {method}"), format!("向调用方提问：{method}"))
            }
            Self::Answered => lang.pick("the question is settled", "提问已有结果").to_owned(),
            Self::ServerNote { server, text } | Self::RunningHub { server, text } => {
                format!("`{server}`: {}", text.say(lang))
            }
            Self::CallFinished { success: true, took } => lang.pick(
                format!("done in {} ms", took.as_millis()),
                format!("完成，用时 {} 毫秒", took.as_millis()),
            ),
            Self::CallFinished { success: false, took } => lang.pick(
                format!("failed after {} ms", took.as_millis()),
                format!("失败，用时 {} 毫秒", took.as_millis()),
            ),
            Self::ModelAsked { model, purpose } => {
                let purpose = purpose.say(lang);
                lang.pick(format!("asking {model}: {purpose}"), format!("询问 {model}：{purpose}"))
            }
            Self::ModelAnswered { took, tokens } => {
                let tokens = tokens.map(|(read, written)| {
                    lang.pick(
                        format!(", {read} tokens read, {written} written"),
                        format!("，读入 {read} 词元，写出 {written} 词元"),
                    )
                });
                lang.pick(
                    format!(
                        "the model answered in {} ms{}",
                        took.as_millis(),
                        tokens.as_deref().unwrap_or("")
                    ),
                    format!("模型已回答，用时 {} 毫秒{}", took.as_millis(), tokens.as_deref().unwrap_or("")),
                )
            }
            Self::ModelFailed { why } => {
                let why = why.say(lang);
                lang.pick(format!("no answer from the model: {why}"), format!("模型没有回答：{why}"))
            }
            Self::Planned { steps, problems } => {
                let problems = problems.iter().map(|problem| problem.say(lang));
                let all: Vec<String> = steps.iter().cloned().chain(problems).collect();
                let all = all.join(lang.pick("; ", "；"));
                lang.pick(format!("plan: {all}"), format!("计划：{all}"))
            }
            Self::StepStarted { step, description, tool } => {
                let tool = tool.as_ref().map(|tool| format!(" (`{tool}`)")).unwrap_or_default();
                lang.pick(
                    format!("step {step}: {description}{tool}"),
                    format!("步骤 {step}：{description}{tool}"),
                )
            }
            Self::StepFinished { step, took, error: None } => lang.pick(
                format!("step {step} done in {} ms", took.as_millis()),
                format!("步骤 {step} 完成，用时 {} 毫秒", took.as_millis()),
            ),
            Self::StepFinished { step, took, error: Some(error) } => {
                let (error, took) = (error.say(lang), took.as_millis());
                lang.pick(
                    format!("step {step} failed after {took} ms: {error}"),
                    format!("步骤 {step} 失败，用时 {took} 毫秒：{error}"),
                )
            }
            Self::Traced { trace, .. } => lang.pick(format!("trace {trace}"), format!("追踪 {trace}")),
            Self::CallGivenUp => lang.pick("the caller went away", "调用方已离开").to_owned(),
            Self::Served(request) => request.say(lang),
            Self::Fault { detail } => lang.pick(format!("fault: {detail}"), format!("内部错误：{detail}")),
        }
    }
}
