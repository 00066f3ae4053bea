//! The cases of the compliance suite of Open Responses (repository `openresponses/openresponses`, `src/lib/compliance-tests.ts`
//! at commit 0cb939cc, and its later version with files, round trips and previous responses), restated: the suite itself is in
//! no package registry. As there, each response must have the members of the specification, an output and the status
//! `completed`.
//!
//! Two cases cannot pass, and are refused with the name of the parameter: images and files, since agents read text. Two cases
//! are optional in the suite too, and refused here: tools that search files and the web.

use serde_json::{Value, json};
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};

use crate::raw_streams::{streamed, unstreamed};
use crate::response_schema::{check_event, check_response};
use crate::served_hub::ServedHub;
use crate::stream_rules;

/// Plays a model that does what the cases ask for.
fn reply(body: &Value) -> Act {
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let text = last["content"].as_str().unwrap_or_default();
    let has = |words: &str| messages.iter().any(|message| message.to_string().contains(words));
    let written = match last["role"].as_str() {
        Some("tool") => format!("It is {text}."),
        _ if text.contains("weather") => {
            return ScriptedReply::text("").call("get_weather", r#"{"location":"San Francisco, CA"}"#).act();
        }
        _ if text == "Say hello." && has("pirate") => "Ahoy!".to_owned(),
        _ if text == "What is my name?" && has("My name is Alice.") => "Alice.".to_owned(),
        _ if text == "What code word did I ask you to remember?" && has("papaya") => "Papaya.".to_owned(),
        _ if text.starts_with("Count") => "1, 2, 3, 4, 5".to_owned(),
        _ if text.starts_with("Remember") => "OK".to_owned(),
        _ => "Hello to you.".to_owned(),
    };
    ScriptedReply::text(&written).with_usage(12, 0, 4).act()
}

fn hub() -> ServedHub {
    let model = ModelServer::by_request(reply);
    let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    ServedHub::start(&settings, Some(model))
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

fn weather() -> Value {
    let location = json!({"type": "string", "description": "The city and state, e.g. San Francisco, CA"});
    let parameters =
        json!({"type": "object", "properties": {"location": location}, "required": ["location"]});
    json!([{"type": "function", "name": "get_weather", "description": "Get the current weather for a location", "parameters": parameters}])
}

fn with_model(mut body: Value) -> Value {
    body["model"] = "toolhub/default".into();
    body
}

/// A response that passes the checks of the suite.
async fn response(hub: &ServedHub, body: Value) -> Value {
    let response = unstreamed(hub, "responses", &with_model(body)).await;
    check_response(&response).unwrap_or_else(|error| panic!("{error}\n{response}"));
    assert_eq!(response["status"], "completed", "{response}");
    assert!(!response["output"].as_array().unwrap().is_empty(), "{response}");
    response
}

/// The final response of a stream whose events pass.
async fn stream(hub: &ServedHub, body: Value) -> (Vec<Value>, Value) {
    let (text, frames) = streamed(hub, "responses", &with_model(body)).await;
    let events: Vec<Value> = frames.iter().map(|frame| frame.json().unwrap()).collect();
    for event in &events {
        check_event(event).unwrap_or_else(|error| panic!("{error}\n{event}"));
    }
    let checked = stream_rules::check(&frames).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(checked.response["status"], "completed", "{text}");
    (events, checked.response)
}

fn text_of(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn text_cases() {
    let hub = hub();
    // basic-response
    let basic = response(&hub, json!({"input": [user("Say hello in exactly 3 words.")]})).await;
    assert_eq!(text_of(&basic), "Hello to you.");
    // streaming-response
    let (_, counted) = stream(&hub, json!({"input": [user("Count from 1 to 5.")]})).await;
    assert_eq!(text_of(&counted), "1, 2, 3, 4, 5");
    // system-prompt
    let system = json!({"type": "message", "role": "system", "content": "You are a pirate. Always respond in pirate speak."});
    let pirate = response(&hub, json!({"input": [system, user("Say hello.")]})).await;
    assert_eq!(text_of(&pirate), "Ahoy!");
    // multi-turn
    let assistant =
        json!({"type": "message", "role": "assistant", "content": "Hello Alice! Nice to meet you."});
    let turns = json!([user("My name is Alice."), assistant, user("What is my name?")]);
    assert_eq!(text_of(&response(&hub, json!({"input": turns})).await), "Alice.");
    // previous-response-id
    let first =
        response(&hub, json!({"input": "Remember this code word: papaya. Reply with only OK."})).await;
    let next =
        json!({"previous_response_id": first["id"], "input": "What code word did I ask you to remember?"});
    let second = response(&hub, next).await;
    assert_eq!(text_of(&second), "Papaya.");
    assert_eq!(second["previous_response_id"], first["id"]);
    // Members that the suite does not send are completed, too.
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
    let more = json!({"input": "Hello", "reasoning": {"effort": "low"}, "text": {"format": schema}});
    response(&hub, more).await;
}

#[tokio::test]
async fn function_cases() {
    let hub = hub();
    let asked = user("What's the weather like in San Francisco?");
    // tool-calling
    let called = response(&hub, json!({"input": [asked], "tools": weather()})).await;
    assert_eq!(called["output"][0]["type"], "function_call", "{called}");
    // tool-calling-streaming
    let (events, _) = stream(&hub, json!({"input": [asked], "tools": weather()})).await;
    let has = |kind: &str| events.iter().any(|event| event["type"] == format!("response.{kind}"));
    let of_call = |kind: &str| {
        events.iter().any(|event| event["type"] == kind && event["item"]["type"] == "function_call")
    };
    assert!(of_call("response.output_item.added") && of_call("response.output_item.done"), "{events:?}");
    assert!(has("function_call_arguments.delta") && has("function_call_arguments.done"), "{events:?}");
    // function-call-roundtrip
    let choice = json!({"type": "function", "name": "get_weather"});
    let input = "Use the weather tool to get the temperature in San Francisco.";
    let first = response(&hub, json!({"input": input, "tools": weather(), "tool_choice": choice})).await;
    let call =
        &first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let output = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "64 degrees and clear"}]);
    let second = response(&hub, json!({"previous_response_id": first["id"], "input": output})).await;
    assert_eq!(text_of(&second), "It is 64 degrees and clear.");
}

/// image-input, file-input, file-search and offline-web-search
#[tokio::test]
async fn unsupported_cases_are_refused_by_name() {
    let hub = hub();
    let content = |part: Value| json!({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is it?"}, part]}]});
    let image = content(json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}));
    let file = content(
        json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}),
    );
    let search =
        json!({"input": "Search.", "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]});
    let web = json!({"input": "Find.", "tools": [{"type": "web_search", "external_web_access": false}]});
    for (body, param) in
        [(image, "input[0]"), (file, "input[0]"), (search, "tools[0].type"), (web, "tools[0].type")]
    {
        let request = hub.client.post(format!("{}/responses", hub.base_url())).bearer_auth(&hub.key);
        let sent = request.body(with_model(body).to_string()).send().await.unwrap();
        let (status, text) = (sent.status().as_u16(), sent.text().await.unwrap());
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, error["error"]["param"].as_str()), (400, Some(param)), "{text}");
    }
    assert!(hub.model_requests().is_empty());
}
