//! Writes a scripted reply in the format of `messages`.

use serde_json::{Value, json, value::RawValue};

use super::openai::pieces;
use super::script::ScriptedReply;

/// As an SSE stream.
pub(super) fn stream(reply: &ScriptedReply) -> String {
    let mut body = String::new();
    let mut event = |data: Value| {
        let kind = data["type"].as_str().unwrap_or_default().to_owned();
        body.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
    };
    let mut start = message(reply);
    start["content"] = json!([]);
    event(json!({"type": "message_start", "message": start}));
    event(json!({"type": "ping"}));
    let mut index = 0;
    let mut block = |begin: Value, deltas: Vec<Value>| {
        event(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        for delta in deltas {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !reply.thought.is_empty() {
        let deltas = pieces(&reply.thought).map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
        let signed = [json!({"type": "signature_delta", "signature": "c2lnbmVk"})];
        block(json!({"type": "thinking", "thinking": ""}), deltas.chain(signed).collect());
    }
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text).map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (id, name, arguments) in &reply.calls {
        let first = [json!({"type": "input_json_delta", "partial_json": ""})];
        let deltas =
            pieces(arguments).map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        let begin = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        block(begin, first.into_iter().chain(deltas).collect());
    }
    let written = reply.usage.map_or(0, |(_, _, written)| written);
    event(json!({
        "type": "message_delta", "delta": {"stop_reason": reason(reply), "stop_sequence": null},
        "usage": {"output_tokens": written}
    }));
    event(json!({"type": "message_stop"}));
    body
}

/// As a JSON document.
pub(super) fn whole(reply: &ScriptedReply) -> String {
    let mut blocks: Vec<Box<RawValue>> = Vec::new();
    let raw = |text: String| RawValue::from_string(text).expect("a block is JSON");
    if !reply.thought.is_empty() {
        let block = json!({"type": "thinking", "thinking": reply.thought, "signature": "c2lnbmVk"});
        blocks.push(raw(block.to_string()));
    }
    if !reply.text.is_empty() {
        blocks.push(raw(json!({"type": "text", "text": reply.text}).to_string()));
    }
    for (id, name, arguments) in &reply.calls {
        // Verbatim, so that numbers keep all digits.
        let (id, name) = (json!(id), json!(name));
        blocks.push(raw(format!(
            "{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{arguments}}}"
        )));
    }
    let mut body = message(reply);
    body["stop_reason"] = reason(reply).into();
    body["usage"]["output_tokens"] = reply.usage.map_or(0, |(_, _, written)| written).into();
    let head = body.to_string();
    let content = serde_json::to_string(&blocks).expect("blocks are JSON");
    head.replacen("\"content\":[]", &format!("\"content\":{content}"), 1)
}

fn message(reply: &ScriptedReply) -> Value {
    let (read, cached, _) = reply.usage.unwrap_or_default();
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": read - cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached,
            "output_tokens": 1
        }
    })
}

fn reason(reply: &ScriptedReply) -> &'static str {
    match reply.reason() {
        "length" => "max_tokens",
        "content_filter" => "refusal",
        "tool_calls" => "tool_use",
        _ if !reply.calls.is_empty() => "tool_use",
        _ => "end_turn",
    }
}
