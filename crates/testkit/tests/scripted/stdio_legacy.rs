//! The server behaves as a legacy one over stdio unless the script states otherwise.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::stdio_client::{Client, LONG, text};

#[test]
fn serves_handshake_list_and_echo() {
    let script = Script::legacy().plain_tool("echo").set("name", "peer").set("instructions", "be kind");
    let mut client = Client::start(&script);
    let answer = client.ask(json!(1), "initialize", json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer["result"]["serverInfo"]["name"], "peer");
    assert_eq!(answer["result"]["instructions"], "be kind");
    assert_eq!(answer["result"]["capabilities"], json!({"tools": {"listChanged": true}}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.ask(json!("p"), "ping", json!({})), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    let list = client.ask(json!(2), "tools/list", json!({}));
    assert_eq!(
        list["result"],
        json!({"tools": [{"name": "echo", "description": "echo", "inputSchema": {"type": "object"}}]})
    );
    let arguments = r#"{"b":1,"a":1234567890123456789012345678901234567890}"#;
    client.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    ));
    assert_eq!(text(&client.message()), arguments);
    assert_eq!(client.ask(json!(4), "tools/call", json!({"name": "none"}))["error"]["code"], -32602);
    assert_eq!(client.ask(json!(5), "resources/list", json!({}))["error"]["code"], -32601);
}

#[test]
fn rejects_requests_before_the_handshake() {
    let mut client = Client::start(&Script::legacy().plain_tool("echo"));
    for method in ["server/discover", "tools/list", "tools/call"] {
        let answer = client.ask(json!(1), method, json!({}));
        assert_eq!(answer["error"]["code"], -32602, "{method}");
    }
    assert!(client.ask(json!(2), "ping", json!({}))["result"].is_object());
    client.ask(json!(3), "initialize", json!({}));
    assert_eq!(client.ask(json!(4), "tools/list", json!({}))["error"]["code"], -32602, "not confirmed yet");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(client.ask(json!(5), "tools/list", json!({}))["result"].is_object());
}

#[test]
fn returns_fixed_or_requested_version() {
    for (version, requested, answered) in
        [("2024-11-05", "2025-11-25", "2024-11-05"), ("echo", "2026-07-28", "2026-07-28")]
    {
        let mut client = Client::start(&Script::legacy().set("version", version));
        let answer = client.ask(json!(1), "initialize", json!({"protocolVersion": requested}));
        assert_eq!(answer["result"]["protocolVersion"], answered);
    }
}

#[test]
fn sends_tools_verbatim() {
    let written = r#"{"name":"odd","x-vendor":{"z":1,"a":2},"big":1234567890123456789012345678901234567890,"inputSchema":null}"#;
    let pretty = "{\"name\": \"pretty\",\n  \"inputSchema\": true}";
    let mut client = Client::open(&Script::legacy().tool_text(written).tool_text(pretty));
    client.request(json!(1), "tools/list", json!({}));
    let line = client.line();
    assert!(line.contains(written), "{line}");
    assert!(line.contains(r#""inputSchema": true}"#), "{line}");
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[test]
fn paginates_lists() {
    let script =
        (0..5).fold(Script::legacy().set("page_size", 2), |script, n| script.plain_tool(&format!("t{n}")));
    let mut client = Client::open(&script);
    let first = client.ask(json!(1), "tools/list", json!({}));
    assert_eq!(names(&first), ["t0", "t1"]);
    let second = client.ask(json!(2), "tools/list", json!({"cursor": first["result"]["nextCursor"]}));
    assert_eq!(names(&second), ["t2", "t3"]);
    let third = client.ask(json!(3), "tools/list", json!({"cursor": second["result"]["nextCursor"]}));
    assert_eq!(names(&third), ["t4"]);
    assert!(third["result"].get("nextCursor").is_none());
    assert_eq!(client.ask(json!(4), "tools/list", json!({"cursor": "bad"}))["error"]["code"], -32602);
}

#[test]
fn repeats_cursor_endlessly() {
    let script =
        Script::legacy().plain_tool("a").plain_tool("b").set("page_size", 1).set("cursor_repeats", true);
    let mut client = Client::open(&script);
    let first = client.ask(json!(1), "tools/list", json!({}));
    let cursor = &first["result"]["nextCursor"];
    for id in 2..6 {
        let page = client.ask(json!(id), "tools/list", json!({"cursor": cursor}));
        assert_eq!(&page["result"]["nextCursor"], cursor);
        assert_eq!(names(&page), ["b"]);
    }
}

#[test]
fn journal_contains_messages_and_events() {
    let mut client = Client::open(&Script::legacy().plain_tool("echo"));
    client.call(7, "echo");
    client.message();
    client.send_text("no json");
    client.close_input();
    assert!(client.wait_exit().success());
    let journal = client.journal();
    assert_eq!(journal.methods(), ["initialize", "notifications/initialized", "tools/call"]);
    assert_eq!(journal.count_method("tools/call"), 1);
    assert_eq!(journal.messages()[2]["params"]["arguments"], json!({"n": 7}));
    assert_eq!(journal.entries()[4]["invalid"], "no json");
    assert_eq!(journal.pids(), [client.child.id()]);
    for event in ["start", "eof", "exit"] {
        assert_eq!(journal.events(event).len(), 1, "{event}");
    }
    assert!(
        journal.entries().iter().all(|entry| entry["t_ms"].as_u64().is_some_and(|t| t > 1_600_000_000_000))
    );
}

#[test]
fn waits_for_journal_entries() {
    let mut client = Client::start(&Script::legacy());
    let mut journal = client.journal();
    client.request(json!(1), "ping", json!({}));
    journal.wait_for(|journal| journal.count_method("ping") == 1, LONG);
}

#[test]
fn accepts_script_on_the_command_line() {
    let output = std::process::Command::new(toolhub_testkit::scripted::binary())
        .args(["stdio", r#"{"banner": ["hello"]}"#])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the server starts");
    assert_eq!(output.stdout, b"hello\n");
    assert!(output.status.success());
}

#[test]
fn rejects_invalid_script() {
    for (script, problem) in [
        (r#"{"erra": "legacy"}"#, "unknown field `erra`"),
        (r#"{"on": {"ping": [{"reply": {}, "text": ""}]}}"#, "the script is wrong"),
        ("no/such/file", "cannot read the script `no/such/file`"),
    ] {
        let output = std::process::Command::new(toolhub_testkit::scripted::binary())
            .args(["stdio", script])
            .output()
            .expect("the server starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(problem), "{stderr}");
        assert_eq!(output.status.code(), Some(2));
    }
}
