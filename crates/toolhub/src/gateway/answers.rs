//! Responses to calls: results, tool errors and refusals.

use toolhub_core::{Lang, RawJson, RawObject, ToolError, ToolOutput};
use toolhub_mcp_gateway::RpcError;

use super::client_errors::error_for_clients;

/// The response to a call that may not run.
pub(super) type Refusal = Result<RawJson, RpcError>;

/// Converts an outcome to a response: a result is forwarded unchanged; a failure becomes a tool error (`isError`), which a model
/// can read, unless the server itself returned a JSON-RPC error.
pub(super) fn answered(result: Result<ToolOutput, ToolError>, lang: Lang) -> Result<RawJson, RpcError> {
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
