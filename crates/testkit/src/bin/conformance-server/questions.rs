//! What a caller can be asked, written as the requests that go over the wire.

use rmcp::model::{ErrorData, InputRequest, InputRequests};
use serde_json::{Value, json};

/// A form with these fields, for a person.
pub(crate) fn form(message: &str, schema: &Value) -> Value {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// A form with one field that has to be filled in.
pub(crate) fn field(message: &str, name: &str, kind: &str) -> Value {
    form(message, &json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]}))
}

/// A text for the caller's model to go on from.
pub(crate) fn prompt(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

/// The folders that the caller works in.
pub(crate) fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// One question, as the SDK has it.
pub(crate) fn question(request: Value) -> Result<InputRequest, ErrorData> {
    serde_json::from_value(request).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The questions of one round.
pub(crate) fn questions<const N: usize>(asked: [(&str, Value); N]) -> Result<InputRequests, ErrorData> {
    asked.into_iter().map(|(key, request)| Ok((key.to_owned(), question(request)?))).collect()
}
