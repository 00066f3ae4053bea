//! Recorded calls of tools that call other tools: the nested calls of a call, the call that made one, and the code of
//! scripts.

use std::time::{Duration, SystemTime};

use toolhub_core::RawJson;
use toolhub_core::call_log::{CallQuery, CallRecord, CallStatus, RecordId};
use toolhub_core::ports::StoreError;

use crate::hub::Hub;

/// Maximum number of nested calls that are read at once.
const MAX_NESTED_CALLS: usize = 1_000;
/// How long before a nested call its parent may have started, and how long after its start a call without an end may have
/// made others.
const MAX_PARENT_AGE: Duration = Duration::from_secs(3_600);
/// Within this time after its id is generated, a call usually starts.
const USUAL_START_TIME: Duration = Duration::from_secs(1);
/// How far times of the same process may be apart because its clock was set.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

/// The code of a recorded call of `run_script`; `None` for other tools.
pub fn script_code(tool: &str, arguments: &RawJson) -> Option<String> {
    let members = arguments.object().filter(|_| tool == toolhub_core::RUN_SCRIPT)?;
    Some(members.get("code")?.text()?.into_owned())
}

impl Hub {
    /// The calls that a recorded call made, oldest first. If there are more than a thousand, the newest of them.
    pub async fn nested_calls(&self, call: &CallRecord) -> Result<Vec<CallRecord>, StoreError> {
        let start = &call.start;
        // Callers may repeat the ids of their calls: only what was made while this one ran belongs to it.
        let end = match (call.took, call.status) {
            (Some(took), _) => start.at.checked_add(took),
            (None, CallStatus::Running) => None,
            (None, _) => Some(start.at + MAX_PARENT_AGE),
        };
        let query = CallQuery {
            parent: Some(start.call.to_string()),
            principal: Some(start.authorization.principal.to_string()),
            from: Some(lower_bound(start.at)),
            before: end.map(upper_bound),
            limit: Some(MAX_NESTED_CALLS),
            ..CallQuery::default()
        };
        let mut nested = self.calls(query).await?;
        nested.reverse();
        Ok(nested)
    }

    /// The call that made a recorded call; `None` if no tool made it, or if its record is deleted.
    pub async fn parent_call(&self, call: &CallRecord) -> Result<Option<CallRecord>, StoreError> {
        let start = &call.start;
        let Some(parent) = &start.parent else { return Ok(None) };
        let query = CallQuery {
            call: Some(parent.to_string()),
            principal: Some(start.authorization.principal.to_string()),
            limit: Some(1),
            ..CallQuery::default()
        };
        // There is no index of ids. A generated id contains the time, which leaves few calls to read.
        if let Some(generated_at) = parent.generated_at().filter(|time| *time <= start.at) {
            let usual = CallQuery {
                from: Some(lower_bound(generated_at)),
                before: Some(upper_bound((generated_at + USUAL_START_TIME).min(start.at))),
                ..query.clone()
            };
            if let Some(recorded_parent) = self.calls(usual).await?.pop() {
                return Ok(Some(recorded_parent));
            }
        }
        let oldest = start.at.checked_sub(MAX_PARENT_AGE).unwrap_or(SystemTime::UNIX_EPOCH);
        let query =
            CallQuery { from: Some(lower_bound(oldest)), before: Some(upper_bound(start.at)), ..query };
        Ok(self.calls(query).await?.pop())
    }
}

/// A lower bound of the records of calls that started at or after a time.
fn lower_bound(time: SystemTime) -> RecordId {
    RecordId::lower_bound(time.checked_sub(CLOCK_TOLERANCE).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// An upper bound of the records of calls that started at or before a time.
fn upper_bound(time: SystemTime) -> RecordId {
    RecordId::lower_bound(time + CLOCK_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_have_code() {
        let arguments = |text: &str| RawJson::parse(text.to_owned()).unwrap();
        let check = |tool: &str, text: &str, expect: Option<&str>| {
            assert_eq!(script_code(tool, &arguments(text)).as_deref(), expect, "{tool} {text}");
        };
        check("run_script", r#"{"code":"return 1;\n// \u5b89"}"#, Some("return 1;\n// 安"));
        check("other", r#"{"code":"return 1;"}"#, None);
        check("run_script", r#"{"code":7}"#, None);
        check("run_script", r#"{"$truncated":{"bytes":1}}"#, None);
        check("run_script", "[]", None);
    }
}
