//! What a call of `call_tool` calls in the end: permissions are decided by that tool, not by `call_tool`.

use toolhub_core::{CallBy, Mending, RawJson, ToolCall, ToolName};

const CALL_TOOL: &str = "call_tool";

/// The tool that a call reaches and its arguments, through any number of `call_tool` around it.
pub(crate) fn target(tool: &ToolName, arguments: &RawJson) -> (ToolName, RawJson) {
    let (mut tool, mut arguments) = (tool.clone(), arguments.clone());
    while tool.as_str() == CALL_TOOL {
        let Some(members) = arguments.object() else { break };
        let name = members.get("name").and_then(|name| name.decode::<String>().ok());
        let inner = members.get("arguments").cloned().unwrap_or_else(RawJson::empty_object);
        match name {
            Some(name) if inner.is_object() => (tool, arguments) = (ToolName::new(name), inner),
            _ => break,
        }
    }
    (tool, arguments)
}

/// The call as it is checked and run. A `call_tool` that does not name a tool plainly is not coerced, so that it fails
/// its own schema: what it would call after coercion was never checked.
pub(crate) fn resolved(mut call: ToolCall) -> ToolCall {
    if call.by != CallBy::Name {
        return call;
    }
    (call.tool, call.arguments) = target(&call.tool, &call.arguments);
    if call.tool.as_str() == CALL_TOOL {
        call.mending = Mending::Off;
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, expect: (&str, &str, Mending)) {
        let call = ToolCall::new(CALL_TOOL, RawJson::parse(arguments).unwrap()).mending();
        let call = resolved(call);
        assert_eq!((call.tool.as_str(), call.arguments.get(), call.mending), expect, "{arguments}");
    }

    #[test]
    fn nested_calls_resolve_to_the_tool_that_runs() {
        check(r#"{"name":"wipe","arguments":{"disk":1}}"#, ("wipe", r#"{"disk":1}"#, Mending::On));
        check(r#"{"name":"wipe"}"#, ("wipe", "{}", Mending::On));
        check(
            r#"{"name":"call_tool","arguments":{"name":"call_tool","arguments":{"name":"wipe"}}}"#,
            ("wipe", "{}", Mending::On),
        );
    }

    #[test]
    fn names_that_would_have_to_be_coerced_are_not() {
        for odd in [
            r#"{"name":["wipe"]}"#,
            r#"{"name":{"name":"wipe"}}"#,
            r#"{"name":null}"#,
            r#"{"name":"wipe","arguments":"{\"disk\":1}"}"#,
            r#"{"name":"wipe","arguments":[{}]}"#,
            r#"{"tool":"wipe"}"#,
        ] {
            check(odd, (CALL_TOOL, odd, Mending::Off));
            let nested = format!(r#"{{"name":"call_tool","arguments":{odd}}}"#);
            check(&nested, (CALL_TOOL, odd, Mending::Off));
        }
    }
}
