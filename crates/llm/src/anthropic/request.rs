//! Builds requests to a `messages` endpoint.

use toolhub_core::model::{ChatMessage, ChatRequest, OfferedTool, ToolChoice};
use toolhub_core::{RawJson, RawObject};

use crate::endpoint::Endpoint;
use crate::names::{wire_id, wire_name};
use crate::openai::object_schema;

/// The default of the required `max_tokens`; every current model accepts it.
const DEFAULT_MAX_TOKENS: u32 = 8_192;

/// The name of the tool whose arguments are the answer: the way to get structured output in this format.
pub(crate) fn answer_tool(request: &ChatRequest) -> Option<String> {
    request.answer_schema.as_ref().map(|(name, _)| wire_name(name))
}

/// Builds the request body.
pub(crate) fn request_body(request: &ChatRequest, endpoint: &Endpoint) -> RawObject {
    let limit = request.max_tokens.or(endpoint.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    let mut body =
        RawObject::default().with("model", endpoint.model.as_str()).with("max_tokens", u64::from(limit));
    if !request.system.trim().is_empty() {
        let system = block("text").with("text", request.system.as_str());
        body.set("system", RawJson::of(&[with_cache_control(system)]));
    }
    body.set("messages", RawJson::of(&messages(request)));
    let tools = tools(request);
    if !tools.is_empty() {
        body.set("tools", RawJson::of(&tools));
        if let Some(choice) = choice(request) {
            body.set("tool_choice", choice);
        }
    }
    if let Some(temperature) = request.temperature.or(endpoint.temperature) {
        body.set("temperature", RawJson::of(&temperature));
    }
    body.with("stream", true)
}

fn block(kind: &str) -> RawObject {
    RawObject::default().with("type", kind)
}

/// Adds a cache breakpoint (`cache_control`) to a block.
fn with_cache_control(block: RawObject) -> RawObject {
    block.with("cache_control", RawObject::default().with("type", "ephemeral"))
}

fn tools(request: &ChatRequest) -> Vec<RawObject> {
    let named = |name: &str, description: &str, schema: &RawJson| {
        RawObject::default()
            .with("name", wire_name(name))
            .with("description", description)
            .with("input_schema", object_schema(schema))
    };
    let offered = |tool: &OfferedTool| named(tool.name.as_str(), &tool.description, &tool.schema);
    let mut tools: Vec<RawObject> = request.tools.iter().map(offered).collect();
    // The breakpoint precedes the answer tool, which differs between requests.
    if let Some(last) = tools.pop() {
        tools.push(with_cache_control(last));
    }
    if let Some((name, schema)) = &request.answer_schema {
        tools.push(named(name, "Gives the answer. Call it once, with the whole answer.", schema));
    }
    tools
}

fn choice(request: &ChatRequest) -> Option<RawObject> {
    let free_to_call = !request.tools.is_empty() && request.choice != ToolChoice::Forbidden;
    match (&request.answer_schema, request.choice) {
        // Either a tool call or the answer.
        (Some(_), _) if free_to_call => Some(block("any")),
        (Some((name, _)), _) => Some(block("tool").with("name", wire_name(name))),
        (None, ToolChoice::Free) => None,
        (None, ToolChoice::Required) => Some(block("any")),
        (None, ToolChoice::Forbidden) => Some(block("none")),
    }
}

/// Roles alternate, and the results of all calls of a turn come first in a single message.
fn messages(request: &ChatRequest) -> Vec<RawObject> {
    let mut turns: Vec<(&str, Vec<RawObject>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            ChatMessage::User(text) => ("user", text_blocks(text)),
            ChatMessage::Assistant { text, calls } => {
                let mut blocks = text_blocks(text);
                blocks.extend(calls.iter().map(|call| {
                    block("tool_use")
                        .with("id", wire_id(call.id.as_str()))
                        .with("name", wire_name(call.tool.as_str()))
                        .with("input", call.arguments.clone())
                }));
                ("assistant", blocks)
            }
            ChatMessage::Tool { call, text, failed, .. } => {
                let mut result = block("tool_result")
                    .with("tool_use_id", wire_id(call.as_str()))
                    .with("content", text.as_str());
                if *failed {
                    result.set("is_error", true);
                }
                ("user", vec![result])
            }
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    // In a loop of tool calls the next request starts with all messages of this one, so they are cached.
    if let (Some((_, blocks)), Some(ChatMessage::Tool { .. })) = (turns.last_mut(), request.messages.last())
        && let Some(last) = blocks.pop()
    {
        blocks.push(with_cache_control(last));
    }
    let message = |(role, blocks): (&str, Vec<RawObject>)| {
        RawObject::default().with("role", role).with("content", RawJson::of(&blocks))
    };
    turns.into_iter().map(message).collect()
}

/// A text block; nothing for a blank text, which the API rejects.
fn text_blocks(text: &str) -> Vec<RawObject> {
    if text.trim().is_empty() { Vec::new() } else { vec![block("text").with("text", text)] }
}
