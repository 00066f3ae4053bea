//! Serialized failures: the receiving side reports them as its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolhub_core::error::Effect;
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::duration_millis;
use toolhub_core::{RawJson, ServerId};

use toolhub_mcp_wire::McpError;

/// An [`McpError`] as JSON. JSON-RPC errors of the server are a separate kind, so that a server cannot send an error that is
/// read as a connection failure.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum RelayedError {
    Connect { cause: LocalizedText, stderr: Vec<String>, permanent: bool },
    Lost { cause: LocalizedText, stderr: Vec<String>, exit: Option<i32> },
    CircuitOpen { cause: LocalizedText, stderr: Vec<String> },
    Http { status: u16, body: String, retry_after_ms: Option<u64>, processed: bool },
    SessionExpired { processed: bool },
    LoginNeeded,
    Rpc { code: i64, message: String, data: Option<String> },
    Unreadable { detail: String },
    TooDeep { depth: usize, result: String },
    TimedOut { after_ms: u64 },
}

fn effect(processed: bool) -> Effect {
    if processed { Effect::Unknown } else { Effect::None }
}

impl From<&McpError> for RelayedError {
    fn from(error: &McpError) -> Self {
        match error {
            McpError::Connect { cause, stderr, permanent } => {
                Self::Connect { cause: cause.clone(), stderr: stderr.clone(), permanent: *permanent }
            }
            McpError::Lost { cause, stderr, exit } => {
                Self::Lost { cause: cause.clone(), stderr: stderr.clone(), exit: *exit }
            }
            McpError::CircuitOpen { cause, stderr } => {
                Self::CircuitOpen { cause: cause.clone(), stderr: stderr.clone() }
            }
            McpError::Http { status, body, retry_after, effect } => Self::Http {
                status: *status,
                body: body.clone(),
                retry_after_ms: retry_after.map(duration_millis),
                processed: *effect == Effect::Unknown,
            },
            McpError::SessionExpired { effect } => {
                Self::SessionExpired { processed: *effect == Effect::Unknown }
            }
            McpError::LoginNeeded { .. } => Self::LoginNeeded,
            McpError::Rpc { code, message, data } => Self::Rpc {
                code: *code,
                message: message.clone(),
                data: data.as_ref().map(|data| data.get().to_owned()),
            },
            McpError::Unreadable { detail } => Self::Unreadable { detail: detail.clone() },
            McpError::TooDeep { depth, result } => {
                Self::TooDeep { depth: *depth, result: result.get().to_owned() }
            }
            McpError::TimedOut(after) => Self::TimedOut { after_ms: duration_millis(*after) },
        }
    }
}

impl RelayedError {
    /// Converts it into an error of `server`.
    pub(crate) fn into_error(self, server: &ServerId) -> McpError {
        match self {
            Self::Connect { cause, stderr, permanent } => McpError::Connect { cause, stderr, permanent },
            Self::Lost { cause, stderr, exit } => McpError::Lost { cause, stderr, exit },
            Self::CircuitOpen { cause, stderr } => McpError::CircuitOpen { cause, stderr },
            Self::Http { status, body, retry_after_ms, processed } => McpError::Http {
                status,
                body,
                retry_after: retry_after_ms.map(Duration::from_millis),
                effect: effect(processed),
            },
            Self::SessionExpired { processed } => McpError::SessionExpired { effect: effect(processed) },
            Self::LoginNeeded => McpError::LoginNeeded { server: server.clone() },
            Self::Rpc { code, message, data } => {
                McpError::Rpc { code, message, data: data.and_then(|data| RawJson::parse(data).ok()) }
            }
            Self::Unreadable { detail } => McpError::Unreadable { detail },
            Self::TooDeep { depth, result } => match RawJson::parse(result) {
                Ok(result) => McpError::TooDeep { depth, result },
                Err(error) => McpError::unreadable(error.to_string()),
            },
            Self::TimedOut { after_ms } => McpError::TimedOut(Duration::from_millis(after_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_survive_serialization_unchanged() {
        let (server, stderr) = (ServerId::new("s"), vec!["last line".to_owned()]);
        let cause = LocalizedText::new("why", "原因");
        let data = Some(RawJson::parse("{\"kind\":\"session_expired\",\"processed\":false}").unwrap());
        for error in [
            McpError::Connect { cause: cause.clone(), stderr: stderr.clone(), permanent: true },
            McpError::Lost { cause: cause.clone(), stderr: stderr.clone(), exit: Some(3) },
            McpError::CircuitOpen { cause, stderr },
            McpError::Http {
                status: 502,
                body: "bad".to_owned(),
                retry_after: Some(Duration::from_secs(3)),
                effect: Effect::Unknown,
            },
            McpError::SessionExpired { effect: Effect::None },
            McpError::SessionExpired { effect: Effect::Unknown },
            McpError::LoginNeeded { server: server.clone() },
            McpError::Rpc { code: -32000, message: "no".to_owned(), data },
            McpError::unreadable("odd"),
            McpError::TooDeep { depth: 200, result: RawJson::parse("[[1]]").unwrap() },
            McpError::TimedOut(Duration::from_millis(1500)),
        ] {
            let text = serde_json::to_string(&RelayedError::from(&error)).unwrap();
            let back = serde_json::from_str::<RelayedError>(&text).unwrap().into_error(&server);
            assert_eq!(format!("{back:?}"), format!("{error:?}"));
        }
    }
}
