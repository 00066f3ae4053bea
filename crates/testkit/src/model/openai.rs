//! Writes a scripted reply in the format of `chat/completions`.

use serde_json::{Value, json};

use super::script::{CallStyle, ScriptedReply};

/// As an SSE stream.
pub(super) fn stream(reply: &ScriptedReply) -> String {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    events.extend(pieces(&reply.thought).map(|piece| delta(&json!({"reasoning_content": piece}))));
    events.extend(pieces(&reply.text).map(|piece| delta(&json!({"content": piece}))));
    events.extend(calls(reply).into_iter().map(|call| delta(&json!({"tool_calls": [call]}))));
    events.push(chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reply.reason()}])));
    if let Some(usage) = usage(reply) {
        let mut last = chunk(&json!([]));
        last["usage"] = usage;
        events.push(last);
    }
    let mut body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    body
}

/// As a JSON document.
pub(super) fn whole(reply: &ScriptedReply) -> String {
    let calls: Vec<Value> = reply.calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }).collect();
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if !reply.thought.is_empty() {
        message["reasoning_content"] = reply.thought.as_str().into();
    }
    let mut body = chunk(&json!([{"index": 0, "message": message, "finish_reason": reply.reason()}]));
    if let Some(usage) = usage(reply) {
        body["usage"] = usage;
    }
    body.to_string()
}

fn chunk(choices: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": choices})
}

fn delta(delta: &Value) -> Value {
    chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]))
}

/// Splits a text into pieces of a few characters.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(7).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

fn usage(reply: &ScriptedReply) -> Option<Value> {
    let (read, cached, written) = reply.usage?;
    Some(json!({
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached}
    }))
}

fn calls(reply: &ScriptedReply) -> Vec<Value> {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let whole = |(id, name, arguments): &(String, String, String)| json!({"id": id, "type": "function", "function": function(name, arguments.as_str().into())});
    match reply.style {
        CallStyle::Whole => reply.calls.iter().map(whole).collect(),
        CallStyle::SameIndex => {
            let counted = |call| {
                let mut call = whole(call);
                call["index"] = 0.into();
                call
            };
            reply.calls.iter().map(counted).collect()
        }
        CallStyle::WholeObject => {
            let object = |(_, name, arguments): &(String, String, String)| {
                let arguments = serde_json::from_str(arguments).expect("arguments are JSON");
                json!({"function": function(name, arguments)})
            };
            reply.calls.iter().map(object).collect()
        }
        CallStyle::Streamed | CallStyle::Repeated => {
            // Interleaves the pieces of different calls.
            let mut rounds: Vec<Vec<Value>> = Vec::new();
            let mut put = |round: usize, piece: Value| {
                if rounds.len() <= round {
                    rounds.resize(round + 1, Vec::new());
                }
                rounds[round].push(piece);
            };
            for (index, (id, name, arguments)) in reply.calls.iter().enumerate() {
                let begin = json!({"index": index, "id": id, "type": "function", "function": function(name, "".into())});
                put(0, begin);
                for (round, piece) in pieces(arguments).enumerate() {
                    let mut piece = json!({"index": index, "function": {"arguments": piece}});
                    if reply.style == CallStyle::Repeated {
                        piece["id"] = id.as_str().into();
                        piece["function"]["name"] = name.as_str().into();
                    }
                    put(round + 1, piece);
                }
            }
            rounds.into_iter().flatten().collect()
        }
    }
}
