//! Clients older than 2026-07-28 continue their sessions after a restart of `serve`.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient, Stream};
use crate::serving::Serving;

/// A server that sends a sampling request, with one tool that sends none.
fn asking() -> Script {
    let question = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    Script::legacy()
        .plain_tool("echo")
        .plain_tool("ask")
        .on("tools/call:ask", json!([{"request": question}, {"text": "asked"}]))
}

/// The capabilities of the client are kept, its requests are answered, and its streams start anew.
#[tokio::test]
async fn session_survives_restart() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let serving = Serving::before(&asking(), "");
        let client = RawClient::legacy_with(&serving.url(), revision, json!({"sampling": {}})).await;
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
        let mut before = Stream::open(client.get()).await;
        let mut question_stream =
            Stream::open(client.request("1", "tools/call", r#""name":"ask","arguments":{}"#)).await;
        let old_question = question_stream.until("sampling/createMessage").await.id.unwrap();
        let position = question_stream.position().to_owned();
        let serving = serving.restarted().await;
        assert!(before.is_broken().await && question_stream.is_broken().await, "{revision}");

        assert_eq!(client.call("echo", r#"{"a":1}"#).await.text(), r#"{"a":1}"#, "{revision}");
        // The stream of a lost request cannot be resumed. The stream that belongs to no request starts anew, with notifications
        // that every list may have changed.
        assert_eq!(client.get().header("last-event-id", &position).send().await.unwrap().status(), 405);
        let mut listening = Stream::open(client.get().header("last-event-id", "0-1")).await;
        for list in ["tools", "prompts", "resources"] {
            listening.until(&format!("notifications/{list}/list_changed")).await;
        }
        let first = listening.position().to_owned();
        assert!(first.split('-').count() == 3, "no id of before is given out again: {first}");
        drop(listening);
        assert_eq!(client.get().header("last-event-id", &first).send().await.unwrap().status(), 200);

        // A response to a request from before the restart is not matched to a new request.
        let mut question_stream =
            Stream::open(client.request("1", "tools/call", r#""name":"ask","arguments":{}"#)).await;
        let question = question_stream.until("sampling/createMessage").await.id.unwrap();
        assert_ne!(question, old_question, "{revision}");
        assert_ne!(question_stream.position(), position, "{revision}");
        let answer = |id: &Value, text: &str| {
            let content = json!({"type": "text", "text": text});
            let result = json!({"role": "assistant", "model": "m", "content": content});
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
        };
        for (id, text) in [(&old_question, "late"), (&question, "now")] {
            assert_eq!(client.post(answer(id, text)).send().await.unwrap().status(), 202);
        }
        let done = question_stream.message().await.unwrap().result.unwrap();
        assert!(done.get().contains("asked"), "{done}");
        drop(serving);
    }
}

/// Concurrent requests after a restart resume a single session.
#[tokio::test]
async fn concurrent_requests_resume_one_session() {
    let serving = Serving::before(&asking(), "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let serving = serving.restarted().await;
    let calls = (0..20).map(|_| client.call("echo", "{}"));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.text(), "{}");
    }
    assert!(serving.get("/metrics").await.contains("toolhub_sessions{profile=\"default\"} 1"));
}
