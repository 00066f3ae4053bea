//! The members that the Open Responses specification requires of a response and of the events of a stream, with their types.

use serde_json::Value;

/// The type of a member.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Number,
    Flag,
    List,
    Object,
}

use Kind::{Flag, Integer, List, Number, Object, Text};

impl Kind {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Text => value.is_string(),
            Integer => value.is_u64(),
            Number => value.is_number(),
            Flag => value.is_boolean(),
            List => value.is_array(),
            Object => value.is_object(),
        }
    }
}

/// A required member; it may be null if the flag is true.
type Member = (&'static str, Kind, bool);

const RESPONSE: [Member; 30] = [
    ("id", Text, false),
    ("object", Text, false),
    ("created_at", Integer, false),
    ("completed_at", Integer, true),
    ("status", Text, false),
    ("incomplete_details", Object, true),
    ("model", Text, false),
    ("previous_response_id", Text, true),
    ("instructions", Text, true),
    ("output", List, false),
    ("error", Object, true),
    ("tools", List, false),
    ("truncation", Text, false),
    ("parallel_tool_calls", Flag, false),
    ("text", Object, false),
    ("top_p", Number, false),
    ("presence_penalty", Number, false),
    ("frequency_penalty", Number, false),
    ("top_logprobs", Integer, false),
    ("temperature", Number, false),
    ("reasoning", Object, true),
    ("usage", Object, true),
    ("max_output_tokens", Integer, true),
    ("max_tool_calls", Integer, true),
    ("store", Flag, false),
    ("background", Flag, false),
    ("service_tier", Text, false),
    ("metadata", Object, false),
    ("safety_identifier", Text, true),
    ("prompt_cache_key", Text, true),
];
const FUNCTION: [Member; 5] = [
    ("type", Text, false),
    ("name", Text, false),
    ("description", Text, true),
    ("parameters", Object, true),
    ("strict", Flag, true),
];
const MESSAGE: [Member; 4] =
    [("id", Text, false), ("status", Text, false), ("role", Text, false), ("content", List, false)];
const OUTPUT_TEXT: [Member; 3] =
    [("text", Text, false), ("annotations", List, false), ("logprobs", List, false)];
const FUNCTION_CALL: [Member; 5] = [
    ("id", Text, false),
    ("call_id", Text, false),
    ("name", Text, false),
    ("arguments", Text, false),
    ("status", Text, false),
];
const REASONING: [Member; 2] = [("id", Text, false), ("summary", List, false)];
const USAGE: [Member; 5] = [
    ("input_tokens", Integer, false),
    ("output_tokens", Integer, false),
    ("total_tokens", Integer, false),
    ("input_tokens_details", Object, false),
    ("output_tokens_details", Object, false),
];
/// Of all events.
const EVENT: [Member; 2] = [("type", Text, false), ("sequence_number", Integer, false)];
/// Of events about an item.
const PLACE: [Member; 2] = [("item_id", Text, false), ("output_index", Integer, false)];
/// Of events about a part of an item.
const PART: [Member; 1] = [("content_index", Integer, false)];

fn members(what: &str, value: &Value, members: &[Member]) -> Result<(), String> {
    for (name, kind, may_be_null) in members {
        let found = value.get(name).ok_or_else(|| format!("{what} has no `{name}`: {value}"))?;
        if !(kind.accepts(found) || (*may_be_null && found.is_null())) {
            return Err(format!("`{name}` of {what} is {found}"));
        }
    }
    Ok(())
}

fn one_of(what: &str, value: &Value, values: &[&str]) -> Result<(), String> {
    match value.as_str().is_some_and(|value| values.contains(&value)) {
        true => Ok(()),
        false => Err(format!("{what} is {value} and not one of {values:?}")),
    }
}

/// Checks a response.
pub(crate) fn check_response(response: &Value) -> Result<(), String> {
    members("the response", response, &RESPONSE)?;
    one_of("`object`", &response["object"], &["response"])?;
    one_of("`truncation`", &response["truncation"], &["auto", "disabled"])?;
    for tool in response["tools"].as_array().into_iter().flatten() {
        members("a tool", tool, &FUNCTION)?;
    }
    let choice = &response["tool_choice"];
    let choice = if choice.is_object() { &choice["type"] } else { choice };
    one_of("`tool_choice`", choice, &["none", "auto", "required", "function"])?;
    one_of(
        "`text.format.type`",
        &response["text"]["format"]["type"],
        &["text", "json_object", "json_schema"],
    )?;
    if response["reasoning"].is_object() {
        members("`reasoning`", &response["reasoning"], &[("effort", Text, true), ("summary", Text, true)])?;
    }
    if response["usage"].is_object() {
        members("`usage`", &response["usage"], &USAGE)?;
        let [read, written] =
            ["input_tokens_details", "output_tokens_details"].map(|name| &response["usage"][name]);
        members("the read tokens", read, &[("cached_tokens", Integer, false)])?;
        members("the written tokens", written, &[("reasoning_tokens", Integer, false)])?;
    }
    if response["error"].is_object() {
        members("`error`", &response["error"], &[("code", Text, false), ("message", Text, false)])?;
    }
    response["output"].as_array().into_iter().flatten().try_for_each(check_item)
}

fn check_item(item: &Value) -> Result<(), String> {
    const STATUSES: [&str; 3] = ["in_progress", "completed", "incomplete"];
    match item["type"].as_str() {
        Some("message") => {
            members("a message", item, &MESSAGE)?;
            one_of("the role", &item["role"], &["assistant"])?;
            one_of("the status of a message", &item["status"], &STATUSES)?;
            item["content"].as_array().into_iter().flatten().try_for_each(check_part)
        }
        Some("function_call") => {
            members("a call", item, &FUNCTION_CALL)?;
            one_of("the status of a call", &item["status"], &STATUSES)
        }
        Some("reasoning") => members("the reasoning", item, &REASONING),
        _ => Err(format!("not an item of the specification: {item}")),
    }
}

fn check_part(part: &Value) -> Result<(), String> {
    one_of("the type of a part", &part["type"], &["output_text"])?;
    members("a text", part, &OUTPUT_TEXT)
}

/// Checks an event of a stream. Its order is checked by `stream_rules`.
pub(crate) fn check_event(event: &Value) -> Result<(), String> {
    members("an event", event, &EVENT)?;
    let kind = event["type"].as_str().unwrap_or_default();
    match kind.strip_prefix("response.").unwrap_or_default() {
        "created" | "in_progress" | "completed" | "failed" | "incomplete" => {
            check_response(&event["response"])
        }
        "output_item.added" | "output_item.done" => {
            members(kind, event, &[("output_index", Integer, false)])?;
            check_item(&event["item"])
        }
        "content_part.added" | "content_part.done" => {
            members(kind, event, &[PLACE.as_slice(), &PART].concat())?;
            check_part(&event["part"])
        }
        "output_text.delta" => members(
            kind,
            event,
            &[PLACE.as_slice(), &PART, &[("delta", Text, false), ("logprobs", List, false)]].concat(),
        ),
        "output_text.done" => members(
            kind,
            event,
            &[PLACE.as_slice(), &PART, &[("text", Text, false), ("logprobs", List, false)]].concat(),
        ),
        "reasoning_text.delta" => {
            members(kind, event, &[PLACE.as_slice(), &PART, &[("delta", Text, false)]].concat())
        }
        "reasoning_text.done" => {
            members(kind, event, &[PLACE.as_slice(), &PART, &[("text", Text, false)]].concat())
        }
        "function_call_arguments.delta" => {
            members(kind, event, &[PLACE.as_slice(), &[("delta", Text, false)]].concat())
        }
        "function_call_arguments.done" => {
            members(kind, event, &[PLACE.as_slice(), &[("arguments", Text, false)]].concat())
        }
        _ => Err(format!("`{kind}` is not an event of the specification")),
    }
}
