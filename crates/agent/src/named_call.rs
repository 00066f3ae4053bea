//! Plans requests that name a tool and give all its arguments as `name=value`: they call exactly that tool, without rules.
//!
//! Recognises `echo message=hello`, `use the echo tool with message="hello there"` and 用 echo 工具 message=你好. A request with
//! any other words is left to the planner.

use serde_json::Value;
use toolhub_core::RawJson;

use crate::allowlist::ToolAllowlist;
use crate::server_choice::ServerChoice;
use toolhub_planner::plan::{ArgumentSource, Complexity, Plan, PlanStep, StepId};

const VERBS: [&str; 10] = ["use", "call", "run", "invoke", "execute", "使用", "调用", "运行", "执行", "用"];
const JOINING: [&str; 9] = ["with", "and", "to", "then with", "参数", "和", "以及", "并且", "为"];

/// The one call that a request specifies completely; `None` for any other request.
pub(crate) fn plan(request: &str, servers: ServerChoice<'_>, allowlist: &ToolAllowlist) -> Option<Plan> {
    let request = request.trim().trim_end_matches(['。', '！', '!']);
    let mut rest = request;
    for please in ["please ", "Please ", "请"] {
        rest = rest.strip_prefix(please).unwrap_or(rest).trim_start();
    }
    let (ordered, after_verb) = verb(rest);
    let (name, pairs) = tool_name(after_verb, servers)?;
    let (entry, source) = servers.tool(name)?;
    if !allowlist.has(entry.tool.name().as_str()) {
        return None;
    }
    // A full stop at the end of a sentence is not part of the last value.
    let (called_a_tool, pairs) =
        tool_word(if ordered { pairs.strip_suffix('.').unwrap_or(pairs) } else { pairs });
    let schema = entry.tool.definition.input_schema().value();
    let arguments = read_pairs(pairs, &schema)?;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let complete =
        required.iter().filter_map(Value::as_str).all(|name| arguments.iter().any(|(key, _)| key == name));
    // A name without arguments counts as a call only as "use the … tool", or if the tool is read-only.
    let explicit =
        !arguments.is_empty() || ordered && called_a_tool || entry.tool.hints().read_only == Some(true);
    if !complete || !explicit || (arguments.is_empty() && !pairs.trim().is_empty()) {
        return None;
    }
    let step = PlanStep {
        id: StepId::new("step1"),
        description: request.to_owned(),
        tool: Some(entry.tool.name().clone()),
        source,
        capability: None,
        arguments: arguments.into_iter().map(|(name, value)| (name, ArgumentSource::Value(value))).collect(),
        dependencies: Vec::new(),
        complexity: Complexity::Simple,
    };
    Some(Plan { steps: vec![step], confidence: Some(1.0), ..Plan::default() })
}

/// Whether the text begins with a verb such as `use`, and the text after it.
fn verb(text: &str) -> (bool, &str) {
    let lower = text.to_lowercase();
    for verb in VERBS {
        if lower.len() != text.len() || !lower.starts_with(verb) {
            continue;
        }
        let rest = &text[verb.len()..];
        if verb.is_ascii() && !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let rest = rest.trim_start();
        let tool = rest.strip_prefix("tool ").or_else(|| rest.strip_prefix("工具")).unwrap_or(rest);
        return (true, tool.strip_prefix("the ").unwrap_or(tool).trim_start());
    }
    (false, text)
}

/// The exact name of a tool at the beginning of the text, and the text after it.
fn tool_name<'a>(text: &'a str, servers: ServerChoice<'_>) -> Option<(&'a str, &'a str)> {
    for quote in ['`', '"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (name, rest) = inner.split_once(quote)?;
            return servers.tool(name).map(|_| (name, rest));
        }
    }
    let in_name = |c: char| c.is_alphanumeric() || "_-./:".contains(c);
    let end = text.find(|c: char| !in_name(c)).unwrap_or(text.len());
    // 用echo工具: Chinese has no space after a name.
    let ascii = text.find(|c: char| !c.is_ascii() || !in_name(c)).unwrap_or(text.len());
    [end, ascii].into_iter().find_map(|end| {
        let (name, rest) = text.split_at(end);
        servers.tool(name).map(|_| (name, rest))
    })
}

/// Whether the text begins with the word `tool` or 工具, and the text after it.
fn tool_word(text: &str) -> (bool, &str) {
    let trimmed = text.trim_start();
    let rest = trimmed.strip_prefix("tool").or_else(|| trimmed.strip_prefix("工具"));
    match rest {
        Some(rest) if !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=') => {
            (true, rest)
        }
        _ => (false, text),
    }
}

/// The `name=value` pairs of a text; `None` if it contains anything else or a name that is not in the schema.
fn read_pairs(text: &str, schema: &Value) -> Option<Vec<(String, RawJson)>> {
    let properties = schema["properties"].as_object();
    let mut pairs: Vec<(String, RawJson)> = Vec::new();
    let mut rest = joined(text);
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=')?;
        let name = name.trim();
        let property = properties?.get(name)?;
        if pairs.iter().any(|(known, _)| known == name) {
            return None;
        }
        let (value, quoted, after) = read_value(value.trim_start())?;
        pairs.push((name.to_owned(), typed(&value, quoted, property)));
        rest = joined(after);
    }
    Some(pairs)
}

/// The text without leading separators of pairs: spaces, commas, `with`, `and`.
fn joined(text: &str) -> &str {
    let mut rest = text;
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ",，、;；:：".contains(c));
        for word in JOINING {
            if let Some(after) = rest.strip_prefix(word)
                && (!word.is_ascii() || after.starts_with(char::is_whitespace))
            {
                rest = after;
            }
        }
        if rest.len() == before {
            return rest;
        }
    }
}

/// A value, whether it was quoted, and the text after it. Values with spaces need quotes or brackets.
fn read_value(text: &str) -> Option<(String, bool, &str)> {
    for (open, close) in [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('「', '」')] {
        if let Some(inner) = text.strip_prefix(open) {
            let (value, rest) = inner.split_once(close)?;
            return Some((value.to_owned(), true, rest));
        }
    }
    if text.starts_with(['[', '{']) {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = stream.next()?.ok()?;
        return Some((value.to_string(), false, &text[stream.byte_offset()..]));
    }
    let end = text.find(|c: char| c.is_whitespace() || "，、；".contains(c)).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    let trimmed = value.trim_end_matches([',', ';']);
    (!trimmed.is_empty()).then(|| (trimmed.to_owned(), false, rest))
}

/// The value converted to the type in its schema. The call itself validates it.
fn typed(value: &str, quoted: bool, schema: &Value) -> RawJson {
    let text = || RawJson::from(value);
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if quoted || kinds.contains(&"string") {
        return text();
    }
    RawJson::parse(value.to_owned()).unwrap_or_else(|_| text())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::{RawJson, Source, Tool, ToolDefinition};
    use toolhub_engine::{Catalog, RoutingPolicy};

    use super::*;

    fn catalog() -> Catalog {
        let tool = |name: &str, properties: Value, required: Value| {
            let schema = json!({"type": "object", "properties": properties, "required": required});
            let raw = RawJson::from(json!({"name": name, "inputSchema": schema}));
            Tool::new(Source::Native, ToolDefinition::parse(raw).unwrap())
        };
        Catalog::new([
            tool(
                "echo",
                json!({"message": {"type": "string"}, "times": {"type": "integer"}}),
                json!(["message"]),
            ),
            tool(
                "delete_row",
                json!({"path": {"type": "string"}, "row": {"type": "integer"}}),
                json!(["path", "row"]),
            ),
            tool("reset_all", json!({}), json!([])),
        ])
    }

    #[test]
    fn plans_call_of_named_tool_with_all_arguments() {
        let check = |request: &str, expect: Option<&str>| {
            let (catalog, policy) = (catalog(), RoutingPolicy::default());
            let servers = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] };
            let plan = plan(request, servers, &ToolAllowlist::default());
            let rendered = plan.map(|plan| {
                let step = &plan.steps[0];
                let arguments = step.known_arguments().unwrap().into_raw();
                format!("{} {}", step.tool.as_ref().unwrap(), arguments.get())
            });
            assert_eq!(rendered.as_deref(), expect, "{request}");
        };
        check("echo message=hello", Some(r#"echo {"message":"hello"}"#));
        check("echo message=5 times=5", Some(r#"echo {"message":"5","times":5}"#));
        check("use the echo tool with message=\"hello there\"", Some(r#"echo {"message":"hello there"}"#));
        check(
            "Use the `echo` tool with message = 'a b' and times = 2.",
            Some(r#"echo {"message":"a b","times":2}"#),
        );
        check("call echo with message='a b' and times=2", Some(r#"echo {"message":"a b","times":2}"#));
        check("用 echo 工具，message=你好", Some(r#"echo {"message":"你好"}"#));
        check("请使用echo工具 message=\"你好 世界\"。", Some(r#"echo {"message":"你好 世界"}"#));
        check("delete_row path=a.xlsx, row=3", Some(r#"delete_row {"path":"a.xlsx","row":3}"#));
        check("use the reset_all tool", Some("reset_all {}"));
        // Incomplete or unknown calls, and requests with other words, are left to the planner.
        check("delete_row path=a.xlsx", None);
        check("delete_row path=a.xlsx row=3 if it is empty", None);
        check("don't use the echo tool with message=hello", None);
        check("echo message=hello world", None);
        check("echo msg=hello", None);
        check("reset_all", None);
        check("the echo tool", None);
        check("echo", None);
        check("", None);
    }
}
