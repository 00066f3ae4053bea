//! The official Rust SDK as a client, in both eras over Streamable HTTP and stdio.
#![expect(deprecated, reason = "clients still support features that 2026-07-28 deprecates, such as sampling")]

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    ProgressNotificationParam, ProtocolVersion, SamplingMessage,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::raw_client::http;
use crate::real_clients::hub_with_both;
use crate::serving::{Serving, await_cancelled};

/// A client that answers requests and records progress.
#[derive(Clone, Default)]
struct TestClient {
    progress: Arc<Mutex<Vec<f64>>>,
    progress_signal: Arc<Notify>,
}

impl ClientHandler for TestClient {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder().enable_sampling().enable_elicitation().build();
        ClientConfig::new(can, Implementation::new("ada", "1"))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let prompt = serde_json::to_value(&params.messages[0].content).unwrap();
        let prompt = prompt.get("text").or_else(|| prompt[0].get("text")).and_then(Value::as_str).unwrap();
        let answer = SamplingMessage::assistant_text(format!("heard: {prompt}"));
        Ok(CreateMessageResult::new(answer, "none".to_owned()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": "ada", "email": "ada@example.org"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
        self.progress_signal.notify_one();
    }
}

fn modes() -> [(ClientLifecycleMode, &'static str); 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        (ClientLifecycleMode::Initialize, "2025-11-25"),
        (ClientLifecycleMode::Auto { preferred_versions, legacy_version: None }, "2026-07-28"),
    ]
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn text_of(
    client: &RunningService<RoleClient, TestClient>,
    tool: &'static str,
    arguments: Value,
) -> String {
    let result = client.call_tool(call(tool, arguments)).await.unwrap();
    match &result.content[0] {
        ContentBlock::Text(text) => text.text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Exercises all features of a client.
async fn check(client: &RunningService<RoleClient, TestClient>, version: &str) {
    let agreed = client.peer_info().unwrap().protocol_version.to_string();
    assert_eq!(agreed, version);
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "greet") && tools.iter().any(|tool| tool.name == "hold"));
    assert_eq!(text_of(client, "greet", json!({"name": "世界"})).await, "Hello, 世界!");
    match client.call_tool(call("no_such_tool", json!({}))).await {
        Err(ServiceError::McpError(error)) => assert_eq!(error.code.0, -32602),
        other => panic!("{other:?}"),
    }
    text_of(client, "test_tool_with_progress", json!({})).await;
    while client.service().progress.lock().unwrap().len() < 3 {
        client.service().progress_signal.notified().await;
    }
    // The SDK handles each notification in a separate task, so that their order is undefined here.
    let mut progress = std::mem::take(&mut *client.service().progress.lock().unwrap());
    progress.sort_unstable_by(f64::total_cmp);
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    assert_eq!(
        text_of(client, "test_sampling", json!({"prompt": "hello"})).await,
        "LLM response: heard: hello"
    );
    let elicited = text_of(client, "test_elicitation", json!({"message": "who?"})).await;
    assert!(elicited.contains(r#""username":"ada""#), "{elicited}");
    let held = client.call_tool(call("hold", json!({})));
    let progress_signal = async {
        while client.service().progress.lock().unwrap().is_empty() {
            client.service().progress_signal.notified().await;
        }
    };
    tokio::select! {
        held = held => panic!("{held:?}"),
        () = progress_signal => {}
    }
    assert_eq!(text_of(client, "greet", json!({"name": "again"})).await, "Hello, again!");
}

#[tokio::test]
async fn rust_sdk_in_both_eras_over_http() {
    let (cli, journal) = hub_with_both();
    let serving = Serving::start(cli);
    for (count, (mode, version)) in modes().into_iter().enumerate() {
        let config = StreamableHttpClientTransportConfig::with_uri(serving.url());
        let transport = StreamableHttpClientTransport::with_client(http().clone(), config);
        let client = TestClient::default().serve_with_lifecycle(transport, mode).await.unwrap();
        check(&client, version).await;
        await_cancelled(&journal, count + 1).await;
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn rust_sdk_in_both_eras_over_stdio() {
    for (mode, version) in modes() {
        let (cli, journal) = hub_with_both();
        let mut command = tokio::process::Command::from(cli.command(&["serve", "--stdio"]));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let transport = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = TestClient::default().serve_with_lifecycle(transport, mode).await.unwrap();
        check(&client, version).await;
        await_cancelled(&journal, 1).await;
        client.cancel().await.unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}
