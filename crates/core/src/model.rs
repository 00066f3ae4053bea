//! Language models: what is said to one and what it says back. Which wire format it speaks, and whether it writes its
//! tool calls natively or as text, is left to whoever implements the port.

use std::time::Duration;

use crate::call::CallId;
use crate::error::Seconds;
use crate::json::RawJson;
use crate::lang::{Lang, Say, Text};
use crate::ports::BoxFuture;
use crate::tool::ToolName;

/// A tool as a model is told of it.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The name it is to be called by.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: RawJson,
}

/// A call that a model wants made.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The id that the model gave it, or a fresh one.
    pub id: CallId,
    /// Which tool.
    pub tool: ToolName,
    /// The arguments: an object.
    pub arguments: RawJson,
    /// Where the model believes the tool to live; the prompt never asks for it.
    pub source: Option<String>,
    /// What had to be mended to read it.
    pub repaired: Vec<Text>,
}

/// One thing said in a talk with a model.
#[derive(Debug, Clone)]
pub enum Message {
    /// By the person.
    User(String),
    /// By the model.
    Assistant {
        /// What it said.
        text: String,
        /// The calls it wanted made.
        calls: Vec<ModelCall>,
    },
    /// A tool's answer to one of the calls: data, never instructions.
    Tool {
        /// Which call.
        call: CallId,
        /// Of which tool.
        tool: ToolName,
        /// What came of it, cut to what may enter the context.
        text: String,
        /// Whether the call failed.
        failed: bool,
    },
}

/// Whether the model may, must or must not call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Free,
    /// It must call one.
    Required,
    /// It must answer in words.
    Forbidden,
}

/// What is said to a model.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// Who it is and what it is to do.
    pub system: String,
    /// The talk so far.
    pub messages: Vec<Message>,
    /// The tools it may call.
    pub tools: Vec<OfferedTool>,
    /// Where they are described: apart, or in `system` already.
    pub tool_texts: ToolTexts,
    /// Whether it may.
    pub choice: ToolChoice,
    /// The JSON Schema that the answer must fit, where one is asked for: a name and the schema.
    pub answer_schema: Option<(String, RawJson)>,
    /// The most tokens it may write.
    pub max_tokens: Option<u32>,
    /// How freely it speaks; 0 is always the likeliest word.
    pub temperature: Option<f32>,
    /// How long all of it may take, tries included, where the caller minds; else as long as the model's owner set.
    pub timeout: Option<Duration>,
}

impl ChatRequest {
    /// A request with nothing but instructions.
    pub fn new(system: impl Into<String>) -> Self {
        Self {
            system: system.into(),
            messages: Vec::new(),
            tools: Vec::new(),
            tool_texts: ToolTexts::Apart,
            choice: ToolChoice::Free,
            answer_schema: None,
            max_tokens: None,
            temperature: None,
            timeout: None,
        }
    }

    /// The same, with something that the person says.
    #[must_use]
    pub fn user(mut self, text: impl Into<String>) -> Self {
        self.messages.push(Message::User(text.into()));
        self
    }
}

/// A piece of what a model says, while it says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken {
    /// Words of the answer.
    Text(String),
    /// Words of its thoughts, which are no part of the answer.
    Thought(String),
    /// It begins to write a call of that tool.
    CallBegun(ToolName),
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// It had said everything.
    #[default]
    End,
    /// It waits for what its calls come to.
    Calls,
    /// It may not write more tokens.
    Length,
    /// Its owner does not let it say that.
    Filtered,
}

/// Tokens that were read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Read.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
}

/// What a model said.
#[derive(Debug, Clone, Default)]
pub struct ChatReply {
    /// The answer's words, without thoughts and without calls.
    pub text: String,
    /// The calls it wants made.
    pub calls: Vec<ModelCall>,
    /// What looked like a call and could not be read: how it should be written, for the model to hear.
    pub unreadable: Vec<Text>,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost, where it was told.
    pub usage: Option<Usage>,
}

/// Who hears what a model says while it says it. Must not block.
pub type Listener<'a> = &'a (dyn Fn(Spoken) + Send + Sync);

/// How a model is told of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolTexts {
    /// As definitions beside the talk: it calls them by means of its own.
    #[default]
    Apart,
    /// In its instructions, with how a call is written: it writes calls as text.
    InSystem,
}

/// A language model somewhere.
pub trait LanguageModel: Send + Sync + std::fmt::Debug {
    /// What it is called, for people: `qwen2.5:7b at http://localhost:11434`.
    fn name(&self) -> &str;

    /// How it is told of tools.
    fn tool_texts(&self) -> ToolTexts {
        ToolTexts::Apart
    }

    /// Says something to it and hears what it says. Dropping the future cancels the request.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        heard: Listener<'a>,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>>;
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.say(Lang::En))]
pub enum ModelError {
    /// It could not be reached.
    Unreachable {
        /// Which one.
        model: String,
        /// Why.
        cause: String,
    },
    /// It does not know who asks, or does not let them.
    Unauthorized {
        /// Which one.
        model: String,
        /// What it said.
        detail: String,
    },
    /// It is asked too much, and said so to the end.
    Busy {
        /// Which one.
        model: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// It refused the request.
    Refused {
        /// Which one.
        model: String,
        /// The status.
        status: u16,
        /// What it said.
        detail: String,
    },
    /// It gave no answer in time.
    TimedOut {
        /// Which one.
        model: String,
        /// After how long.
        after: Duration,
    },
    /// Its answer broke off.
    BrokenOff {
        /// Which one.
        model: String,
        /// How.
        detail: String,
    },
    /// Its answer could not be read.
    Unreadable {
        /// Which one.
        model: String,
        /// What was wrong with it.
        detail: String,
    },
}

/// A time to the second, where it has any: what is left of a budget has fractions that say nothing.
fn whole(time: Duration) -> Duration {
    if time < Duration::from_secs(1) { time } else { Duration::from_secs(time.as_secs_f64().round() as u64) }
}

impl Say for ModelError {
    fn say(&self, lang: Lang) -> String {
        match self {
            Self::Unreachable { model, cause } => lang.pick(
                format!("the model `{model}` cannot be reached: {cause}; `toolhub doctor` says what is configured"),
                format!("无法连接模型 `{model}`：{cause}；`toolhub doctor` 会说明当前配置"),
            ),
            Self::Unauthorized { model, detail } => lang.pick(
                format!("the model `{model}` does not accept the key: {detail}; check `[llm] key` or the environment"),
                format!("模型 `{model}` 不接受密钥：{detail}；请检查 `[llm] key` 或环境变量"),
            ),
            Self::Busy { model, retry_after } => {
                let wait = |text: &str| retry_after.map(|wait| text.replace("{}", &wait.as_secs().to_string()));
                lang.pick(
                    format!("the model `{model}` is asked too much{}", wait(": try again in {} s").unwrap_or_default()),
                    format!("模型 `{model}` 请求过多{}", wait("：请 {} 秒后再试").unwrap_or_default()),
                )
            }
            Self::Refused { model, status, detail } => lang.pick(
                format!("the model `{model}` refused the request with status {status}: {detail}"),
                format!("模型 `{model}` 拒绝了请求，状态 {status}：{detail}"),
            ),
            Self::TimedOut { model, after } => lang.pick(
                format!("the model `{model}` gave no answer within {}", Seconds(whole(*after))),
                format!("模型 `{model}` 在 {} 内没有回答", Seconds(whole(*after))),
            ),
            Self::BrokenOff { model, detail } => lang.pick(
                format!("the answer of the model `{model}` broke off: {detail}"),
                format!("模型 `{model}` 的回答中断：{detail}"),
            ),
            Self::Unreadable { model, detail } => lang.pick(
                format!("the answer of the model `{model}` cannot be read: {detail}"),
                format!("模型 `{model}` 的回答无法读取：{detail}"),
            ),
        }
    }
}
