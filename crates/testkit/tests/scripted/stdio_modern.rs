//! The server behaves as a modern one, or as one of both eras, over stdio.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::stdio_client::{Client, text};

pub(crate) fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn modern() -> Value {
    json!({"_meta": meta("2026-07-28")})
}

fn tool() -> Value {
    json!({"_meta": meta("2026-07-28"), "name": "echo", "arguments": {"a": 1}})
}

#[test]
fn serves_discover_list_and_call() {
    let mut client =
        Client::start(&Script::modern().plain_tool("echo").set("ttlMs", 5).set("instructions", "hi"));
    let found = client.ask(json!(1), "server/discover", modern());
    let result = &found["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "scripted");
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(5), &json!("public")));
    assert_eq!(result["instructions"], "hi");
    let list = client.ask(json!(2), "tools/list", modern());
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["ttlMs"], 5);
    assert_eq!(list["result"]["tools"][0]["name"], "echo");
    let called = client.ask(json!(3), "tools/call", tool());
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(text(&called), r#"{"a":1}"#);
    assert_eq!(client.ask(json!(4), "ping", modern())["error"]["code"], -32601);
}

#[test]
fn rejects_requests_without_supported_version() {
    let mut client = Client::start(&Script::modern().plain_tool("echo"));
    let old = client.ask(json!(1), "tools/list", json!({"_meta": meta("1900-01-01")}));
    assert_eq!(old["error"]["code"], -32022);
    assert_eq!(old["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "1900-01-01"}));
    assert_eq!(client.ask(json!(2), "tools/list", json!({}))["error"]["code"], -32602);
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(client.ask(json!(3), "tools/list", bare)["error"]["code"], -32602);
    let legacy = client.ask(json!(4), "initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(legacy["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[test]
fn serves_both_eras_concurrently() {
    let mut client = Client::start(&Script::both().plain_tool("echo"));
    let found = client.ask(json!(1), "server/discover", modern());
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28", "2025-11-25"]));
    assert_eq!(client.ask(json!(2), "tools/list", json!({}))["error"]["code"], -32602, "no handshake yet");
    client.handshake();
    let legacy = client.ask(json!(3), "tools/list", json!({}));
    assert!(legacy["result"].get("resultType").is_none(), "{legacy}");
    let modern = client.ask(json!(4), "tools/call", tool());
    assert_eq!(modern["result"]["resultType"], "complete");
}

#[test]
fn acknowledges_subscription_with_its_id() {
    let change = json!({"notify": {"method": "notifications/tools/list_changed"}});
    let script = Script::modern().on(
        "subscriptions/listen",
        json!([[{"acknowledge": true}, change, {"reply": {"resultType": "complete"}}], []]),
    );
    let mut client = Client::start(&script);
    let mut params = modern();
    params["notifications"] = json!({"toolsListChanged": true, "promptsListChanged": true});
    client.request(json!("sub"), "subscriptions/listen", params.clone());
    let first = client.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    let second = client.message();
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(second["params"], json!({"_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}}));
    assert_eq!(client.message()["id"], "sub");
    // By default it stays open.
    client.request(json!(2), "subscriptions/listen", params);
    assert_eq!(client.message()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
    client.expect_silence();
}
