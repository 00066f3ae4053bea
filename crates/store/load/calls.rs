//! Sample calls with which the load programs fill a store.

use std::time::{Duration, SystemTime};

use toolhub_core::call_log::{AttemptStatus, CallEnd, CallStart, CallStatus, RecordId, StoredAttempt};
use toolhub_core::{Authorization, CallId, RawJson, Source, ToolName};

/// The start of a typical call: few arguments, one candidate.
pub(crate) fn start(tool: &ToolName, number: u64) -> CallStart {
    CallStart {
        record: RecordId::generate(),
        call: CallId::generate(),
        tool: tool.clone(),
        arguments: RawJson::parse(format!(r#"{{"text":"hello","n":{number}}}"#)).unwrap(),
        conversation: None,
        request: None,
        strategy: "first".to_owned(),
        candidates: vec![Source::Native],
        may_change: true,
        at: SystemTime::now(),
        authorization: Authorization {
            principal: format!("key:{tool}").into(),
            rule: Some("rule 1".into()),
            approver: None,
        },
        parent: None,
    }
}

/// The end of the call `start`.
pub(crate) fn end(start: &CallStart, status: CallStatus, output: RawJson) -> CallEnd {
    let took = Duration::from_micros(40);
    let good = status == CallStatus::Succeeded;
    CallEnd {
        record: start.record.clone(),
        status,
        took,
        error: (!good).then(|| ("failed".to_owned(), "no".into())),
        sources: if good { vec![Source::Native] } else { Vec::new() },
        attempts: vec![StoredAttempt {
            source: Source::Native,
            tool: start.tool.clone(),
            status: if good { AttemptStatus::Succeeded } else { AttemptStatus::Failed },
            took,
            error: None,
        }],
        output: Some(output),
    }
}
