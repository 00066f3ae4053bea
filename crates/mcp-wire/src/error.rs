//! Errors of requests to a server, and their meaning for the call.

use std::time::Duration;

use toolhub_core::error::Effect;
use toolhub_core::json::MAX_DEPTH;
use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::shell;
use toolhub_core::{RawJson, ServerId, ToolError};

/// An error of a connection or request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum McpError {
    /// The connection failed; nothing was sent.
    Connect {
        /// The cause.
        cause: LocalizedText,
        /// The last lines of stderr.
        stderr: Vec<String>,
        /// Whether a retry is useless until something is changed.
        permanent: bool,
    },
    /// The connection was lost while waiting for a response.
    Lost {
        /// The cause.
        cause: LocalizedText,
        /// The last lines of stderr.
        stderr: Vec<String>,
        /// The exit code, if the process has exited.
        exit: Option<i32>,
    },
    /// The server answered with an HTTP error status.
    Http {
        /// The status.
        status: u16,
        /// The start of the body.
        body: String,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
        /// Whether the request may have been processed.
        effect: Effect,
    },
    /// The circuit is open after too many failures.
    CircuitOpen {
        /// Number of failures, remaining time, and how to override it.
        cause: LocalizedText,
        /// The last lines of stderr.
        stderr: Vec<String>,
    },
    /// The session has expired.
    SessionExpired {
        /// `None` if the session layer of the server reported it; a bare status 404 may be sent after the request took effect.
        effect: Effect,
    },
    /// The server requires a login.
    LoginNeeded {
        /// The server.
        server: ServerId,
    },
    /// The server answered with a JSON-RPC error.
    Rpc {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
        /// The error data.
        data: Option<RawJson>,
    },
    /// The response is invalid.
    Unreadable {
        /// The reason.
        detail: String,
    },
    /// The result is nested more deeply than JSON parsers are required to accept.
    TooDeep {
        /// The depth.
        depth: usize,
        /// The result. Of a list, the items that are not too deep can be used.
        result: RawJson,
    },
    /// No response within the timeout.
    TimedOut(Duration),
}

impl Localize for McpError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::Connect { cause, .. } | Self::Lost { cause, .. } | Self::CircuitOpen { cause, .. } => {
                cause.localize(lang)
            }
            Self::Http { status, .. } => {
                lang.choose(format!("HTTP status {status}"), format!("HTTP 状态 {status}"))
            }
            Self::SessionExpired { .. } => lang.choose("the session has expired", "会话已过期").to_owned(),
            Self::LoginNeeded { server } => lang.choose(
                format!(
                    "it requires a login: run `toolhub servers login {}`",
                    shell::shell_quote(server.as_str())
                ),
                format!("它需要登录：请运行 `toolhub servers login {}`", shell::shell_quote(server.as_str())),
            ),
            Self::Rpc { code, message, .. } => {
                lang.choose(format!("MCP error {code}: {message}"), format!("MCP 错误 {code}：{message}"))
            }
            Self::Unreadable { detail } => detail.clone(),
            Self::TooDeep { depth, .. } => lang.choose(
                format!("nested {depth} deep, more than {MAX_DEPTH}"),
                format!("嵌套了 {depth} 层，超过 {MAX_DEPTH} 层"),
            ),
            Self::TimedOut(timeout) => {
                let seconds = timeout.as_secs_f32();
                lang.choose(format!("no answer within {seconds} s"), format!("{seconds} 秒内没有回答"))
            }
        }
    }
}

impl McpError {
    /// The message in both languages, to be stored.
    pub fn text(&self) -> LocalizedText {
        LocalizedText::new(self.localize(Lang::En), self.localize(Lang::Zh))
    }

    /// A failure to connect that a retry may resolve.
    pub fn connect(cause: impl Into<LocalizedText>) -> Self {
        Self::Connect { cause: cause.into(), stderr: Vec::new(), permanent: false }
    }

    /// A failure that a retry does not resolve.
    pub fn permanent(cause: impl Into<LocalizedText>) -> Self {
        Self::Connect { cause: cause.into(), stderr: Vec::new(), permanent: true }
    }

    /// The server is running, but cannot accept the request now.
    pub fn busy(cause: impl Into<LocalizedText>) -> Self {
        Self::connect(cause)
    }

    /// The last lines of stderr, if any.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::Connect { stderr, .. } | Self::Lost { stderr, .. } | Self::CircuitOpen { stderr, .. } => {
                stderr
            }
            _ => &[],
        }
    }

    /// The same failure, marked as not worth an immediate retry.
    pub fn into_permanent(self) -> Self {
        match self {
            Self::Connect { cause, stderr, .. } => Self::Connect { cause, stderr, permanent: true },
            other => other,
        }
    }

    /// An invalid response, with the reason.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::Unreadable { detail: detail.into() }
    }

    /// Converts it into the error of a call to `server`.
    pub fn into_tool_error(self, server: &ServerId) -> ToolError {
        let server = server.clone();
        match self {
            Self::Connect { cause, stderr, permanent } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::None, permanent }
            }
            Self::Lost { cause, stderr, exit } => {
                let cause = match exit {
                    Some(code) => LocalizedText::new(
                        format!("stopped during the call (exit {code})"),
                        format!("在调用过程中停止（退出码 {code}）"),
                    ),
                    None => LocalizedText::new(
                        format!("broke the connection during the call ({})", cause.localize(Lang::En)),
                        format!("在调用过程中断开连接（{}）", cause.localize(Lang::Zh)),
                    ),
                };
                ToolError::ConnectionFailed {
                    server,
                    cause,
                    stderr,
                    effect: Effect::Unknown,
                    permanent: false,
                }
            }
            Self::CircuitOpen { cause, stderr } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::None, permanent: true }
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
                cause: LocalizedText::new(
                    format!("did not answer within {} s", timeout.as_secs_f32()),
                    format!("在 {} 秒内没有回答", timeout.as_secs_f32()),
                ),
                stderr: Vec::new(),
                effect: Effect::Unknown,
                permanent: false,
            },
        }
    }

    /// Converts it into the error of a connection attempt: no call was sent.
    pub fn while_connecting(self, stderr: Vec<String>) -> Self {
        match self {
            Self::Lost { cause, stderr, .. } => Self::Connect { cause, stderr, permanent: false },
            Self::Http { status, body, retry_after, .. } => {
                Self::Http { status, body, retry_after, effect: Effect::None }
            }
            Self::TimedOut(timeout) => {
                let seconds = timeout.as_secs_f32();
                let cause = LocalizedText::new(
                    format!("no answer within {seconds} s while connecting"),
                    format!("连接时 {seconds} 秒内没有回答"),
                );
                Self::Connect { cause, stderr, permanent: false }
            }
            other => other,
        }
    }

    /// Converts it into the error of a request that was sent: it may have been processed.
    pub fn after_sending(self) -> Self {
        match self {
            Self::Connect { cause, stderr, .. } => Self::Lost { cause, stderr, exit: None },
            other => other,
        }
    }

    /// Converts it into the error of a queued request that was never sent.
    pub fn before_sending(self) -> Self {
        self.while_connecting(Vec::new())
    }
}
