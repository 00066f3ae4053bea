//! The final states of responses that no turn ends.

use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_core::responses::{ResponseStatus, StoredResponse};

/// The response as a failed one.
pub(crate) fn as_failed(stored: StoredResponse, why: &str) -> StoredResponse {
    ended(stored, ResponseStatus::Failed, json!({ "code": "server_error", "message": why }))
}

/// The response as a cancelled one, which no process works on.
pub(crate) fn as_cancelled(stored: StoredResponse) -> StoredResponse {
    ended(stored, ResponseStatus::Cancelled, Value::Null)
}

/// The response with a final status. Calls without a result keep that state in their error.
fn ended(stored: StoredResponse, status: ResponseStatus, error: Value) -> StoredResponse {
    let mut body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
    for item in body["output"].as_array_mut().into_iter().flatten() {
        if is_open_call(item) {
            item["status"] = json!("failed");
            item["error"] = json!("the hub was stopped: it is not known whether this call had an effect");
        }
    }
    body["status"] = json!(status.name());
    body["error"] = error;
    StoredResponse { status, body: RawJson::from(body), ..stored }
}

/// Whether an item is a call without a result.
pub(crate) fn is_open_call(item: &Value) -> bool {
    item["type"] == json!("mcp_call") && item["status"] == json!("in_progress")
}
