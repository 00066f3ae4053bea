//! The hub with a real language model, which `cargo xtask e2e-model` starts and passes in `TOOLHUB_E2E_MODEL_URL`. Other runs
//! report the test as ignored.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed expectation fails the test, and the output of a real model is printed"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolhub_core::RawJson;
use toolhub_core::model::{ChatReply, ChatRequest, LanguageModel as _, OfferedTool, ReplyDelta};
use toolhub_llm::ModelClient;
use toolhub_llm::discover::{EndpointUrl, ModelChoice, discover_model};

const VARIABLE: &str = "TOOLHUB_E2E_MODEL_URL";

/// The model, discovered by its URL alone, like that of a user.
async fn model() -> ModelClient {
    let url = std::env::var(VARIABLE)
        .unwrap_or_else(|_| panic!("`{VARIABLE}` is not set: run `cargo xtask e2e-model`"));
    let choice = ModelChoice {
        url: Some(EndpointUrl(url)),
        timeout: Some(Duration::from_secs(300)),
        ..ModelChoice::default()
    };
    let found = discover_model(&choice, &|_| None).await.unwrap();
    println!("{}: {}", found.endpoint.name(), found.why);
    ModelClient::new(found.endpoint)
}

/// Sends a request and prints the speed.
async fn ask(model: &ModelClient, request: &ChatRequest) -> ChatReply {
    let (begun, pieces) = (Instant::now(), AtomicUsize::new(0));
    let on_delta = |_: ReplyDelta| {
        pieces.fetch_add(1, Ordering::Relaxed);
    };
    let reply = model.chat(request, &on_delta).await.unwrap();
    let (took, pieces) = (begun.elapsed().as_secs_f32(), pieces.into_inner());
    let usage = reply.usage.unwrap_or_default();
    println!(
        "{took:.1} s: {} tokens in ({} cached), {} out, {pieces} pieces: {:?} {:?}",
        usage.input, usage.cached, usage.output, reply.text, reply.calls
    );
    reply
}

fn tool(name: &str, description: &str, argument: &str) -> OfferedTool {
    let schema = serde_json::json!({
        "type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]
    });
    OfferedTool { name: name.into(), description: description.to_owned(), schema: RawJson::of(&schema) }
}

#[tokio::test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
async fn model_chats_calls_tool_and_follows_schema() {
    let model = model().await;
    let plain = ChatRequest { temperature: Some(0.0), max_tokens: Some(80), ..ChatRequest::new("Be brief.") };

    let reply = ask(&model, &plain.clone().user("Say hello.")).await;
    assert!(!reply.text.trim().is_empty() && reply.usage.unwrap().output > 0);

    let tools = vec![
        tool("get_weather", "Gets the current weather of a city.", "city"),
        tool("calculate", "Works out an arithmetic expression.", "expression"),
    ];
    let chat_request = ChatRequest { tools, ..plain.clone() };
    let reply = ask(&model, &chat_request.user("What is the weather in Kyoto now?")).await;
    // This small model sometimes writes its calls as text, although native calls are requested.
    let called = format!("{} {:?}", reply.text, reply.calls);
    assert!(called.contains("get_weather") && called.contains("Kyoto"), "{called}");

    let schema = serde_json::json!({
        "type": "object", "additionalProperties": false,
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"]
    });
    let chat_request =
        ChatRequest { answer_schema: Some(("trip".to_owned(), RawJson::of(&schema))), ..plain };
    let reply = ask(&model, &chat_request.user("A trip to Osaka for three days, as JSON.")).await;
    let trip: serde_json::Value = serde_json::from_str(&reply.text).unwrap();
    assert_eq!((trip["city"].as_str(), trip["days"].as_i64()), (Some("Osaka"), Some(3)));
}
