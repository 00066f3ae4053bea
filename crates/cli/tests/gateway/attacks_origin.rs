//! Messages that a server sends on its own, with two callers: no caller receives a message that may concern the other. Tests
//! the real gateway; each caller has its own token.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};
use toolhub_testkit::processes;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::access::{two_principals_before, two_principals_with, two_principals_with_stderr};
use crate::raw_client::{ERAS, Era, RawClient, Stream};
use crate::serving::{Serving, await_cancelled};

/// An elicitation and a log message of the server; both contain data of ann.
fn question() -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": "ann, your password?", "requestedSchema": {"type": "object", "properties": {}}}})
}

fn log() -> Value {
    json!({"method": "notifications/message", "params": {"level": "error", "data": "key-of-ann"}})
}

/// `work` answers immediately, `hold` never; `ask` sends a request and returns its response; `leak` logs and sends a request,
/// like a server that still works on an earlier call; `open` leaves a request unanswered.
fn script(journal: &Path) -> Script {
    let mut open = question();
    open["wait"] = json!(false);
    Script::legacy()
        .set("capabilities", json!({"tools": {}, "logging": {}}))
        .plain_tool("work")
        .plain_tool("hold")
        .on("tools/call:hold", json!([{"progress": {"progress": 1}}, {"ignore": true}]))
        .plain_tool("open")
        .on("tools/call:open", json!([{"request": open}, {"ignore": true}]))
        .plain_tool("ask")
        .on("tools/call:ask", json!([{"request": question()}, {"answer": true}]))
        .plain_tool("leak")
        .on("tools/call:leak", json!([{"notify": log()}, {"request": question()}, {"answer": true}]))
        .journal(journal)
}

async fn client(serving: &Serving, era: Era, token: &str) -> RawClient {
    RawClient::with_token(&serving.url(), era, Some(token)).await
}

fn called(tool: &str) -> String {
    format!(r#""name":"{tool}","arguments":{{}}"#)
}

/// Bob's call makes the server send messages. He receives only his own result, which contains the rejection of the request.
async fn assert_receives_nothing_of_ann(bob: &RawClient) {
    let answer = bob.ask("7", "tools/call", &called("leak")).await;
    let methods: Vec<_> = answer.messages.iter().filter_map(|message| message.method.as_deref()).collect();
    assert!(methods.is_empty(), "{methods:?}");
    let result = answer.result();
    assert!(result.contains("-32601") && result.contains("not certain which client"), "{result}");
    assert!(!result.contains("key-of-ann") && !result.contains("input_required"), "{result}");
}

#[tokio::test]
async fn late_messages_of_answered_call_reach_no_other_caller() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let (serving, [ann, bob]) = two_principals_with(&script(&folder.path().join("journal")), "");
        let (ann, bob) = (client(&serving, era, &ann).await, client(&serving, era, &bob).await);
        ann.call("work", "{}").await.text();
        assert_receives_nothing_of_ann(&bob).await;
    }
}

#[tokio::test]
async fn late_messages_of_cancelled_call_reach_no_other_caller() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let (serving, [ann, bob]) = two_principals_with(&script(&journal), "");
    let (ann, bob) = (client(&serving, Era::Modern, &ann).await, client(&serving, Era::Modern, &bob).await);
    let mut held = Stream::open(ann.request("1", "tools/call", &called("hold"))).await;
    held.until("notifications/progress").await;
    drop(held);
    await_cancelled(&journal, 1).await;
    assert_receives_nothing_of_ann(&bob).await;
}

#[tokio::test]
async fn pending_request_of_one_caller_does_not_misroute_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, [ann, bob]) = two_principals_with(&script(&folder.path().join("journal")), "");
    let (ann, bob) = (client(&serving, Era::Legacy, &ann).await, client(&serving, Era::Legacy, &bob).await);
    let mut open = Stream::open(ann.request("1", "tools/call", &called("open"))).await;
    open.until("elicitation/create").await;
    assert_receives_nothing_of_ann(&bob).await;
}

#[tokio::test]
async fn ambiguous_log_messages_go_only_to_owner_log() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, [ann, bob]) = two_principals_with_stderr(&script(&folder.path().join("journal")), "");
    let (ann, bob) = (client(&serving, Era::Legacy, &ann).await, client(&serving, Era::Legacy, &bob).await);
    let streams = [ann.listen().await, bob.listen().await];
    bob.call("work", "{}").await.text();
    ann.call("leak", "{}").await.result();
    // The end of a session ends its stream, so that all messages have arrived by then.
    for ((who, client), mut stream) in [("ann", &ann), ("bob", &bob)].into_iter().zip(streams) {
        client.end().await;
        while let Some(message) = stream.message().await {
            assert_ne!(message.method.as_deref(), Some("notifications/message"), "{who}: {message:?}");
        }
    }
    let stderr = serving.stderr();
    assert!(stderr.contains("key-of-ann"), "the owner's log has it: {stderr}");
}

#[tokio::test]
async fn single_principal_receives_requests_and_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, [ann, _]) = two_principals_with(&script(&folder.path().join("journal")), "");
    let ann = client(&serving, Era::Legacy, &ann).await;
    ann.call("work", "{}").await.text();
    let mut stream = Stream::open(ann.request("1", "tools/call", &called("leak"))).await;
    let message = stream.until("notifications/message").await;
    assert_eq!(message.params.unwrap()["data"], "key-of-ann");
    let question = stream.until("elicitation/create").await;
    let answer =
        json!({"jsonrpc": "2.0", "id": question.id, "result": {"action": "accept", "content": {"a": 1}}});
    assert_eq!(ann.post(answer.to_string()).send().await.unwrap().status(), 202);
    let result = stream.message().await.unwrap().result.unwrap();
    assert!(result.get().contains("accept"), "{result}");
}

/// Over HTTP a server sends messages on the stream of the request that they belong to.
#[tokio::test]
async fn messages_on_request_stream_reach_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let server = HttpServer::start(&script(&folder.path().join("journal")).set("sse", true));
    let (serving, [ann, bob]) = two_principals_before(json!({"url": server.url}), "");
    let (ann, bob) = (client(&serving, Era::Modern, &ann).await, client(&serving, Era::Modern, &bob).await);
    ann.call("work", "{}").await.text();
    bob.call("work", "{}").await.text();
    let answer = ann.call("leak", "{}").await;
    assert!(answer.result().contains("input_required"), "{answer:?}");
}

const OF_CALLERS: &str = "[[servers]]\nid = \"s\"\ninstances = \"caller\"\n";

#[tokio::test]
async fn caller_instances_are_isolated() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let (serving, [ann, bob]) = two_principals_with(&script(&journal), OF_CALLERS);
        let clients = [client(&serving, era, &ann).await, client(&serving, era, &bob).await];
        for client in &clients {
            client.call("work", "{}").await.text();
        }
        // Both clients have used the server, and each receives the request of its own call.
        for client in &clients {
            if era == Era::Modern {
                let answer = client.call("ask", "{}").await;
                assert!(answer.result().contains("input_required"), "{answer:?}");
                continue;
            }
            let mut stream = Stream::open(client.request("1", "tools/call", &called("ask"))).await;
            let question = stream.until("elicitation/create").await;
            let answer = json!({"jsonrpc": "2.0", "id": question.id, "result": {"action": "decline"}});
            assert_eq!(client.post(answer.to_string()).send().await.unwrap().status(), 202);
            assert!(stream.message().await.unwrap().result.unwrap().get().contains("decline"));
        }
        let pids = callers(&Journal::read(&journal));
        assert_eq!(pids.len(), 2, "one process for each caller");
        drop(serving);
        assert!(pids.iter().all(|pid| !processes::alive(*pid)), "and none is left");
    }
}

/// The processes that received calls.
fn callers(journal: &Journal) -> HashSet<u32> {
    let calls = journal.entries().iter().filter(|entry| entry["message"]["method"] == "tools/call");
    calls.filter_map(|entry| u32::try_from(entry["pid"].as_u64()?).ok()).collect()
}

#[tokio::test]
async fn rejects_instance_beyond_limit_and_names_setting() {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("{OF_CALLERS}max_instances = 1\n");
    let (serving, [ann, bob]) = two_principals_with(&script(&folder.path().join("journal")), &settings);
    let (ann, bob) = (client(&serving, Era::Modern, &ann).await, client(&serving, Era::Modern, &bob).await);
    ann.call("work", "{}").await.text();
    let refused = bob.call("work", "{}").await;
    let refused = refused.result();
    assert!(refused.contains("max_instances") && refused.contains("\"isError\":true"), "{refused}");
    ann.call("work", "{}").await.text();
}

/// A caller that repeatedly crashes its own instance does not affect other callers.
#[tokio::test]
async fn failing_caller_instance_does_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        script(&folder.path().join("journal")).plain_tool("die").on("tools/call:die", json!([{"exit": 3}]));
    let (serving, [ann, bob]) = two_principals_with(&script, OF_CALLERS);
    let (ann, bob) = (client(&serving, Era::Modern, &ann).await, client(&serving, Era::Modern, &bob).await);
    for _ in 0..7 {
        assert!(ann.call("die", "{}").await.result().contains("\"isError\":true"));
    }
    bob.call("work", "{}").await.text();
}

/// Without tokens there is one principal; a late message of a cancelled call still does not reach another session.
#[tokio::test]
async fn late_messages_of_cancelled_call_reach_no_other_session() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let serving = Serving::before(&script(&journal), "");
    let ann = RawClient::connect(&serving.url(), Era::Legacy).await;
    let bob = RawClient::connect(&serving.url(), Era::Legacy).await;
    let mut held = Stream::open(ann.request("1", "tools/call", &called("hold"))).await;
    held.until("notifications/progress").await;
    ann.end().await;
    await_cancelled(&journal, 1).await;
    assert_receives_nothing_of_ann(&bob).await;
}

/// Late responses to a cancelled call of ann, from servers that lose the id: they do not fail a call of bob, and their contents
/// do not reach him.
#[tokio::test]
async fn drops_responses_without_usable_id() {
    let late = [
        r#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"key-of-ann"}]}}"#,
        r#"{"jsonrpc":"2.0","id":"3","result":{"content":[{"type":"text","text":"key-of-ann"}]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"key-of-ann"}}"#,
        r#"{"jsonrpc":"2.0","id":3.5,"result":{"content":[{"type":"text","text":"key-of-ann"}]}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"key-of-ann"}]"#,
    ];
    for line in late {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script = script(&journal)
            .plain_tool("own")
            .on("tools/call:own", json!([{"raw": line}, {"delay_ms": 50}, {"text": "bob's own"}]));
        let (serving, [ann, bob]) = two_principals_with(&script, "");
        let (ann, bob) =
            (client(&serving, Era::Modern, &ann).await, client(&serving, Era::Modern, &bob).await);
        let mut held = Stream::open(ann.request("1", "tools/call", &called("hold"))).await;
        held.until("notifications/progress").await;
        drop(held);
        await_cancelled(&journal, 1).await;
        let answer = bob.call("own", "{}").await;
        assert_eq!(answer.text(), "bob's own", "{line}");
    }
}

/// A server may keep the roots of one client for later calls, so a shared server receives only the configured roots.
#[tokio::test]
async fn roots_of_one_client_do_not_affect_another() {
    let look = json!([{"request": {"method": "roots/list"}}, {"answer": true}]);
    let script = Script::legacy().plain_tool("look").on("tools/call:look", look);
    for (settings, message) in [
        ("", r#"\"roots\":[]"#),
        ("[[servers]]\nid = \"s\"\nroots = [\"/srv/data\", \"https://example.org/x\"]\n", "file:///srv/data"),
        // Control: with its own instance, a caller receives `roots/list`, which this client does not support.
        (OF_CALLERS, "error"),
    ] {
        let (serving, [ann, bob]) = two_principals_with(&script, settings);
        for token in [&ann, &bob] {
            let client = client(&serving, Era::Legacy, token).await;
            let answer = client.call("look", "{}").await;
            assert!(answer.result().contains(message), "{settings}: {answer:?}");
        }
    }
}
