//! The exact request bodies in both wire formats, and the fields that are left out for endpoints that reject them.

use toolhub_core::model::{ChatMessage, ChatRequest, ModelCall, StopReason, ToolChoice};
use toolhub_core::{CallId, RawJson};
use toolhub_llm::WireFormat;
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};

use super::support::{BOTH, ask, ask_streaming, client, request, tool};

fn called(id: &str, tool: &str, arguments: &str) -> ModelCall {
    ModelCall {
        id: CallId::new(id),
        tool: tool.into(),
        arguments: RawJson::parse(arguments).unwrap(),
        source: None,
        repaired: Vec::new(),
    }
}

/// A request with every kind of message.
fn talk() -> ChatRequest {
    let answered = |id: &str, text: &str, failed: bool| ChatMessage::Tool {
        call: CallId::new(id),
        tool: "weather".into(),
        text: text.to_owned(),
        failed,
    };
    let mut chat_request = request();
    chat_request.messages.push(ChatMessage::Assistant {
        text: String::new(),
        calls: vec![
            called("call_1", "weather", r#"{"city":"Kyoto","n":1234567890123456789012345678901234567890}"#),
            called("call/2", "读表 / read", "{}"),
        ],
    });
    chat_request.messages.push(answered("call_1", "sunny", false));
    chat_request.messages.push(answered("call/2", "no such sheet", true));
    ChatRequest { max_tokens: Some(300), temperature: Some(0.5), ..chat_request }
}

fn schema() -> Option<(String, RawJson)> {
    let schema = r#"{"type":"object","properties":{"sunny":{"type":"boolean"}},"required":["sunny"],"additionalProperties":false}"#;
    Some(("weather answer".to_owned(), RawJson::parse(schema).unwrap()))
}

async fn sent(api: WireFormat, chat_request: &ChatRequest) -> String {
    let server = ModelServer::start([ScriptedReply::text("{}").act()]);
    ask(&client(&server, api), chat_request).await.unwrap();
    let received = &server.received()[0];
    format!("{}\n{}", received.line, serde_json::to_string_pretty(&received.body).unwrap())
}

#[tokio::test]
async fn bodies() {
    for api in BOTH {
        let id = api.id();
        insta::assert_snapshot!(format!("{id}-talk"), sent(api, &talk()).await);
        let must = ChatRequest { choice: ToolChoice::Required, ..talk() };
        insta::assert_snapshot!(format!("{id}-must-call"), sent(api, &must).await);
        let may_not = ChatRequest { choice: ToolChoice::Forbidden, answer_schema: schema(), ..talk() };
        insta::assert_snapshot!(format!("{id}-schema-no-calls"), sent(api, &may_not).await);
        let plain = ChatRequest { answer_schema: schema(), ..ChatRequest::new("").user("Sunny?") };
        insta::assert_snapshot!(format!("{id}-schema"), sent(api, &plain).await);
    }
}

#[tokio::test]
async fn sends_numbers_of_any_length_verbatim() {
    for api in BOTH {
        let long =
            r#"{"type":"object","properties":{"n":{"maximum":1234567890123456789012345678901234567890}}}"#;
        let mut chat_request = talk();
        chat_request.tools.push(tool("count", long));
        let server = ModelServer::start([ScriptedReply::text("x").act()]);
        ask(&client(&server, api), &chat_request).await.unwrap();
        let count = server.received()[0].text.matches("1234567890123456789012345678901234567890").count();
        assert_eq!(count, 2, "{api:?}");
    }
}

#[tokio::test]
async fn returns_answer_for_schema() {
    let answer = r#"{"sunny": true}"#;
    let chat_request = ChatRequest { answer_schema: schema(), ..request() };
    let server = ModelServer::start([ScriptedReply::text(answer).act()]);
    assert_eq!(ask(&client(&server, WireFormat::OpenAi), &chat_request).await.unwrap().text, answer);

    // For Anthropic a forced tool call replaces the response format; it is hidden from the caller.
    let wire = {
        let server = ModelServer::start([ScriptedReply::text("x").act()]);
        ask(&client(&server, WireFormat::Anthropic), &chat_request).await.unwrap();
        server.bodies()[0]["tools"][2]["name"].as_str().unwrap().to_owned()
    };
    let server = ModelServer::start([ScriptedReply::text("Well: ").call(&wire, answer).act()]);
    let (reply, deltas) = ask_streaming(&client(&server, WireFormat::Anthropic), &chat_request).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, reply.calls.len()), (answer, StopReason::End, 0));
    let deltas = format!("{deltas:?}");
    assert!(deltas.contains("sunny") && !deltas.contains("ToolCallStarted"), "{deltas}");
}

#[tokio::test]
async fn omits_rejected_fields_from_later_requests() {
    let chat_request = ChatRequest { answer_schema: schema(), max_tokens: Some(9), ..request() };
    let fine = || ScriptedReply::text("{}").act();
    let server = ModelServer::start([
        Act::refuse(400, "unknown field `stream_options`"),
        Act::refuse(400, "use 'max_completion_tokens' instead"),
        Act::refuse(400, "This response_format type is unavailable now"),
        Act::refuse(400, "bad request"),
        fine(),
    ]);
    let client = client(&server, WireFormat::OpenAi);
    ask(&client, &chat_request).await.unwrap();
    ask(&client, &chat_request).await.unwrap();
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 6, "what was learned is kept");
    assert_eq!(bodies[4], bodies[5]);
    assert!(bodies[1].get("stream_options").is_none());
    assert_eq!(bodies[2]["max_completion_tokens"], 9);
    assert_eq!(bodies[3]["response_format"], serde_json::json!({"type": "json_object"}));
    assert!(bodies[3]["messages"][0]["content"].as_str().unwrap().contains("\"sunny\""));
    assert!(bodies[4].get("response_format").is_none());
}

#[tokio::test]
async fn lists_models() {
    for api in BOTH {
        let server = ModelServer::listing(&["a", "b"], []);
        let models = client(&server, api).models(std::time::Duration::from_secs(5)).await.unwrap();
        assert_eq!(models, ["a", "b"]);
        assert_eq!(server.received()[0].line, "GET /v1/models");
    }
}
