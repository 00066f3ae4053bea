//! How talking to a server fails, and what each failure means for the call that met it.

use std::time::Duration;

use toolhub_core::error::Effect;
use toolhub_core::{RawJson, ServerId, ToolError};

/// Why a server could not be talked to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum McpError {
    /// It could not be reached; nothing was sent.
    #[error("{cause}")]
    Connect {
        /// Why.
        cause: String,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// The connection broke while an answer was awaited.
    #[error("{cause}")]
    Lost {
        /// Why.
        cause: String,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// It answered with an HTTP error status.
    #[error("HTTP status {status}")]
    Http {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        body: String,
    },
    /// It no longer knows the session; the request was not looked at.
    #[error("the session has expired")]
    SessionExpired,
    /// It answered with a JSON-RPC error.
    #[error("MCP error {code}: {message}")]
    Rpc {
        /// The error's code.
        code: i64,
        /// Its message.
        message: String,
        /// More, where it said more.
        data: Option<RawJson>,
    },
    /// Its answer could not be read.
    #[error("{detail}")]
    Unreadable {
        /// What was wrong.
        detail: String,
    },
    /// It did not answer in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl McpError {
    pub(crate) fn connect(cause: impl Into<String>) -> Self {
        Self::Connect { cause: cause.into(), stderr: Vec::new() }
    }

    pub(crate) fn unreadable(detail: impl Into<String>) -> Self {
        Self::Unreadable { detail: detail.into() }
    }

    /// The failure of a call to `server`.
    pub fn into_tool_error(self, server: &ServerId) -> ToolError {
        let server = server.clone();
        match self {
            Self::Connect { cause, stderr } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::None }
            }
            Self::Lost { cause, stderr } => {
                ToolError::ConnectionFailed { server, cause, stderr, effect: Effect::Unknown }
            }
            Self::Http { status, body } => ToolError::HttpStatus { server, status, body },
            Self::SessionExpired => ToolError::HttpStatus { server, status: 404, body: self.to_string() },
            Self::Rpc { code, message, .. } => ToolError::Protocol { server, code, message },
            Self::Unreadable { detail } => ToolError::Unreadable { server, detail },
            Self::TimedOut(_) => ToolError::ConnectionFailed {
                server,
                cause: self.to_string(),
                stderr: Vec::new(),
                effect: Effect::None,
            },
        }
    }

    /// The failure of an attempt to connect: whatever happened, no call was sent.
    pub(crate) fn while_connecting(self, stderr: Vec<String>) -> Self {
        match self {
            Self::Lost { cause, stderr } | Self::Connect { cause, stderr } => Self::Connect { cause, stderr },
            Self::TimedOut(_) => Self::Connect { cause: format!("{self} while connecting"), stderr },
            other => other,
        }
    }
}
