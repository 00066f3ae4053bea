//! Messages to clients and owners: they name the remedy, and contain nothing that concerns another principal.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::access::two_principals_with;
use crate::raw_client::{ERAS, Era, RawClient, Stream, http};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

/// A client that sends its head byte by byte, or nothing at all, is disconnected; other clients are served.
#[tokio::test]
async fn closes_connection_without_head_after_timeout() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "[serve]\nheader_timeout = \"1s\"\n");
    let address = serving.root.strip_prefix("http://").unwrap().to_owned();
    let dribbling = tokio::task::spawn_blocking(move || {
        let mut silent = TcpStream::connect(&address).unwrap();
        let mut slow = TcpStream::connect(&address).unwrap();
        let since = Instant::now();
        // Each byte arrives well within the timeout of the whole head.
        for letter in b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-long: ".iter().chain([b'x'; 1_000].iter())
        {
            if slow.write_all(&[*letter]).is_err() {
                break;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "it is still listened to");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(since.elapsed() >= Duration::from_secs(1), "too soon");
        silent.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        assert_eq!(silent.read(&mut [0; 16]).unwrap(), 0, "hung up");
    });
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    dribbling.await.unwrap();
    // Between requests a client may be idle for longer.
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
}

#[tokio::test]
async fn wrong_methods_and_media_types_get_a_hint() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "");
    let check = async |request: reqwest::RequestBuilder, status: u16, hint: &str| {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{hint}");
        assert_eq!(answer.headers().contains_key("allow"), status == 405, "{hint}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(hint), "{hint} is not in {text}");
    };
    let (mcp, sse, messages) =
        (serving.url(), format!("{}/sse", serving.root), format!("{}/messages", serving.root));
    let json =
        |request: reqwest::RequestBuilder| request.header("content-type", "application/json").body("{}");
    check(http().get(&mcp), 405, "with POST").await;
    check(http().get(&mcp).header("accept", "text/event-stream"), 405, "with POST").await;
    check(http().request(Method::PUT, &mcp), 405, "with POST").await;
    check(http().post(&mcp).body("{}"), 415, "Content-Type: application/json").await;
    check(json(http().post(&mcp)).header("accept", "text/html"), 406, "Accept: application/json").await;
    check(json(http().post(&sse)), 405, "/mcp").await;
    check(http().get(&messages), 405, "POST").await;
}

/// A modern server logs only for requests with a log level; a legacy client sets the level once for all its requests.
#[tokio::test]
async fn forwards_log_level_to_modern_servers() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let mut cli = hub("");
    let (journal, old) = (cli.folder().join("journal"), cli.folder().join("old"));
    cli.server("s", &Script::modern().plain_tool("echo").journal(&journal));
    cli.server("o", &Script::legacy().plain_tool("old_echo").journal(&old));
    let serving = Serving::start(cli);
    let forwarded_level = |journal: &std::path::Path| {
        let journal = Journal::read(journal);
        let last = journal.messages().into_iter().rfind(|message| message["method"] == "tools/call");
        last.unwrap()["params"]["_meta"][LEVEL].clone()
    };
    let legacy = RawClient::connect(&serving.url(), Era::Legacy).await;
    for (level, expect) in [(None, "info"), (Some("error"), "error")] {
        if let Some(level) = level {
            legacy.ask("2", "logging/setLevel", &format!(r#""level":"{level}""#)).await;
        }
        legacy.call("echo", "{}").await;
        assert_eq!(forwarded_level(&journal), expect);
        legacy.call("old_echo", "{}").await;
        assert_eq!(forwarded_level(&old), Value::Null, "it is of no use to a legacy server");
    }
    let modern = RawClient::connect(&serving.url(), Era::Modern).await;
    modern.call("echo", "{}").await;
    assert_eq!(forwarded_level(&journal), Value::Null);
}

#[tokio::test]
async fn sse_clients_can_select_profile() {
    let mut cli = hub("[profiles.one]\nservers = [\"a\"]\n[profiles.two]\nservers = [\"b\"]\n");
    cli.server("a", &Script::both().plain_tool("of_a"));
    cli.server("b", &Script::both().plain_tool("of_b"));
    let serving = Serving::start(cli);
    for (profile, tool) in [("one", "of_a"), ("two", "of_b")] {
        let mut stream = Stream::open(http().get(format!("{}/sse/{profile}", serving.root))).await;
        let endpoint = format!("{}{}", serving.root, stream.data().await.unwrap());
        let info = json!({"name": "old", "version": "1"});
        let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info});
        for (id, method, params) in [(1, "initialize", hello), (2, "tools/list", json!({}))] {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            assert_eq!(http().post(&endpoint).body(message.to_string()).send().await.unwrap().status(), 202);
        }
        let listed = loop {
            let message = stream.message().await.unwrap();
            if message.id == Some(json!(2)) {
                break serde_json::from_str::<Value>(message.result.unwrap().get()).unwrap();
            }
        };
        let names: Vec<&str> =
            listed["tools"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, [tool]);
    }
    let nowhere = http().get(format!("{}/sse/three", serving.root)).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    assert_eq!(
        nowhere.text().await.unwrap(),
        "there is no such profile here; there are `default`, `one`, `two`\n"
    );
}

#[tokio::test]
async fn task_is_visible_only_to_its_creator() {
    let task = json!({"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 1000});
    let state = json!({"resultType": "complete", "taskId": "t-1", "status": "working"});
    let script = Script::modern()
        .plain_tool("begin")
        .on("tools/call:begin", json!([{"reply": task}]))
        .on("tasks/get", json!([{"reply": state}]))
        .on("tasks/cancel", json!([{"reply": {"resultType": "complete"}}]));
    let (serving, tokens) = two_principals_with(&script, "");
    let mut clients = Vec::new();
    for token in &tokens {
        clients.push(RawClient::with_token(&serving.url(), Era::Modern, Some(token)).await);
    }
    assert!(clients[0].call("begin", "{}").await.result().contains("t-1"));
    let ask = async |client: &RawClient, method: &str, task: &str| {
        let request = client.request("1", method, &format!(r#""taskId":"{task}""#)).header("mcp-name", task);
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(ask(&clients[0], "tasks/get", "t-1").await["result"]["status"], "working");
    for (method, task) in [("tasks/get", "t-1"), ("tasks/cancel", "t-1"), ("tasks/get", "t-2")] {
        let refused = ask(&clients[1], method, task).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(refused["error"]["message"], format!("Unknown task: {task}"));
    }
}

#[tokio::test]
async fn reports_profile_entries_without_match() {
    let settings = "[profiles.work]\nservers = [\"s\", \"t\"]\ntools = [\"echo\", \"ecko\"]\npinned = [\"pin\"]\n\
                    [profiles.work.overrides.shout]\ntitle = \"Shout\"\n[profiles.fine]\nservers = [\"s\", \"native\"]\ntools = [\"ec*\"]\n";
    let serving = Serving::before(&Script::both().plain_tool("echo"), settings);
    let slips =
        ["servers` names `t`", "tools` names `ecko`", "pinned` names `pin`", "overrides` names `shout`"];
    let since = Instant::now();
    while !slips.iter().all(|slip| serving.stderr().contains(&format!("`[profiles.work] {slip}"))) {
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", serving.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let stderr = serving.stderr();
    assert!(!stderr.contains("profiles.fine") && !stderr.contains("names `echo`"), "{stderr}");
    assert_eq!(stderr.matches("names `ecko`").count(), 1, "{stderr}");
    let found = serving.cli().run(&["doctor"]).stdout;
    assert!(slips.iter().all(|slip| found.contains(slip)), "{found}");
}

/// Failures of an earlier run do not affect the health of this one.
#[tokio::test]
async fn health_counts_only_current_run() {
    let mut cli = hub("");
    let mut server = HttpServer::start(&Script::both().plain_tool("echo"));
    cli.entry("s", json!({"url": server.url}));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(client.call("echo", "{}").await.text(), "{}");
    server.kill();
    assert!(client.call("echo", "{}").await.result().contains("isError"));
    assert!(serving.get("/healthz").await.contains("server `s`"));
    let serving = Serving::start(serving.kill());
    let health = serving.get("/healthz").await;
    assert!(health.contains(r#""status":"ok""#), "{health}");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    assert!(client.call("echo", "{}").await.result().contains("isError"));
    assert!(serving.get("/healthz").await.contains("server `s`"));
}

/// A model cannot run commands of the owner, so messages to it suggest none.
#[tokio::test]
async fn client_errors_omit_shell_commands() {
    let strict = json!({"name": "strict", "inputSchema": {"type": "object", "required": ["a"]}});
    let mut server = HttpServer::start(&Script::both().plain_tool("gone"));
    let mut cli = hub("[profiles.default]\nexpose = \"all\"\n");
    cli.server("s", &Script::both().tool(strict));
    cli.entry("t", json!({"url": server.url}));
    let serving = Serving::start(cli);
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        client.tools().await;
        server.kill();
        for tool in ["strict", "gone"] {
            let answer = client.call(tool, "{}").await;
            let text = answer.text();
            assert!(answer.result().contains("isError") && !text.contains("toolhub "), "{tool}: {text}");
        }
        let unknown = client.call("no_such_tool_at_all", "{}").await;
        let error = unknown.last().error.clone().unwrap().to_string();
        assert!(!error.contains("`toolhub "), "{error}");
    }
}

#[tokio::test]
async fn first_ctrl_c_explains_second() {
    let held = json!([{"progress": {"progress": 1}}, {"ignore": true}]);
    let script = Script::both().plain_tool("hold").on("tools/call:hold", held);
    let mut serving = Serving::before(&script, "[serve]\ndrain = \"60s\"\n");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let mut stream = Stream::open(client.request("1", "tools/call", r#""name":"hold","arguments":{}"#)).await;
    stream.until("notifications/progress").await;
    let pid = Pid::from_raw(i32::try_from(serving.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let since = Instant::now();
    while !serving.stderr().contains("Ctrl-C again ends it at once") {
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", serving.stderr());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let since = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(serving.ended().await, Some(0));
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

/// The stderr of a server that does not start is shown to the owner of the gateway.
#[tokio::test]
async fn reports_stderr_of_failed_server_to_owner() {
    let dies = json!([{"stderr": "licence expired"}, {"exit": 3}]);
    let script = Script::both().plain_tool("echo").on("server/discover", dies.clone()).on("initialize", dies);
    let serving = Serving::before(&script, "");
    let until = Instant::now() + TEST_TIMEOUT;
    while !serving.stderr().contains("licence expired") {
        assert!(Instant::now() < until, "{}", serving.stderr());
        let _ = serving.get("/readyz").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(serving.stderr().contains("server `s`:"), "{}", serving.stderr());
}
