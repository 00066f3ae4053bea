//! The access log: one line for each answered request, with its principal and subject, and without credentials.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::access::two_principals_with;
use crate::raw_client::{Era, RawClient, Stream, http};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

/// The lines of the log, once there are `count` of them.
async fn lines(path: &Path, count: usize) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        let complete_lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let found: Vec<Value> = complete_lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        if found.len() >= count {
            return found;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "only {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The fields of a line that do not vary between runs.
fn steady(line: &Value) -> Value {
    let mut line = line.clone();
    for changing in ["time", "client", "bytes", "ms"] {
        assert!(!line[changing].is_null(), "{changing} is missing in {line}");
        line.as_object_mut().unwrap().remove(changing);
    }
    line
}

#[tokio::test]
async fn logs_one_line_per_request() {
    let script = Script::both().plain_tool("echo");
    let (serving, [ann, bob]) = two_principals_with(&script, "[serve]\naccess_log = \"access.log\"\n");
    let path = serving.folder().join("access.log");
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&ann)).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    let line = &lines(&path, 1).await[0];
    let expected = json!({"principal": "key:ann", "verb": "POST", "path": "/mcp", "method": "tools/call", "tool": "echo", "status": 200});
    assert_eq!(steady(line), expected);
    assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    assert!(line["bytes"].as_u64().unwrap() > 50 && line["ms"].as_f64().unwrap() > 0.0, "{line}");
    assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");

    // An unauthorized request, an invalid one, a probe, and a stream, which is logged when it ends.
    let mut unauthorized = client.clone();
    unauthorized.set("authorization", "Bearer th_of-a-stranger");
    assert_eq!(unauthorized.request("1", "tools/list", "").send().await.unwrap().status(), 401);
    assert_eq!(client.post("no JSON".to_owned()).send().await.unwrap().status(), 400);
    let probe = http().get(format!("{}/healthz?key=hidden-in-a-query", serving.root));
    assert_eq!(probe.send().await.unwrap().status(), 200);
    let other = RawClient::with_token(&serving.url(), Era::Modern, Some(&bob)).await;
    let subscription = r#""notifications":{"toolsListChanged":true}"#;
    let mut stream = Stream::open(other.request("1", "subscriptions/listen", subscription)).await;
    stream.message().await.unwrap();
    assert_eq!(lines(&path, 4).await.len(), 4, "a stream that is open is not told of");
    drop(stream);
    let found: Vec<Value> = lines(&path, 5).await[1..].iter().map(steady).collect();
    // Connections are served concurrently, so that two lines may be swapped.
    for expected in [
        json!({"principal": null, "verb": "POST", "path": "/mcp", "status": 401}),
        json!({"principal": "key:ann", "verb": "POST", "path": "/mcp", "status": 400, "error": -32700}),
        json!({"principal": null, "verb": "GET", "path": "/healthz", "status": 200}),
        json!({"principal": "key:bob", "verb": "POST", "path": "/mcp", "method": "subscriptions/listen", "status": 200}),
    ] {
        assert!(found.contains(&expected), "{expected} not in {found:?}");
    }

    // After a rename a new file is created under the old name; written lines stay in the renamed file.
    let old = path.with_extension("1");
    fs::rename(&path, &old).unwrap();
    let since = Instant::now();
    while !path.exists() {
        assert!(since.elapsed() < TEST_TIMEOUT, "the log is not begun anew");
        client.call("echo", "{}").await;
    }
    assert_eq!(steady(&lines(&path, 1).await[0]), expected);
    let all = fs::read_to_string(&old).unwrap() + &fs::read_to_string(&path).unwrap() + &serving.stderr();
    for secret in [&ann, &bob, "th_of-a-stranger", "hidden-in-a-query"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

/// A client that disconnects before the response is logged as such.
#[tokio::test]
async fn logs_client_disconnects() {
    let script = Script::both().plain_tool("silent").on("tools/call:silent", json!([{"ignore": true}]));
    let serving = Serving::before(&script, "[serve]\naccess_log = \"access.log\"\n");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let asking = client.request("1", "tools/call", r#""name":"silent","arguments":{}"#).send();
    let _ = tokio::time::timeout(std::time::Duration::from_millis(500), asking).await;
    let line = &lines(&serving.folder().join("access.log"), 1).await[0];
    assert_eq!((&line["status"], &line["principal"]), (&json!(499), &json!("local")));
}

#[test]
fn logs_stdio_requests() {
    let mut cli = hub("[serve]\naccess_log = \"stderr\"\n");
    cli.server("s", &Script::both().plain_tool("echo"));
    let mut command = cli.command(&["serve", "--stdio"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    for (id, tool) in [(1, "echo"), (2, "nothing")] {
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        writeln!(input, "{call}").unwrap();
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let stderr = String::from_utf8(ended.stderr).unwrap();
    let mut found: Vec<Value> =
        stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).map(|line| steady(&line)).collect();
    found.sort_by_key(|line| line["tool"].to_string());
    let expected = |tool: &str| json!({"principal": "local", "method": "tools/call", "tool": tool});
    let mut failed = expected("nothing");
    failed["error"] = json!(-32602);
    assert_eq!(found, [expected("echo"), failed], "{stderr}");
}

#[test]
fn reports_unwritable_access_log_at_startup() {
    let cli = hub("[serve]\naccess_log = \"no/such/folder/access.log\"\n");
    let ran = cli.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the access log cannot be opened"), "{ran:?}");
}
