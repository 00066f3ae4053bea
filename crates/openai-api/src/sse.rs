//! Writes server-sent events: with a name for responses, without one for chat.

use serde_json::Value;

/// The end of a chat stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
/// A comment, which keeps the connection open.
pub(crate) const HEARTBEAT: &str = ": waiting\n\n";

/// An event without a name. JSON text has no line breaks.
pub(crate) fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event with a name.
pub(crate) fn event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}
