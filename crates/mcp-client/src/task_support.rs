//! Reads from the definition of a tool whether it must be called as a task (2025-11-25, basic/utilities/tasks).

use toolhub_core::ToolDefinition;

/// Whether a tool can only be called as a task.
pub(crate) fn requires_task(tool: &ToolDefinition) -> bool {
    let raw = tool.raw();
    // Few definitions have this member; a substring search avoids parsing the others.
    raw.get().contains("taskSupport")
        && raw
            .object()
            .and_then(|members| {
                members.get("execution")?.object()?.get("taskSupport")?.decode::<String>().ok()
            })
            .is_some_and(|support| support == "required")
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::RawJson;

    #[test]
    fn recognises_tools_that_require_a_task() {
        let check = |text: &str, expect: bool| {
            let tool = ToolDefinition::parse(RawJson::parse(text.to_owned()).unwrap()).unwrap();
            assert_eq!(requires_task(&tool), expect, "{text}");
        };
        let schema = r#""inputSchema":{"type":"object"}"#;
        check(&format!(r#"{{"name":"a",{schema},"execution":{{"taskSupport":"required"}}}}"#), true);
        check(&format!(r#"{{"name":"a",{schema},"execution":{{"taskSupport":"optional"}}}}"#), false);
        check(&format!(r#"{{"name":"a",{schema},"description":"taskSupport required"}}"#), false);
        check(&format!(r#"{{"name":"a",{schema}}}"#), false);
    }
}
