//! Invalid requests: each is refused with a status, a code and a message that name the error.

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient, http};
use crate::serving::{Serving, hub};

fn echo() -> Script {
    Script::both().plain_tool("echo")
}

/// The status, the code and the message of a refusal.
async fn refusal(response: Response) -> (u16, i64, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
    let message = body["error"]["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
    (status, body["error"]["code"].as_i64().unwrap(), message)
}

#[tokio::test]
async fn rejects_unknown_protocol_version_with_supported_ones() {
    let serving = Serving::before(&echo(), "");
    let mut client = RawClient::connect(&serving.url(), Era::Legacy).await;
    client.set("mcp-protocol-version", "1999-01-01");
    let notification =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let session = HeaderValue::from_str(client.session()).unwrap();
    let asks = |verb: Method| {
        let request = http().request(verb, serving.url()).header("accept", "text/event-stream");
        let request = request.header("mcp-protocol-version", "1999-01-01");
        request.header(HeaderName::from_static("mcp-session-id"), session.clone())
    };
    for request in [
        client.request("1", "tools/list", ""),
        client.post(notification.to_string()),
        client.post(format!("[{notification}]")),
        asks(Method::GET),
        asks(Method::DELETE),
    ] {
        let (status, code, message) = refusal(request.send().await.unwrap()).await;
        assert_eq!((status, code), (400, -32022), "{message}");
        assert!(message.contains("`1999-01-01`") && message.contains("2026-07-28, 2025-11-25"), "{message}");
    }
    // The session still exists.
    client.set("mcp-protocol-version", "2025-11-25");
    assert_eq!(client.ask("1", "ping", "").await.result(), "{}");
}

#[tokio::test]
async fn rejects_invalid_json_with_and_without_session() {
    let serving = Serving::before(&echo(), "");
    for era in [Era::Legacy, Era::Modern] {
        let client = RawClient::connect(&serving.url(), era).await;
        for body in ["[[[[", "{\"jsonrpc\":", "[1,", "[{\"jsonrpc\":\"2.0\"}"] {
            let (status, code, message) = refusal(client.post(body.to_owned()).send().await.unwrap()).await;
            assert_eq!((status, code), (400, -32700), "{era:?} {body}: {message}");
        }
    }
    let deep = "[".repeat(1_000_000);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let (status, code, message) = refusal(client.post(deep).send().await.unwrap()).await;
    assert_eq!((status, code), (400, -32700), "{message}");
}

/// Batches were added in 2025-03-26 and removed in 2025-06-18.
#[tokio::test]
async fn accepts_batches_only_in_revisions_that_allow_them() {
    let serving = Serving::before(&echo(), "");
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = json!([ping(1), ping(2)]).to_string();
    for (version, taken) in [("2025-11-25", false), ("2025-06-18", false), ("2025-03-26", true)] {
        let info = json!({"name": "old", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let post = |body: String| {
            let request = http().post(serving.url()).header("content-type", "application/json");
            request.header("accept", "application/json, text/event-stream").body(body)
        };
        let greeted = post(hello.to_string()).send().await.unwrap();
        let session = greeted.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let response = post(batch.clone()).header("mcp-session-id", session).send().await.unwrap();
        if taken {
            assert_eq!(response.status(), 200);
            let answers: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(1), &json!(2)), "{answers}");
        } else {
            let (status, code, message) = refusal(response).await;
            assert_eq!((status, code), (400, -32600), "{version}: {message}");
            assert!(message.contains("one message at a time") && message.contains("2025-06-18"), "{message}");
        }
    }
}

/// A typo in a profile is reported by `serve` and by `doctor`, with suggestions.
#[tokio::test]
async fn reports_unknown_names_in_profile_with_suggestions() {
    let mut cli = hub("[profiles.work]\nservers = [\"mials\"]\ntools = [\"ecko\"]\n");
    cli.server("mails", &echo());
    let server = "`[profiles.work] servers` names `mials`, and no server is called that; near to it: `mails`";
    let tool = "`[profiles.work] tools` names `ecko`, and no tool is called that; near to it: `echo`";
    let seen = cli.run(&["doctor"]);
    assert!(seen.stdout.contains(server) && seen.stdout.contains(tool), "{seen:?}");
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    client.tools().await;
    let message = serving.stderr();
    assert!(message.contains(server) && message.contains(tool), "{message}");
}
