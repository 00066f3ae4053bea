//! Input requests in wire format.

use rmcp::model::{ErrorData, InputRequest, InputRequests};
use serde_json::{Value, json};

/// An elicitation form with these fields.
pub(crate) fn form(message: &str, schema: &Value) -> Value {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// A form with one required field.
pub(crate) fn field(message: &str, name: &str, kind: &str) -> Value {
    form(message, &json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]}))
}

/// A sampling request with this text.
pub(crate) fn prompt(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

/// A request for the roots of the client.
pub(crate) fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Converts a request to the SDK's type.
pub(crate) fn input_request(request: Value) -> Result<InputRequest, ErrorData> {
    serde_json::from_value(request).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The input requests of a round.
pub(crate) fn input_requests<const N: usize>(
    requested: [(&str, Value); N],
) -> Result<InputRequests, ErrorData> {
    requested.into_iter().map(|(key, request)| Ok((key.to_owned(), input_request(request)?))).collect()
}
