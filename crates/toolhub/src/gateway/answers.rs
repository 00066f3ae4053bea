//! Responses to calls: results, tool errors and refusals.

use toolhub_core::{Lang, RawJson, RawObject, ToolError, ToolOutput};
use toolhub_mcp_gateway::RpcError;

use super::client_errors::error_for_clients;

/// The response to a call that was not run, or whose result is withheld.
#[derive(Debug)]
pub(super) enum CallRefusal {
    /// A result with `isError`, which a model can read.
    ToolError(RawJson),
    /// A JSON-RPC error.
    Rpc(RpcError),
}

impl CallRefusal {
    /// The response to the request.
    pub(super) fn into_response(self) -> Result<RawJson, RpcError> {
        match self {
            Self::ToolError(result) => Ok(result),
            Self::Rpc(error) => Err(error),
        }
    }
}

/// Converts an outcome to a response: a result is forwarded unchanged; a failure becomes a tool error (`isError`), which a model
/// can read, unless the server itself returned a JSON-RPC error.
pub(super) fn call_response(result: Result<ToolOutput, ToolError>, lang: Lang) -> Result<RawJson, RpcError> {
    match result {
        Ok(output) => Ok(output.into_raw()),
        Err(ToolError::Failed { output: Some(output), .. }) => Ok(output.into_raw()),
        Err(ToolError::Protocol { code, message, data, .. }) => {
            Err(RpcError { code, message, data: data.map(|data| data.get().to_owned()) })
        }
        Err(error) => Ok(tool_error(&error_for_clients(&error, lang))),
    }
}

/// A `tools/call` result with `isError` set.
pub(super) fn tool_error(text: &str) -> RawJson {
    let block = RawObject::default().with("type", "text").with("text", text);
    RawObject::default().with("content", RawJson::of(&[block])).with("isError", true).into_raw()
}
