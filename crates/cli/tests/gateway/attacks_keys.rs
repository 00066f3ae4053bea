//! Attacks with duplicate JSON keys: a check that reads one of two equal keys is void if the server reads the other.

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient, Stream, http};
use crate::serving::{Serving, hub};

const SETTINGS: &str = r#"
[profiles.default]
expose = "all"
coerce_arguments = true
[profiles.default.overrides.read]
arguments = { folder = "archive" }
"#;

/// A server whose tool `read` gets the fixed argument `folder = "archive"`, which clients cannot override.
fn serving() -> Serving {
    let schema = json!({"type": "object", "properties": {"folder": {"type": "string"}, "path": {"type": "string"},
        "more": {"type": "object", "properties": {"a": {"type": "integer"}}}}});
    let tool = json!({"name": "read", "description": "Reads a file", "inputSchema": schema});
    let mut cli = hub(SETTINGS);
    let journal = cli.folder().join("journal");
    cli.server("s", &Script::both().tool(tool).plain_tool("echo").journal(journal));
    Serving::start(cli)
}

fn calls(serving: &Serving) -> usize {
    Journal::read(serving.folder().join("journal")).count_method("tools/call")
}

#[tokio::test]
async fn rejects_duplicate_keys_in_params_at_any_depth() {
    let serving = serving();
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let called = calls(&serving);
        for (params, key) in [
            (r#""name":"read","arguments":{"path":"a","folder":"x","folder":"secret"}"#, "folder"),
            (r#""name":"read","arguments":{"path":"a","folder":"x","\u0066older":"secret"}"#, "folder"),
            (r#""name":"read","arguments":{"path":"a","path":"b"}"#, "path"),
            (r#""name":"read","arguments":{"path":"a"},"arguments":{"folder":"secret"}"#, "arguments"),
            (r#""name":"read","arguments":{},"\u0061rguments":{"folder":"secret"}"#, "arguments"),
            (r#""name":"echo","name":"read","arguments":{}"#, "name"),
            (r#""name":"read","arguments":{"more":{"a":1,"a":2}}"#, "a"),
            (r#""name":"read","arguments":{"more":[[{"b":1},{"b":1,"\u0062":2}]]}"#, "b"),
            (r#""name":"call_tool","arguments":{"name":"read","arguments":{"path":"a","path":"b"}}"#, "path"),
            (r#""name":"call_tool","arguments":{"name":"echo","name":"read"}"#, "name"),
        ] {
            let answer = client.ask("\"the-id\"", "tools/call", params).await;
            assert_eq!((answer.status, answer.error()), (400, -32600), "{era:?} {params}");
            assert_eq!(answer.last().id, Some(json!("the-id")), "{params}");
            let message = answer.last().error.as_ref().unwrap()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(&format!("duplicate key \"{key}\"")), "{message}");
        }
        let mut doubled = client.clone();
        doubled.also(r#""progressToken":"q""#);
        assert_eq!(doubled.call("read", "{}").await.error(), -32600, "{era:?}");
        assert_eq!(calls(&serving), called, "no such message reaches a server");
        // Control: the same without duplicates, and equal keys in different objects.
        let fine = client.call("read", r#"{"path":"a","folder":"secret","more":{"path":"b","a":1}}"#).await;
        let received: Value = serde_json::from_str(&fine.text()).unwrap();
        assert_eq!(
            received,
            json!({"path": "a", "more": {"path": "b", "a": 1}, "folder": "archive"}),
            "{era:?}"
        );
    }
}

#[tokio::test]
async fn rejects_duplicate_keys_in_the_envelope() {
    let serving = serving();
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let call = r#""params":{"name":"read","arguments":{}}"#;
    let called = calls(&serving);
    for (members, id) in [
        (format!(r#""id":1,"id":2,"method":"tools/call",{call}"#), Value::Null),
        (format!(r#""id":1,"\u0069d":2,"method":"tools/call",{call}"#), Value::Null),
        (format!(r#""id":3,"method":"ping","method":"tools/call",{call}"#), json!(3)),
        (format!(r#""id":4,"method":"tools/call",{call},{call}"#), json!(4)),
        (format!(r#""id":5,"method":"tools/call",{call},"x":1,"x":2"#), json!(5)),
        (format!(r#""method":"tools/call",{call},{call}"#), Value::Null),
        (r#""id":1,"result":{"action":"decline","action":"accept"}"#.to_owned(), json!(1)),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
        let response = client.post(body.clone()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body}");
        let received: Value = response.json().await.unwrap();
        assert_eq!((&received["error"]["code"], &received["id"]), (&json!(-32600), &id), "{body} {received}");
    }
    assert_eq!(calls(&serving), called);
    assert_eq!(client.call("read", "{}").await.text(), r#"{"folder":"archive"}"#);
}

/// Go's `encoding/json` ignores the case of keys and uses the last one; for programs in C a key ends at a NUL.
#[tokio::test]
async fn fixed_arguments_win_for_servers_that_ignore_case() {
    let serving = serving();
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        for spelled in ["Folder", "FOLDER", "\\u0046older", "folder\\u0000", "FOLDER\\u0000x"] {
            let arguments = format!(r#"{{"folder":"a","{spelled}":"secret","path":"p"}}"#);
            let received = client.call("read", &arguments).await.text();
            assert_eq!(received, r#"{"path":"p","folder":"archive"}"#, "{spelled} {era:?}");
        }
    }
}

/// Arguments sent as text are parsed as JSON only if they are unambiguous.
#[tokio::test]
async fn rejects_duplicate_keys_in_coerced_text() {
    let serving = serving();
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let called = calls(&serving);
    let refused = client.call("read", r#"{"more":"{\"a\":1,\"a\":2}"}"#).await;
    assert!(refused.result().contains("\"isError\":true"), "{}", refused.result());
    assert_eq!(calls(&serving), called);
    let taken = client.call("read", r#"{"more":"{\"a\":1}"}"#).await;
    assert_eq!(taken.text(), r#"{"more":{"a":1},"folder":"archive"}"#);
}

#[tokio::test]
async fn rejects_duplicate_keys_in_batches_and_over_sse() {
    let serving = serving();
    let called = calls(&serving);
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"path":"a","path":"b"}}}"#;
    let once =
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"read","arguments":{"path":"a"}}}"#;
    let info = json!({"name": "old", "version": "1"});
    let hello = |version: &str| {
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
            {"protocolVersion": version, "capabilities": {}, "clientInfo": info}})
        .to_string()
    };
    let post = |body: String| {
        http()
            .post(serving.url())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
    };
    let response = post(hello("2025-03-26")).send().await.unwrap();
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let batch = post(format!("[{twice},{once}]")).header("mcp-session-id", session);
    let received: Value = batch.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&received[0]["error"]["code"], &received[0]["id"]),
        (&json!(-32600), &json!(7)),
        "{received}"
    );
    assert_eq!(
        received[1]["result"]["content"][0]["text"], r#"{"path":"a","folder":"archive"}"#,
        "{received}"
    );

    let mut stream = Stream::open(http().get(format!("{}/sse", serving.root))).await;
    let endpoint = format!("{}{}", serving.root, stream.data().await.unwrap());
    for body in [hello("2024-11-05"), twice.to_owned(), once.to_owned()] {
        assert_eq!(http().post(&endpoint).body(body).send().await.unwrap().status(), 202);
    }
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = stream.message().await.unwrap();
        match message.id {
            Some(Value::Number(id)) if id.as_u64() != Some(0) => {
                answers.push((id.as_u64(), message.error.map(|error| error["code"].clone())));
            }
            _ => {}
        }
    }
    assert_eq!(answers, [(Some(7), Some(json!(-32600))), (Some(8), None)]);
    assert_eq!(calls(&serving), called + 2);
}

/// A client must read a definition in the same way as the hub.
#[tokio::test]
async fn omits_definitions_with_duplicate_keys() {
    let script = Script::both()
        .plain_tool("fine")
        .tool_text(r#"{"name":"safe","name":"rm","inputSchema":{"type":"object"}}"#)
        .tool_text(r#"{"name":"hinted","annotations":{"readOnlyHint":false,"read\u004fnlyHint":true},"inputSchema":{"type":"object"}}"#)
        .tool_text(r#"{"name":"schema","inputSchema":{"type":"object","properties":{"a":{},"a":{"type":"string"}}}}"#);
    let serving = Serving::before(&script, "[native]\nenabled = false\n");
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        assert_eq!(client.tools().await, ["fine"], "{era:?}");
        for left_out in ["safe", "rm", "hinted", "schema"] {
            assert_eq!(client.call(left_out, "{}").await.error(), -32602, "{left_out}");
        }
        assert_eq!(client.call("fine", "{}").await.text(), "{}");
    }
    let listed = serving.cli().run(&["servers", "test", "s"]);
    assert!(format!("{listed:?}").contains("duplicate key"), "{listed:?}");
}
