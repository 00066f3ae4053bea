//! Shared helpers: clients for a scripted server, a sample request, and the events of a stream.

use std::sync::{Mutex, PoisonError};

use toolhub_core::RawJson;
use toolhub_core::model::{ChatReply, ChatRequest, LanguageModel as _, ModelError, OfferedTool, ReplyDelta};
use toolhub_llm::{ApiKey, Endpoint, ModelClient, WireFormat};
use toolhub_testkit::model::ModelServer;

pub(crate) const KEY: &str = "sk-hunter2hunter2";
pub(crate) const BOTH: [WireFormat; 2] = [WireFormat::OpenAi, WireFormat::Anthropic];

pub(crate) fn endpoint(server: &ModelServer, api: WireFormat) -> Endpoint {
    let mut endpoint = Endpoint::new(api, &server.url, "scripted").unwrap();
    endpoint.key = ApiKey::new(KEY);
    endpoint
}

pub(crate) fn client(server: &ModelServer, api: WireFormat) -> ModelClient {
    ModelClient::new(endpoint(server, api))
}

pub(crate) fn tool(name: &str, schema: &str) -> OfferedTool {
    OfferedTool {
        name: name.into(),
        description: format!("Does {name}."),
        schema: RawJson::parse(schema).unwrap(),
    }
}

/// A request with two tools, one of which has a name that no endpoint accepts.
pub(crate) fn request() -> ChatRequest {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    ChatRequest {
        tools: vec![tool("weather", schema), tool("读表 / read", "{}")],
        ..ChatRequest::new("Be brief.")
    }
    .user("What is the weather in Kyoto?")
}

pub(crate) async fn ask(client: &ModelClient, request: &ChatRequest) -> Result<ChatReply, ModelError> {
    client.chat(request, &|_| {}).await
}

/// Sends a request and returns the reply and all events of the stream.
pub(crate) async fn ask_streaming(
    client: &ModelClient,
    request: &ChatRequest,
) -> (Result<ChatReply, ModelError>, Vec<ReplyDelta>) {
    let deltas = Mutex::new(Vec::new());
    let reply = client
        .chat(request, &|delta| deltas.lock().unwrap_or_else(PoisonError::into_inner).push(delta))
        .await;
    (reply, deltas.into_inner().unwrap())
}

/// A reply as text, without the generated call ids.
pub(crate) fn render(reply: &ChatReply) -> String {
    let calls: Vec<String> =
        reply.calls.iter().map(|call| format!("{}({})", call.tool, call.arguments)).collect();
    let unreadable: Vec<String> = reply.unreadable.iter().map(ToString::to_string).collect();
    format!(
        "{:?} {} | {} | {} | {:?}",
        reply.stop,
        reply.text,
        calls.join(" "),
        unreadable.join(" "),
        reply.usage
    )
}
