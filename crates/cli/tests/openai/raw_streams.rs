//! Captured streams of both APIs, checked event by event, and compared with the unstreamed response to the same request.

use serde_json::{Value, json};

use crate::served_hub::ServedHub;
use crate::sse_frames::{self, Frame};
use crate::{chat_stream_rules, stream_rules};

const REQUESTS: [&str; 6] = [
    "Say hello.",
    "Think, and say hello.",
    "Work out 17 * 23.",
    "Read row 3.",
    "What is the weather in Kyoto?",
    "Read row 3, and tell me the weather in Kyoto.",
];

async fn post(hub: &ServedHub, path: &str, body: &Value) -> reqwest::Response {
    let request = hub.client.post(format!("{}/{path}", hub.base_url()));
    let request = request.bearer_auth(&hub.key).header("content-type", "application/json");
    request.body(body.to_string()).send().await.unwrap()
}

pub(crate) async fn unstreamed(hub: &ServedHub, path: &str, body: &Value) -> Value {
    let response = post(hub, path, body).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

pub(crate) async fn streamed(hub: &ServedHub, path: &str, body: &Value) -> (String, Vec<Frame>) {
    let mut body = body.clone();
    body["stream"] = true.into();
    let response = post(hub, path, &body).await;
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}: {text}");
    let frames = sse_frames::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, frames)
}

/// The items without what differs from one response to another.
pub(crate) fn comparable(response: &Value) -> Value {
    let mut items = response["output"].clone();
    for item in items.as_array_mut().unwrap() {
        item.as_object_mut().unwrap().retain(|member, _| member != "id" && member != "call_id");
    }
    items
}

#[tokio::test]
async fn responses_follow_the_rules() {
    let hub = ServedHub::with_model();
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let function = json!({"type": "function", "name": "get_weather", "parameters": parameters});
    let server = json!({"type": "mcp", "server_label": "sheets", "require_approval": "always"});
    let requests = REQUESTS.iter().map(|input| json!({"input": input, "tools": [function]}));
    let parked = json!({"input": "Write row 7.", "tools": [server]});
    for mut body in requests.chain([parked]) {
        body["model"] = "toolhub/default".into();
        let (text, frames) = streamed(&hub, "responses", &body).await;
        let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("{body}: {error}\n{text}"));
        let whole = unstreamed(&hub, "responses", &body).await;
        assert_eq!(comparable(&checked.response), comparable(&whole), "{body}");
        assert_eq!(checked.response["usage"], whole["usage"], "{body}");
        let output: Vec<&Value> = whole["output"].as_array().unwrap().iter().collect();
        let message = output.iter().find(|item| item["type"] == "message");
        let written = message.map_or("", |item| item["content"][0]["text"].as_str().unwrap());
        assert_eq!(checked.deltas.concat(), written, "{body}");
    }
}

#[tokio::test]
async fn chats_follow_the_rules() {
    let hub = ServedHub::with_model();
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let function = json!({"type": "function", "function": {"name": "get_weather", "parameters": parameters}});
    for request in REQUESTS {
        let mut body = json!({"model": "toolhub/default", "tools": [function],
            "messages": [{"role": "user", "content": request}]});
        let whole = unstreamed(&hub, "chat/completions", &body).await;
        let choice = &whole["choices"][0];
        for include_usage in [true, false] {
            body["stream_options"] = json!({"include_usage": include_usage});
            let (text, frames) = streamed(&hub, "chat/completions", &body).await;
            let checked = chat_stream_rules::check(&frames, &["get_weather"])
                .unwrap_or_else(|error| panic!("{request}: {error}\n{text}"));
            let written = choice["message"]["content"].as_str().unwrap_or_default();
            assert_eq!(checked.deltas.concat(), written, "{request}");
            assert_eq!(checked.finish, choice["finish_reason"].as_str().unwrap(), "{request}");
            let usage = include_usage.then(|| whole["usage"].clone());
            assert_eq!(checked.usage, usage, "{request}: {text}");
            let calls = choice["message"]["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            let expect: Vec<(String, String)> = calls
                .iter()
                .map(|call| {
                    ["name", "arguments"].map(|member| call["function"][member].as_str().unwrap().to_owned())
                })
                .map(|[name, arguments]| (name, arguments))
                .collect();
            assert_eq!(checked.calls, expect, "{request}");
        }
    }
}
