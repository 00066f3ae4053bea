//! Tools that need client capabilities: listed for all clients; a call by a client without one fails with an error that names
//! it.

use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::raw_client::{Era, RawClient, Stream};
use crate::real_clients::peers;
use crate::serving::{Serving, hub};

/// Tools that server-everything offers only to clients with sampling, elicitation and roots.
const CONDITIONAL: [(&str, &str); 3] = [
    ("trigger-sampling-request", "sampling"),
    ("trigger-elicitation-request", "elicitation"),
    ("get-roots-list", "roots"),
];

fn before_everything() -> CommandLine {
    let mut cli = hub("[native]\nenabled = false\n[profiles.default]\nexpose = \"all\"\n");
    let program =
        peers().join("everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    cli.entry("everything", json!({"command": "node", "args": [program, "stdio"]}));
    cli
}

fn sampled() -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "from the client"}})
}

/// The list is the same whether `serve` or `toolhub tools` connected to the server first.
#[tokio::test]
async fn conditional_tools_are_listed_and_served_for_clients_with_the_capability() {
    for listed_before in [false, true] {
        let cli = before_everything();
        if listed_before {
            let listed = cli.run(&["tools", "--json"]);
            assert!(
                listed.code == Some(0) && listed.stdout.contains("trigger-sampling-request"),
                "{listed:?}"
            );
        }
        let serving = Serving::start(cli);
        let able = json!({"sampling": {}, "elicitation": {}, "roots": {}});
        let able = RawClient::legacy_with(&serving.url(), "2025-06-18", able).await;
        let tools = able.tools().await;
        for (tool, _) in CONDITIONAL {
            assert!(tools.iter().any(|name| name == tool), "{tool} is not in {tools:?}");
        }
        let call = r#""name":"trigger-sampling-request","arguments":{"prompt":"hi"}"#;
        let mut call_stream = Stream::open(able.request("1", "tools/call", call)).await;
        let question = call_stream.until("sampling/createMessage").await.id;
        let answer = json!({"jsonrpc": "2.0", "id": question, "result": sampled()});
        assert_eq!(able.post(answer.to_string()).send().await.unwrap().status(), 202);
        let done = loop {
            if let Some(result) = call_stream.message().await.unwrap().result {
                break result;
            }
        };
        assert!(done.get().contains("from the client"), "{done}");

        // For a client without capabilities the error names the missing one.
        let unable = RawClient::legacy_with(&serving.url(), "2025-06-18", json!({})).await;
        for (tool, arguments) in
            [("trigger-sampling-request", r#"{"prompt":"hi"}"#), ("trigger-elicitation-request", "{}")]
        {
            let refused = unable.call(tool, arguments).await;
            let part = CONDITIONAL.iter().find(|(name, _)| *name == tool).unwrap().1;
            let why = format!("the client does not declare the capability `{part}`");
            assert!(
                refused.result().contains("\"isError\":true") && refused.result().contains(&why),
                "{refused:?}"
            );
        }
        // A shared server does not get the roots of a client.
        assert!(!able.call("get-roots-list", "{}").await.result().contains("file:///"));
    }
}

/// Commands that only list declare the same capabilities as `serve`. Calls from the command line declare none, and a list made
/// that way is renewed when `serve` connects to the server.
#[tokio::test]
async fn serve_refreshes_list_cached_without_capabilities() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let plain = json!({"name": "plain", "inputSchema": {"type": "object"}});
    let conditional = json!({"name": "conditional", "inputSchema": {"type": "object"}});
    let lists =
        [json!([plain]), json!([plain, conditional])].map(|tools| json!([{"reply": {"tools": tools}}]));
    let server = Script::legacy().plain_tool("plain").on("tools/list", json!(lists)).journal(&journal);
    let server = HttpServer::start(&server);
    let mut cli = hub("[native]\nenabled = false\n");
    cli.entry("s", json!({"url": server.url}));
    let called = cli.run(&["call", "plain"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    let serving = Serving::start(cli);
    let client = RawClient::legacy_with(&serving.url(), "2025-06-18", json!({"sampling": {}})).await;
    assert_eq!(client.tools().await, ["plain"]);
    let mut stream = Stream::open(client.get()).await;
    client.call("plain", "{}").await.text();
    stream.until("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["plain", "conditional"]);
    assert_eq!(serving.cli().run(&["--no-hub", "tools", "--refresh"]).code, Some(0));
    let seen = Journal::read(&journal);
    let seen = seen.messages();
    let greetings = seen.iter().filter(|message| message["method"] == "initialize");
    let declared: Vec<Vec<&String>> = greetings
        .map(|greeting| greeting["params"]["capabilities"].as_object().unwrap().keys().collect())
        .collect();
    assert_eq!(declared[0], [""; 0]);
    assert!(
        declared.len() > 2 && declared[1..].iter().all(|all| all == &["sampling", "elicitation", "roots"]),
        "{declared:?}"
    );
}

/// The error names the capability, independent of how the server handles the rejection.
#[tokio::test]
async fn error_names_the_missing_capability() {
    let question = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    let ask = json!({"request": question});
    let failed = json!({"content": [{"type": "text", "text": "sorry"}], "isError": true});
    let script = Script::legacy()
        .plain_tool("repeats")
        .plain_tool("hides")
        .plain_tool("errs")
        .plain_tool("copes")
        .on("tools/call:repeats", json!([ask, {"answer": true}]))
        .on("tools/call:hides", json!([ask, {"reply": failed}]))
        .on("tools/call:errs", json!([ask, {"error": {"code": -32603, "message": "sorry"}}]))
        .on("tools/call:copes", json!([ask, {"text": "done without"}]));
    let serving = Serving::before(&script, "");
    let unable = RawClient::legacy_with(&serving.url(), "2025-11-25", json!({"elicitation": {}})).await;
    let why = "the client does not declare the capability `sampling`";
    assert!(unable.call("repeats", "{}").await.text().contains(why));
    let hidden: Value = serde_json::from_str(unable.call("hides", "{}").await.result()).unwrap();
    assert_eq!(hidden["content"], json!([{"type": "text", "text": "sorry"}, {"type": "text", "text": why}]));
    let erred = unable.call("errs", "{}").await;
    let message = erred.last().error.as_ref().unwrap()["message"].as_str().unwrap().to_owned();
    assert!(erred.error() == -32603 && message.contains("sorry") && message.contains(why), "{message}");
    assert_eq!(unable.call("copes", "{}").await.text(), "done without");
    // A modern client gets the error of its revision.
    let mut modern = RawClient::connect(&serving.url(), Era::Modern).await;
    modern.declare(json!({"elicitation": {"form": {}}}));
    for tool in ["hides", "errs"] {
        let refused = modern.call(tool, "{}").await;
        assert_eq!(refused.error(), -32021, "{tool}");
        let data = &refused.last().error.as_ref().unwrap()["data"];
        assert_eq!(data["requiredCapabilities"], json!({"sampling": {}}), "{tool}");
    }
    assert_eq!(modern.call("copes", "{}").await.text(), "done without");
}
