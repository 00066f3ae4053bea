//! Questions of servers and the configuration file, in the browser.

use std::fs;

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::hub::{ConsoleHub, command_line, no_requests};

/// Actions of a tool that asks, and returns the answer.
fn asking(method: &str, params: &Value) -> Value {
    json!([
        {"progress": {"progress": 1, "total": 2, "message": "half"}},
        {"request": {"method": method, "params": params}},
        {"answer": true},
    ])
}

#[test]
fn questions_of_servers_are_answered_in_the_page() {
    let form = json!({
        "message": "When? <b>now</b>",
        "requestedSchema": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
    });
    let address =
        json!({"mode": "url", "elicitationId": "1", "url": "javascript:alert(1)", "message": "Open this."});
    let prompt = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "6*7?"}}],
        "maxTokens": 10,
    });
    let script = Script::legacy()
        .plain_tool("book")
        .plain_tool("open_script")
        .plain_tool("think")
        .on("tools/call:book", asking("elicitation/create", &form))
        .on("tools/call:open_script", asking("elicitation/create", &address))
        .on("tools/call:think", asking("sampling/createMessage", &prompt));
    let mut cli = command_line("");
    cli.server("s", &script);
    assert_eq!(cli.run(&["servers", "refresh", "s"]).code, Some(0));
    let mut hub = ConsoleHub::start(cli);
    hub.run_scenario("questions", json!({}), no_requests);
}

#[test]
fn configuration_is_changed_with_a_preview() {
    let mut hub = ConsoleHub::start(command_line(
        "[llm]\nenabled = false\nkey = \"hunter2\"\n[limits]\ncall = \"20s\"\n",
    ));
    hub.run_scenario("settings", json!({}), |hub, request| {
        let file = hub.folder().join("toolhub.toml");
        let text = fs::read_to_string(&file).unwrap();
        match request {
            "text" => json!(text),
            "change" => {
                fs::write(&file, format!("{text}# changed meanwhile\n")).unwrap();
                Value::Null
            }
            other => panic!("unexpected request `{other}`"),
        }
    });
}
