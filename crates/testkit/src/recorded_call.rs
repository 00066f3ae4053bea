//! Calls as a hub records them, for tests of the history.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolhub_core::call_log::{AttemptStatus, CallEnd, CallStart, CallStatus, RecordId, StoredAttempt};
use toolhub_core::{Authorization, CallId, RawJson, Source, ToolName};

/// The record of a read-only call of a native tool by the local user that took 5 ms and returned `{"done": true}`.
pub fn recorded_call(tool: &str, arguments: Value, at: SystemTime) -> (CallStart, CallEnd) {
    let (record, tool) = (RecordId::at(at), ToolName::new(tool));
    let took = Duration::from_millis(5);
    let attempt = StoredAttempt {
        source: Source::Native,
        tool: tool.clone(),
        status: AttemptStatus::Succeeded,
        took,
        error: None,
    };
    let start = CallStart {
        record: record.clone(),
        call: CallId::generate(),
        tool,
        arguments: RawJson::from(arguments),
        conversation: None,
        request: None,
        strategy: "first".to_owned(),
        candidates: vec![Source::Native],
        may_change: false,
        at,
        authorization: Authorization::default(),
        parent: None,
    };
    let output = json!({"content": [], "structuredContent": {"done": true}});
    let end = CallEnd {
        record,
        status: CallStatus::Succeeded,
        took,
        error: None,
        sources: vec![Source::Native],
        attempts: vec![attempt],
        output: Some(RawJson::from(output)),
    };
    (start, end)
}
