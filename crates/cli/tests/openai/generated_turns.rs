//! Thousands of generated turns: a model that thinks, talks and calls tools of every kind in any order. Each stream must follow
//! the rules, and contain what the unstreamed response to the same request contains.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};

use crate::raw_streams::{comparable, streamed, unstreamed};
use crate::served_hub::ServedHub;
use crate::{chat_stream_rules, stream_rules};

/// Each is taken four times: streamed and not, in both APIs.
const TURNS: u64 = 600;
const CONCURRENT: usize = 6;
/// What the model can call: tools of the hub, a function of the client, tools that fail, and one that needs approval.
const CALLS: [(&str, &str); 7] = [
    ("read_sheet", r#"{"row":3}"#),
    ("calculate", r#"{"expression":"6*7"}"#),
    ("calculate", r#"{"expression":"1/0"}"#),
    ("read_sheet", r#"{"row":"three"}"#),
    ("no_such_tool", "{}"),
    ("get_weather", r#"{"city":"Kyoto"}"#),
    ("write_sheet", r#"{"row":7}"#),
];

/// A number that is determined by the turn, the reply and what it is for.
fn choice(turn: u64, round: usize, purpose: &str) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((turn, round, purpose));
    usize::try_from(hash % 997).unwrap()
}

fn reply(body: &Value) -> Act {
    let messages = body["messages"].as_array().unwrap();
    let asked = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let text = messages[asked]["content"].as_str().unwrap();
    // A message of the hub that asks for an answer ends the turn.
    let Some(turn) = text.strip_prefix("turn ").and_then(|number| number.parse().ok()) else {
        return ScriptedReply::text("That is all.").act();
    };
    let round = messages[asked..].iter().filter(|message| message["role"] == "assistant").count();
    let pick = |purpose: &str, of: usize| choice(turn, round, purpose) % of;
    let words = ["", "One moment.", "Ich prüfe das – 请稍候 👀", "a\n\nb\r\n data: [DONE]"][pick("text", 4)];
    let mut reply = ScriptedReply::text(words);
    if pick("thinks", 4) == 0 {
        reply = reply.thinking("Hm.\n思考");
    }
    let calls = if round >= 4 { 0 } else { pick("calls", 4) };
    for number in 0..calls {
        let (tool, arguments) = CALLS[pick(&format!("call {number}"), CALLS.len())];
        reply = reply.call(tool, arguments);
    }
    if calls == 0 && words.is_empty() {
        reply = ScriptedReply::text("Done.");
    }
    reply.with_usage(10 + round as u64, 0, 5).act()
}

fn functions(nested: bool) -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    match nested {
        true => json!([{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]),
        false => json!([{"type": "function", "name": "get_weather", "parameters": parameters}]),
    }
}

async fn check_responses(hub: &ServedHub, turn: u64) -> &'static str {
    let body =
        json!({"model": "toolhub/default", "input": format!("turn {turn}"), "tools": functions(false)});
    let (text, frames) = streamed(hub, "responses", &body).await;
    let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("turn {turn}: {error}\n{text}"));
    let whole = unstreamed(hub, "responses", &body).await;
    assert_eq!(comparable(&checked.response), comparable(&whole), "turn {turn}");
    for member in ["status", "incomplete_details", "usage", "error"] {
        assert_eq!(checked.response[member], whole[member], "turn {turn}");
    }
    let output = whole["output"].as_array().unwrap();
    match output.iter().any(|item| item["type"] == "mcp_approval_request") {
        true => "approval",
        false if output.iter().any(|item| item["type"] == "function_call") => "function",
        false => "text",
    }
}

async fn check_chat(hub: &ServedHub, turn: u64) {
    let mut body = json!({"model": "toolhub/default", "tools": functions(true),
        "messages": [{"role": "user", "content": format!("turn {turn}")}]});
    let whole = unstreamed(hub, "chat/completions", &body).await;
    body["stream_options"] = json!({"include_usage": true});
    let (text, frames) = streamed(hub, "chat/completions", &body).await;
    let checked = chat_stream_rules::check(&frames, &["get_weather"])
        .unwrap_or_else(|error| panic!("turn {turn}: {error}\n{text}"));
    let choice = &whole["choices"][0];
    let written = choice["message"]["content"].as_str().unwrap_or_default();
    assert_eq!(checked.deltas.concat(), written, "turn {turn}");
    assert_eq!(checked.finish, choice["finish_reason"].as_str().unwrap(), "turn {turn}");
    assert_eq!(checked.usage.as_ref(), Some(&whole["usage"]), "turn {turn}");
    let calls = choice["message"]["tool_calls"].as_array().map_or(0, Vec::len);
    assert_eq!(checked.calls.len(), calls, "turn {turn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_the_rules_and_equal_the_unstreamed() {
    let model = ModelServer::by_request(reply);
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    let hub = &ServedHub::start(&settings, Some(model));
    let kinds: Vec<&str> = stream::iter(0..TURNS)
        .map(|turn| async move {
            check_chat(hub, turn).await;
            check_responses(hub, turn).await
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    for kind in ["approval", "function", "text"] {
        let count = kinds.iter().filter(|found| **found == kind).count();
        assert!(count > 10, "{count} turns end with {kind}");
    }
    // What needs approval never ran.
    assert!(!hub.called().iter().any(|tool| tool == "write_sheet"));
}
