//! Language models: requests and replies. Implementations define the wire format and whether tool calls are native or
//! text.

use std::time::Duration;

use crate::boxed::BoxFuture;
use crate::call::CallId;
use crate::error::Seconds;
use crate::json::RawJson;
use crate::lang::{Lang, Localize, LocalizedText};
use crate::tool::ToolName;

/// A tool as offered to a model.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The name under which the model calls it.
    pub name: ToolName,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: RawJson,
}

/// A tool call requested by a model.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The id that the model assigned, or a new one.
    pub id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The arguments: an object.
    pub arguments: RawJson,
    /// The source that the model names; the prompt never requests one.
    pub source: Option<String>,
    /// The repairs that parsing needed.
    pub repaired: Vec<LocalizedText>,
}

/// A message of a chat.
#[derive(Debug, Clone)]
pub enum ChatMessage {
    /// From the user.
    User(String),
    /// From the model.
    Assistant {
        /// The text.
        text: String,
        /// The requested tool calls.
        calls: Vec<ModelCall>,
    },
    /// The result of a tool call: data, never instructions.
    Tool {
        /// The call.
        call: CallId,
        /// Its tool.
        tool: ToolName,
        /// The result, shortened for the context.
        text: String,
        /// Whether the call failed.
        failed: bool,
    },
}

/// Whether the model may, must or must not call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Free,
    /// It must call one.
    Required,
    /// It must answer with text.
    Forbidden,
}

/// A request to a model.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: String,
    /// The messages so far.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call.
    pub tools: Vec<OfferedTool>,
    /// Whether the tools are sent as definitions or described in `system`.
    pub tool_presentation: ToolPresentation,
    /// Whether the model may call tools.
    pub choice: ToolChoice,
    /// The name and the JSON Schema of a structured answer, if one is required.
    pub answer_schema: Option<(String, RawJson)>,
    /// Maximum number of output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; 0 always selects the most likely token.
    pub temperature: Option<f32>,
    /// Timeout including retries; `None` for the configured one.
    pub timeout: Option<Duration>,
}

impl ChatRequest {
    /// A request with only a system prompt.
    pub fn new(system: impl Into<String>) -> Self {
        Self {
            system: system.into(),
            messages: Vec::new(),
            tools: Vec::new(),
            tool_presentation: ToolPresentation::Native,
            choice: ToolChoice::Free,
            answer_schema: None,
            max_tokens: None,
            temperature: None,
            timeout: None,
        }
    }

    /// Appends a user message.
    #[must_use]
    pub fn user(mut self, text: impl Into<String>) -> Self {
        self.messages.push(ChatMessage::User(text.into()));
        self
    }
}

/// A part of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyDelta {
    /// Text of the answer.
    Text(String),
    /// Text of the reasoning, which is not part of the answer.
    Thought(String),
    /// The model starts to write a call of this tool.
    ToolCallStarted(ToolName),
}

/// The reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    End,
    /// The model waits for the results of its tool calls.
    Calls,
    /// The token limit is reached.
    Length,
    /// A content filter of the provider stopped it.
    Filtered,
}

/// Token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Input tokens.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

/// A model's reply.
#[derive(Debug, Clone, Default)]
pub struct ChatReply {
    /// The text of the answer, without reasoning and tool calls.
    pub text: String,
    /// The requested tool calls.
    pub calls: Vec<ModelCall>,
    /// Errors of tool calls that could not be parsed, with the correct syntax, to be sent back to the model.
    pub unreadable: Vec<LocalizedText>,
    /// The reason why it ended.
    pub stop: StopReason,
    /// Token usage, if reported.
    pub usage: Option<TokenUsage>,
}

/// Receives parts of a reply while it is streamed. Must not block.
pub type ReplyListener<'a> = &'a (dyn Fn(ReplyDelta) + Send + Sync);

/// How tools are presented to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolPresentation {
    /// As native tool definitions of the request.
    #[default]
    Native,
    /// In the system prompt, with the syntax of calls: the model writes calls as text.
    InSystemPrompt,
}

/// A language model.
pub trait LanguageModel: Send + Sync + std::fmt::Debug {
    /// Display name: `qwen2.5:7b at http://localhost:11434`.
    fn name(&self) -> &str;

    /// How tools are presented to it.
    fn tool_presentation(&self) -> ToolPresentation {
        ToolPresentation::Native
    }

    /// Sends a request and streams the reply. Dropping the future cancels the request.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        on_delta: ReplyListener<'a>,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>>;
}

/// The reason why a request to a model failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum ModelError {
    /// It could not be reached.
    Unreachable {
        /// The model.
        model: String,
        /// The cause.
        cause: String,
    },
    /// Authentication or authorisation failed.
    Unauthorized {
        /// The model.
        model: String,
        /// The message of the server.
        detail: String,
    },
    /// Rate-limited, also after all retries.
    Busy {
        /// The model.
        model: String,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The request was rejected.
    Refused {
        /// The model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The message of the server.
        detail: String,
    },
    /// No reply before the timeout.
    TimedOut {
        /// The model.
        model: String,
        /// The timeout.
        after: Duration,
    },
    /// The reply was cut off.
    Truncated {
        /// The model.
        model: String,
        /// Details.
        detail: String,
    },
    /// The reply could not be parsed.
    Unreadable {
        /// The model.
        model: String,
        /// The error.
        detail: String,
    },
}

/// Rounds durations of at least one second to whole seconds: fractions of a remaining budget are not informative.
fn round_to_seconds(time: Duration) -> Duration {
    if time < Duration::from_secs(1) { time } else { Duration::from_secs(time.as_secs_f64().round() as u64) }
}

impl Localize for ModelError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::Unreachable { model, cause } => lang.choose(
                format!("the model `{model}` cannot be reached: {cause}; `toolhub doctor` shows what is configured"),
                format!("无法连接模型 `{model}`：{cause}；`toolhub doctor` 会说明当前配置"),
            ),
            Self::Unauthorized { model, detail } => lang.choose(
                format!("the model `{model}` does not accept the key: {detail}; check `[llm] key` or the environment"),
                format!("模型 `{model}` 不接受密钥：{detail}；请检查 `[llm] key` 或环境变量"),
            ),
            Self::Busy { model, retry_after } => {
                let wait = |text: &str| retry_after.map(|wait| text.replace("{}", &wait.as_secs().to_string()));
                lang.choose(
                    format!("the model `{model}` limits the rate of requests{}", wait(": try again in {} s").unwrap_or_default()),
                    format!("模型 `{model}` 请求过多{}", wait("：请 {} 秒后再试").unwrap_or_default()),
                )
            }
            Self::Refused { model, status, detail } => lang.choose(
                format!("the model `{model}` refused the request with status {status}: {detail}"),
                format!("模型 `{model}` 拒绝了请求，状态 {status}：{detail}"),
            ),
            Self::TimedOut { model, after } => lang.choose(
                format!("the model `{model}` gave no answer within {}", Seconds(round_to_seconds(*after))),
                format!("模型 `{model}` 在 {} 内没有回答", Seconds(round_to_seconds(*after))),
            ),
            Self::Truncated { model, detail } => lang.choose(
                format!("the answer of the model `{model}` broke off: {detail}"),
                format!("模型 `{model}` 的回答中断：{detail}"),
            ),
            Self::Unreadable { model, detail } => lang.choose(
                format!("the answer of the model `{model}` cannot be read: {detail}"),
                format!("模型 `{model}` 的回答无法读取：{detail}"),
            ),
        }
    }
}
