//! Attacks with the `requestState` of servers: a state continues a request, so it is valid only for the principal and the
//! request that it was issued for.

use std::path::Path;

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::access::two_principals_with;
use crate::raw_client::{Era, RawClient, RawResponse};
use crate::serving::{Serving, hub};

const STATE: &str = "1";

fn asks() -> Value {
    let question = json!({"method": "elicitation/create", "params": {
        "message": "pay 900?", "requestedSchema": {"type": "object", "properties": {}}}});
    json!({"resultType": "input_required", "inputRequests": {"ok": question}, "requestState": STATE})
}

/// A server that requires a confirmation of the first payment.
fn bank(journal: &Path) -> Script {
    Script::modern()
        .plain_tool("pay")
        .plain_tool("refund")
        .on("tools/call:pay", json!([[{"reply": asks()}], [{"text": "paid"}]]))
        .journal(journal)
}

fn retry(name: &str, state: &Value) -> String {
    let answers = json!({"ok": {"action": "accept", "content": {}}});
    format!(r#""name":"{name}","arguments":{{}},"inputResponses":{answers},"requestState":{state}"#)
}

fn through_call_tool(state: &Value) -> String {
    retry("call_tool", state).replace(r#""arguments":{}"#, r#""arguments":{"name":"pay","arguments":{}}"#)
}

fn state_of(answer: &RawResponse) -> Value {
    serde_json::from_str::<Value>(answer.result()).unwrap()["requestState"].clone()
}

/// The states that reached the server, and the number of tool calls.
fn seen(journal: &Path) -> (Vec<Value>, usize) {
    let seen = Journal::read(journal);
    let states = seen.messages().into_iter().map(|message| message["params"]["requestState"].clone());
    (states.filter(|state| !state.is_null()).collect(), seen.count_method("tools/call"))
}

#[tokio::test]
async fn rejects_request_state_of_another_principal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let (serving, [ann, bob]) = two_principals_with(&bank(&journal), "");
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    let bobs = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
    let token = state_of(&ann.call("pay", "{}").await);
    for state in [&json!(STATE), &token] {
        for params in [retry("pay", state), through_call_tool(state)] {
            let refused = bobs.ask("2", "tools/call", &params).await;
            assert_eq!(refused.error(), -32602, "{params} {refused:?}");
        }
    }
    assert_eq!(seen(&journal), (Vec::new(), 1), "only the first call of ann reached the server");
    // Legacy requests have no such member: the gateway treats the request as a new call.
    let old = RawClient::with_token(&serving.url(), Era::Legacy, Some(&bob)).await;
    assert_eq!(old.ask("3", "tools/call", &retry("pay", &token)).await.text(), "paid");
    assert_eq!(old.ask("3", "tools/call", &retry("pay", &json!(STATE))).await.text(), "paid");
    assert!(seen(&journal).0.is_empty());
    assert!(
        Journal::read(&journal)
            .messages()
            .iter()
            .all(|message| message["params"]["inputResponses"].is_null())
    );
    // Control: the principal that it was issued to can continue, and the server gets its original state.
    assert_eq!(ann.ask("4", "tools/call", &retry("pay", &token)).await.text(), "paid");
    assert_eq!(ann.ask("5", "tools/call", &through_call_tool(&token)).await.text(), "paid");
    assert_eq!(seen(&journal).0, [json!(STATE), json!(STATE)]);
}

#[tokio::test]
async fn rejects_request_state_of_another_request_or_server() {
    let mut cli = hub("[profiles.default]\nexpose = \"all\"\n");
    let (one, other) = (cli.folder().join("one"), cli.folder().join("other"));
    cli.server("one", &bank(&one));
    cli.server("other", &Script::both().plain_tool("mail").journal(&other));
    cli.server("old", &Script::legacy().plain_tool("file"));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let token = state_of(&client.call("pay", "{}").await);
    assert_ne!(token, json!(STATE));
    for name in ["refund", "mail", "file"] {
        for state in [&token, &json!(STATE), &json!("toolhub.unknown"), &json!(17)] {
            let refused = client.ask("2", "tools/call", &retry(name, state)).await;
            assert_eq!(refused.error(), -32602, "{name} {state}");
        }
        // Responses without a state are accepted.
        let answers = retry(name, &Value::Null);
        assert!(client.ask("2", "tools/call", &answers).await.last().result.is_some(), "{name}");
    }
    assert!(seen(&one).0.is_empty() && seen(&other).0.is_empty());
    assert_eq!(client.ask("3", "tools/call", &retry("pay", &token)).await.text(), "paid");
}

/// Go's `encoding/json` ignores the case of keys, and could read a state that was not checked.
#[tokio::test]
async fn rejects_request_state_under_another_spelling() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    let resources = json!({"resultType": "complete", "resources": [{"uri": "r://one", "name": "one"}],
        "ttlMs": 60000, "cacheScope": "public"});
    let templates =
        json!({"resultType": "complete", "resourceTemplates": [], "ttlMs": 60000, "cacheScope": "public"});
    let contents = json!({"resultType": "complete", "contents": [{"uri": "r://one", "text": "read"}]});
    let script = Script::modern()
        .set("capabilities", json!({"tools": {}, "resources": {}}))
        .plain_tool("echo")
        .on("resources/list", json!([{"reply": resources}]))
        .on("resources/templates/list", json!([{"reply": templates}]))
        .on("resources/read", json!([[{"reply": asks()}], [{"reply": contents}]]))
        .journal(&journal);
    cli.server("s", &script);
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let token = state_of(&client.ask("1", "resources/read", r#""uri":"r://one""#).await);
    for spelled in ["RequestState", "REQUESTSTATE", "\\u0052equestState", "InputResponses"] {
        let read = client.ask("2", "resources/read", &format!(r#""uri":"r://one","{spelled}":"1""#)).await;
        assert!(read.result().contains("read"), "{spelled}: {read:?}");
    }
    let reads: Vec<Value> = Journal::read(&journal)
        .messages()
        .into_iter()
        .filter(|message| message["method"] == "resources/read")
        .map(|message| message["params"].clone())
        .collect();
    assert_eq!(reads.len(), 5);
    for params in &reads {
        let keys: Vec<&String> = params.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["uri", "_meta"], "{params}");
    }
    // Control: the correct spelling works.
    let answers = json!({"ok": {"action": "accept"}});
    let again = format!(r#""uri":"r://one","inputResponses":{answers},"requestState":{token}"#);
    assert!(client.ask("3", "resources/read", &again).await.result().contains("read"));
    assert_eq!(seen(&journal).0, [json!(STATE)]);
}
