//! Resolves the tool that a `call_tool` call reaches: permissions are decided by that tool, not by `call_tool`.

use toolhub_core::{CALL_TOOL, CallBy, Coercion, RawJson, ToolCall, ToolName};

/// The members of the arguments of `call_tool`.
const MEMBERS: [&str; 3] = ["name", "arguments", "source"];

/// The tool that a call reaches.
pub(crate) struct CallTarget {
    pub(crate) tool: ToolName,
    pub(crate) arguments: RawJson,
    /// The source that the call names, if any.
    pub(crate) source: Option<String>,
}

/// The tool that a call reaches and its arguments, with all enclosing `call_tool` removed. The innermost source counts. A
/// `call_tool` with unknown members is not unwrapped, so that it fails the validation against its own schema.
pub(crate) fn target(tool: &ToolName, arguments: &RawJson) -> CallTarget {
    let mut target = CallTarget { tool: tool.clone(), arguments: arguments.clone(), source: None };
    while target.tool.as_str() == CALL_TOOL {
        let Some(members) = target.arguments.object() else { break };
        let text = |key: &str| members.get(key).map(|value| value.decode::<String>().ok());
        let inner = members.get("arguments").cloned().unwrap_or_else(RawJson::empty_object);
        let known = members.iter().all(|(key, _)| MEMBERS.contains(&key));
        match (text("name").flatten(), text("source")) {
            (Some(name), source) if inner.is_object() && known && source != Some(None) => {
                let source = source.flatten().or(target.source);
                target = CallTarget { tool: ToolName::new(name), arguments: inner, source };
            }
            _ => break,
        }
    }
    target
}

/// The call as it is checked and run. Coercion is disabled for a `call_tool` that could not be unwrapped, so that it fails
/// the validation against its own schema: the permissions of the tool that it would reach after coercion were not checked.
pub(crate) fn resolved(mut call: ToolCall) -> ToolCall {
    if call.by != CallBy::Name {
        return call;
    }
    let reached = target(&call.tool, &call.arguments);
    (call.tool, call.arguments) = (reached.tool, reached.arguments);
    if reached.source.is_some() {
        call.source = reached.source;
    }
    if call.tool.as_str() == CALL_TOOL {
        call.coercion = Coercion::Off;
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, expect: (&str, &str, Coercion)) {
        let call = ToolCall::new(CALL_TOOL, RawJson::parse(arguments).unwrap()).with_coercion();
        let call = resolved(call);
        assert_eq!((call.tool.as_str(), call.arguments.get(), call.coercion), expect, "{arguments}");
    }

    #[test]
    fn nested_calls_resolve_to_the_tool_that_runs() {
        check(r#"{"name":"wipe","arguments":{"disk":1}}"#, ("wipe", r#"{"disk":1}"#, Coercion::On));
        check(r#"{"name":"wipe"}"#, ("wipe", "{}", Coercion::On));
        check(
            r#"{"name":"call_tool","arguments":{"name":"call_tool","arguments":{"name":"wipe"}}}"#,
            ("wipe", "{}", Coercion::On),
        );
    }

    #[test]
    fn keeps_source_of_nested_call() {
        let call = |arguments: &str| {
            resolved(ToolCall::new(CALL_TOOL, RawJson::parse(arguments).unwrap())).source.unwrap_or_default()
        };
        assert_eq!(call(r#"{"name":"write","source":"b"}"#), "b");
        let nested = r#"{"name":"call_tool","source":"a","arguments":{"name":"write","source":"b"}}"#;
        assert_eq!(call(nested), "b");
        assert_eq!(call(r#"{"name":"call_tool","source":"a","arguments":{"name":"write"}}"#), "a");
    }

    #[test]
    fn does_not_coerce_name_of_nested_call() {
        for malformed in [
            r#"{"name":["wipe"]}"#,
            r#"{"name":{"name":"wipe"}}"#,
            r#"{"name":null}"#,
            r#"{"name":"wipe","arguments":"{\"disk\":1}"}"#,
            r#"{"name":"wipe","arguments":[{}]}"#,
            r#"{"tool":"wipe"}"#,
            r#"{"name":"wipe","server":"b"}"#,
            r#"{"name":"wipe","source":["b"]}"#,
        ] {
            check(malformed, (CALL_TOOL, malformed, Coercion::Off));
            let nested = format!(r#"{{"name":"call_tool","arguments":{malformed}}}"#);
            check(&nested, (CALL_TOOL, malformed, Coercion::Off));
        }
    }
}
