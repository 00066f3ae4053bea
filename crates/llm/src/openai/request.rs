//! Builds requests to a `chat/completions` endpoint.

use serde_json::Value;
use toolhub_core::model::{ChatMessage, ChatRequest, ModelCall, OfferedTool, ToolChoice};
use toolhub_core::{RawJson, RawObject};

use crate::compat::{CompatRule, CompatRules};
use crate::endpoint::Endpoint;
use crate::names::{wire_id, wire_name};

/// Maximum depth that is checked; deeper schemas are not sent as strict.
const STRICT_DEPTH: usize = 16;

/// Builds the request body.
pub(crate) fn request_body(request: &ChatRequest, endpoint: &Endpoint, made: CompatRules) -> RawObject {
    let mut body = RawObject::default()
        .with("model", endpoint.model.as_str())
        .with("messages", RawJson::of(&messages(request, made)))
        .with("stream", true);
    if !made.has(CompatRule::OmitUsage) {
        body.set("stream_options", RawObject::default().with("include_usage", true));
    }
    if !request.tools.is_empty() {
        body.set("tools", RawJson::of(&request.tools.iter().map(tool).collect::<Vec<_>>()));
        let choice = match request.choice {
            ToolChoice::Free => None,
            ToolChoice::Required => Some("required"),
            ToolChoice::Forbidden => Some("none"),
        };
        if let Some(choice) = choice.filter(|_| !made.has(CompatRule::OmitToolChoice)) {
            body.set("tool_choice", choice);
        }
    }
    if let Some((name, schema)) = &request.answer_schema
        && !made.has(CompatRule::JsonInPrompt)
    {
        body.set("response_format", answer_format(name, schema, made));
    }
    if let Some(limit) = request.max_tokens.or(endpoint.max_tokens) {
        let name = match made.has(CompatRule::MaxCompletionTokens) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body.set(name, u64::from(limit));
    }
    if let Some(temperature) = request.temperature.or(endpoint.temperature)
        && !made.has(CompatRule::OmitTemperature)
    {
        body.set("temperature", RawJson::of(&temperature));
    }
    body
}

fn messages(request: &ChatRequest, made: CompatRules) -> Vec<RawObject> {
    let mut system = request.system.clone();
    if let Some((_, schema)) = &request.answer_schema
        && made.has(CompatRule::SchemaInPrompt)
    {
        system
            .push_str("\n\nAnswer with one JSON value that fits this JSON Schema, and with nothing else:\n");
        system.push_str(schema.get());
    }
    let with_role = |role: &str| RawObject::default().with("role", role);
    let mut messages = Vec::new();
    if !system.trim().is_empty() {
        messages.push(with_role("system").with("content", system));
    }
    for message in &request.messages {
        messages.push(match message {
            ChatMessage::User(text) => with_role("user").with("content", text.as_str()),
            ChatMessage::Assistant { text, calls } if calls.is_empty() => {
                with_role("assistant").with("content", text.as_str())
            }
            ChatMessage::Assistant { text, calls } => {
                let content = if text.is_empty() { RawJson::null() } else { text.as_str().into() };
                let calls: Vec<RawObject> = calls.iter().map(call).collect();
                with_role("assistant").with("content", content).with("tool_calls", RawJson::of(&calls))
            }
            // The format has no field for a failed call; its text states the failure.
            ChatMessage::Tool { call, text, .. } => {
                with_role("tool").with("tool_call_id", wire_id(call.as_str())).with("content", text.as_str())
            }
        });
    }
    messages
}

fn call(call: &ModelCall) -> RawObject {
    let function = RawObject::default()
        .with("name", wire_name(call.tool.as_str()))
        .with("arguments", call.arguments.get());
    RawObject::default()
        .with("id", wire_id(call.id.as_str()))
        .with("type", "function")
        .with("function", function)
}

fn tool(tool: &OfferedTool) -> RawObject {
    let function = RawObject::default()
        .with("name", wire_name(tool.name.as_str()))
        .with("description", tool.description.as_str())
        .with("parameters", object_schema(&tool.schema));
    RawObject::default().with("type", "function").with("function", function)
}

/// Completes a schema to an object schema with `properties`, as endpoints require for arguments.
pub(crate) fn object_schema(schema: &RawJson) -> RawJson {
    let mut object = schema.object().unwrap_or_default();
    let is_complete = object.contains("type") && object.contains("properties");
    if is_complete {
        return schema.clone();
    }
    if !object.contains("type") {
        object.set("type", "object");
    }
    if !object.contains("properties") {
        object.set("properties", RawObject::default());
    }
    object.into_raw()
}

fn answer_format(name: &str, schema: &RawJson, made: CompatRules) -> RawObject {
    let kind = |kind: &str| RawObject::default().with("type", kind);
    if made.has(CompatRule::SchemaInPrompt) {
        return kind("json_object");
    }
    let mut json_schema = RawObject::default().with("name", wire_name(name)).with("schema", schema.clone());
    if is_strict(&schema.value(), STRICT_DEPTH) {
        json_schema.set("strict", true);
    }
    kind("json_schema").with("json_schema", json_schema)
}

/// Whether a schema fulfils the rules of strict mode: every object is closed, every property is required. Endpoints
/// reject other schemas marked as strict.
fn is_strict(schema: &Value, depth: usize) -> bool {
    let Some(object) = schema.as_object().filter(|_| depth > 0) else { return false };
    let nested = |schema: &Value| is_strict(schema, depth - 1);
    let closed = match object.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            let required = object.get("required").and_then(Value::as_array);
            let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
            object.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.iter().all(|(name, schema)| is_required(name) && nested(schema))
        }
        None => object.get("type").is_none_or(|kind| kind != "object"),
    };
    let any_of = object.get("anyOf").and_then(Value::as_array);
    closed
        && object.get("items").is_none_or(nested)
        && any_of.is_none_or(|all| all.iter().all(nested))
        && !["oneOf", "allOf", "$defs", "definitions"].iter().any(|word| object.contains_key(*word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn detects_strict_schemas() {
        let check = |schema: Value, expect: bool| assert_eq!(is_strict(&schema, 16), expect, "{schema}");
        check(json!({"type": "string"}), true);
        check(json!({"type": "object"}), false);
        let closed = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false
        });
        check(closed.clone(), true);
        check(json!({"type": "array", "items": closed}), true);
        check(json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}), false);
        check(json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}), false);
    }

    #[test]
    fn converts_argument_schemas_to_object_schemas() {
        let check = |schema: &str, expect: &str| {
            assert_eq!(object_schema(&RawJson::parse(schema).unwrap()).get(), expect);
        };
        check(
            r#"{"type":"object","properties":{}, "x":1e400}"#,
            r#"{"type":"object","properties":{}, "x":1e400}"#,
        );
        check(r#"{"x":1e400}"#, r#"{"x":1e400,"type":"object","properties":{}}"#);
        check("true", r#"{"type":"object","properties":{}}"#);
    }
}
