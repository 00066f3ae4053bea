//! How talking to a server fails, and what each failure means for the call that met it.

use std::time::Duration;

use toolhub_core::error::Effect;
use toolhub_core::json::MAX_DEPTH;
use toolhub_core::lang::{Lang, Say, Text};
use toolhub_core::{RawJson, ServerId, ToolError};

/// Why a server could not be talked to.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.say(Lang::En))]
pub enum McpError {
    /// It could not be reached; nothing was sent.
    Connect {
        /// Why.
        cause: Text,
        /// The last lines of its standard error.
        stderr: Vec<String>,
        /// Whether trying again is of no use until something is changed.
        lasting: bool,
    },
    /// The connection broke while an answer was awaited.
    Lost {
        /// Why.
        cause: Text,
        /// The last lines of its standard error.
        stderr: Vec<String>,
        /// The exit code, where its process has ended.
        exit: Option<i32>,
    },
    /// It answered with an HTTP error status.
    Http {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        body: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
        /// Whether the request may have been processed.
        effect: Effect,
    },
    /// It failed too often, and is not tried for a while.
    LeftAlone {
        /// How often, for how long, and how to try it all the same.
        cause: Text,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// It no longer knows the session.
    SessionExpired {
        /// `None` if the session layer of the server says so; a bare status 404 may come after the request took effect.
        effect: Effect,
    },
    /// It wants to know who is calling, and nobody is logged in.
    LoginNeeded {
        /// Which server.
        server: ServerId,
    },
    /// It answered with a JSON-RPC error.
    Rpc {
        /// The error's code.
        code: i64,
        /// Its message.
        message: String,
        /// More, where it said more.
        data: Option<RawJson>,
    },
    /// Its answer could not be read.
    Unreadable {
        /// What was wrong.
        detail: String,
    },
    /// Its result is nested more deeply than a JSON reader must accept.
    TooDeep {
        /// How deeply.
        depth: usize,
        /// The result. In a list, the items that are not too deep can be used.
        result: RawJson,
    },
    /// It did not answer in time.
    TimedOut(Duration),
}

impl Say for McpError {
    fn say(&self, lang: Lang) -> String {
        match self {
            Self::Connect { cause, .. } | Self::Lost { cause, .. } | Self::LeftAlone { cause, .. } => {
                cause.say(lang)
            }
            Self::Http { status, .. } => {
                lang.pick(format!("HTTP status {status}"), format!("HTTP 状态 {status}"))
            }
            Self::SessionExpired { .. } => lang.pick("the session has expired", "会话已过期").to_owned(),
            Self::LoginNeeded { server } => lang.pick(
                format!("it wants you to log in: run `toolhub servers login {server}`"),
                format!("它需要登录：请运行 `toolhub servers login {server}`"),
            ),
            Self::Rpc { code, message, .. } => {
                lang.pick(format!("MCP error {code}: {message}"), format!("MCP 错误 {code}：{message}"))
            }
            Self::Unreadable { detail } => detail.clone(),
            Self::TooDeep { depth, .. } => lang.pick(
                format!("nested {depth} deep, more than {MAX_DEPTH}"),
                format!("嵌套了 {depth} 层，超过 {MAX_DEPTH} 层"),
            ),
            Self::TimedOut(patience) => {
                let seconds = patience.as_secs_f32();
                lang.pick(format!("no answer within {seconds} s"), format!("{seconds} 秒内没有回答"))
            }
        }
    }
}

impl McpError {
    /// The same in both languages at once, for those who keep it.
    pub fn text(&self) -> Text {
        Text::new(self.say(Lang::En), self.say(Lang::Zh))
    }

    pub(crate) fn connect(cause: impl Into<Text>) -> Self {
        Self::Connect { cause: cause.into(), stderr: Vec::new(), lasting: false }
    }

    /// A failure that trying again will not mend.
    pub(crate) fn hopeless(cause: impl Into<Text>) -> Self {
        Self::Connect { cause: cause.into(), stderr: Vec::new(), lasting: true }
    }

    /// A server that is there, but cannot take the request now.
    pub(crate) fn busy(cause: impl Into<Text>) -> Self {
        Self::connect(cause)
    }

    /// The last lines of its standard error, where there are any.
    pub(crate) fn stderr(&self) -> &[String] {
        match self {
            Self::Connect { stderr, .. } | Self::Lost { stderr, .. } | Self::LeftAlone { stderr, .. } => {
                stderr
            }
            _ => &[],
        }
    }

    /// The same failure, where there is no use in trying again at once.
    pub(crate) fn for_good(self) -> Self {
        match self {
            Self::Connect { cause, stderr, .. } => Self::Connect { cause, stderr, lasting: true },
            other => other,
        }
    }

    pub(crate) fn unreadable(detail: impl Into<String>) -> Self {
        Self::Unreadable { detail: detail.into() }
    }

    /// The failure of a call to `server`.
    pub fn into_tool_error(self, server: &ServerId) -> ToolError {
        let server = server.clone();
        match self {
            Self::Connect { cause, stderr, lasting } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::None, lasting }
            }
            Self::Lost { cause, stderr, exit } => {
                let cause = match exit {
                    Some(code) => Text::new(
                        format!("stopped during the call (exit {code})"),
                        format!("在调用过程中停止（退出码 {code}）"),
                    ),
                    None => Text::new(
                        format!("broke the connection during the call ({})", cause.say(Lang::En)),
                        format!("在调用过程中断开连接（{}）", cause.say(Lang::Zh)),
                    ),
                };
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::Unknown, lasting: false }
            }
            Self::LeftAlone { cause, stderr } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::None, lasting: true }
            }
            Self::Http { status, body, retry_after, effect } => {
                ToolError::HttpStatus { server, status, body, retry_after, effect }
            }
            Self::SessionExpired { effect } => ToolError::HttpStatus {
                server,
                status: 404,
                body: self.to_string(),
                retry_after: None,
                effect,
            },
            Self::LoginNeeded { .. } => ToolError::LoginNeeded { server },
            Self::Rpc { code, message, data } => ToolError::Protocol { server, code, message, data },
            Self::Unreadable { detail } => ToolError::Unreadable { server, detail },
            Self::TooDeep { .. } => ToolError::Unreadable { server, detail: self.to_string() },
            Self::TimedOut(timeout) => ToolError::ConnectionFailed {
                server,
                cause: Text::new(
                    format!("gave no answer within {} s", timeout.as_secs_f32()),
                    format!("在 {} 秒内没有回答", timeout.as_secs_f32()),
                ),
                stderr: Vec::new(),
                effect: Effect::Unknown,
                lasting: false,
            },
        }
    }

    /// The failure of an attempt to connect: whatever happened, no call was sent.
    pub(crate) fn while_connecting(self, stderr: Vec<String>) -> Self {
        match self {
            Self::Lost { cause, stderr, .. } => Self::Connect { cause, stderr, lasting: false },
            Self::Http { status, body, retry_after, .. } => {
                Self::Http { status, body, retry_after, effect: Effect::None }
            }
            Self::TimedOut(patience) => {
                let seconds = patience.as_secs_f32();
                let cause = Text::new(
                    format!("no answer within {seconds} s while connecting"),
                    format!("连接时 {seconds} 秒内没有回答"),
                );
                Self::Connect { cause, stderr, lasting: false }
            }
            other => other,
        }
    }

    /// The failure of a request that had left: it may have been processed.
    pub(crate) fn after_sending(self) -> Self {
        match self {
            Self::Connect { cause, stderr, .. } => Self::Lost { cause, stderr, exit: None },
            other => other,
        }
    }

    /// The failure of a request that was queued and never left.
    pub(crate) fn before_sending(self) -> Self {
        self.while_connecting(Vec::new())
    }
}
