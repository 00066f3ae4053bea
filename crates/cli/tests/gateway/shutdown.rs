//! Shutdown: the gateway completes running requests and accepts no new ones. Disconnects: servers are notified when a client
//! cancels a call.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::raw_client::{ERAS, Era, RawClient, Stream, http};
use crate::serving::{Serving, TEST_TIMEOUT, await_cancelled, cancelled_calls, holding, hub};

/// Waits until the gateway accepts no new requests, and checks that the probes report `draining`.
async fn await_refusal(serving: &Serving) {
    // During shutdown idle connections are closed, even while the client sends its next request: each probe uses a new
    // connection.
    let once = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let probe = async |path: &str| {
        let answer = once.get(format!("{}{path}", serving.root)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let since = Instant::now();
    while probe("/readyz").await.0 == 200 {
        assert!(since.elapsed() < TEST_TIMEOUT, "it is still ready");
        tokio::task::yield_now().await;
    }
    for (path, status) in [("/readyz", 503), ("/healthz", 200)] {
        let (found, text) = probe(path).await;
        assert!(found == status && text.contains(r#""status":"draining""#), "{path}: {found} {text}");
    }
    let late = once.post(serving.url()).body("{}").send().await.unwrap();
    assert_eq!((late.status().as_u16(), late.headers()["retry-after"].to_str().unwrap()), (503, "1"));
}

async fn await_calls(journal: &std::path::Path, count: usize) {
    let called = |journal: &Journal| journal.count_method("tools/call") >= count;
    Journal::read(journal).wait_for_async(called, TEST_TIMEOUT).await;
}

#[tokio::test]
async fn shutdown_finishes_running_calls_and_refuses_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let slow = json!([{"delay_ms": 1000}, {"text": "done"}]);
    let script = Script::both().plain_tool("slow").on("tools/call:slow", slow).journal(&journal);
    let mut serving = Serving::before(&script, "");
    let clients = [
        RawClient::connect(&serving.url(), Era::Legacy).await,
        RawClient::connect(&serving.url(), Era::Modern).await,
    ];
    // Long-lived streams do not delay the shutdown.
    let mut heard = Vec::new();
    for client in &clients {
        heard.push(client.listen().await);
    }
    let calls = clients.iter().map(|client| client.call("slow", "{}"));
    let calls = futures_util::future::join_all(calls);
    let ending = async {
        await_calls(&journal, 2).await;
        serving.terminate();
        await_refusal(&serving).await;
    };
    let (answers, ()) = tokio::join!(calls, ending);
    for answer in &answers {
        assert_eq!(answer.text(), "done");
    }
    // A modern client receives the end of its subscription.
    let mut last = None;
    while let Some(message) = heard[1].message().await {
        last = message.id;
    }
    assert_eq!(last, Some(json!("listen")));
    let since = Instant::now();
    assert_eq!(serving.ended().await, Some(0), "{}", serving.stderr());
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

/// A call that never ends does not block the shutdown; its server and its client are notified, and the log contains the number
/// of aborted calls.
#[tokio::test]
async fn shutdown_has_a_deadline() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script =
            holding(&journal).plain_tool("silent").on("tools/call:silent", json!([{"ignore": true}]));
        let mut serving = Serving::before(&script, "[serve]\ndrain = \"200ms\"\n");
        let client = RawClient::connect(&serving.url(), era).await;
        let params = r#""name":"hold","arguments":{}"#;
        let mut held = Stream::open(client.request("1", "tools/call", params)).await;
        held.until("notifications/progress").await;
        let ending = async {
            await_calls(&journal, 2).await;
            serving.terminate();
        };
        let since = Instant::now();
        let (silent, ()) = tokio::join!(client.call("silent", "{}"), ending);
        assert_eq!(silent.error(), -32000, "{era:?}: {silent:?}");
        let mut last = None;
        while let Some(message) = held.message().await {
            last = message.error;
        }
        assert_eq!(last.unwrap_or_else(|| panic!("{era:?}: no error"))["code"], -32000);
        assert_eq!(serving.ended().await, Some(0), "{}", serving.stderr());
        assert!(since.elapsed() < Duration::from_secs(25), "{era:?}: {:?}", since.elapsed());
        await_cancelled(&journal, 2).await;
        assert!(serving.stderr().contains("cut off: 2"), "{}", serving.stderr());
    }
}

#[tokio::test]
async fn disconnect_of_modern_client_cancels_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = holding(&journal).plain_tool("silent").on("tools/call:silent", json!([{"ignore": true}]));
    let serving = Serving::before(&script, "");
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let params = |tool: &str| format!(r#""name":"{tool}","arguments":{{}}"#);
    let mut held = Stream::open(client.request("1", "tools/call", &params("hold"))).await;
    held.until("notifications/progress").await;
    drop(held);
    await_cancelled(&journal, 1).await;
    // A disconnect also cancels a request that has not received a response head yet.
    let silent = client.request("2", "tools/call", &params("silent")).send();
    tokio::select! {
        answer = silent => panic!("answered: {answer:?}"),
        () = await_calls(&journal, 2) => {}
    }
    await_cancelled(&journal, 2).await;
}

/// A server over HTTP is notified in the way that its era defines.
#[tokio::test]
async fn http_server_is_notified_of_client_disconnect() {
    for server_era in ["legacy", "modern"] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let server = HttpServer::start(&holding(&journal).set("era", server_era));
        let mut cli = hub("");
        cli.entry("s", json!({"url": server.url}));
        let serving = Serving::start(cli);
        let client = RawClient::connect(&serving.url(), Era::Modern).await;
        let params = r#""name":"hold","arguments":{}"#;
        let mut held = Stream::open(client.request("1", "tools/call", params)).await;
        held.until("notifications/progress").await;
        drop(held);
        let heard = |journal: &Journal| match server_era {
            "legacy" => cancelled_calls(journal) == 1,
            _ => journal.events("disconnect").iter().any(|event| event["method"] == "tools/call"),
        };
        Journal::read(&journal).wait_for_async(heard, TEST_TIMEOUT).await;
    }
}

/// A legacy client may resume a lost stream; its call is cancelled only if it ends its session or sends a cancellation.
#[tokio::test]
async fn legacy_client_cancels_with_notification() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let serving = Serving::before(&holding(&journal), "");
    let params = r#""name":"hold","arguments":{}"#;

    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let mut held = Stream::open(client.request("\"a\"", "tools/call", params)).await;
    held.until("notifications/progress").await;
    let other = RawClient::connect(&serving.url(), Era::Legacy).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}});
    // A request id is valid within its own session only.
    assert_eq!(other.post(cancel.to_string()).send().await.unwrap().status(), 202);
    assert_eq!(other.ask("1", "ping", "").await.result(), "{}");
    assert_eq!(cancelled_calls(&Journal::read(&journal)), 0);
    assert_eq!(client.post(cancel.to_string()).send().await.unwrap().status(), 202);
    await_cancelled(&journal, 1).await;

    let mut held = Stream::open(client.request("\"b\"", "tools/call", params)).await;
    held.until("notifications/progress").await;
    let bye = http().request(reqwest::Method::DELETE, serving.url());
    let bye = bye.header("mcp-session-id", client.session()).send().await.unwrap();
    assert_eq!(bye.status(), 204);
    await_cancelled(&journal, 2).await;
    assert_eq!(client.request("1", "ping", "").send().await.unwrap().status(), 404);
}

/// An HTTP+SSE client initializes and calls a tool. Returns its stream.
async fn old_client_calls(serving: &Serving, tool: &str) -> Stream {
    let stream = Stream::open(http().get(format!("{}/sse", serving.root)));
    let mut stream = stream.await;
    let endpoint = format!("{}{}", serving.root, stream.data().await.unwrap());
    let client = json!({"name": "old", "version": "1"});
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
    let call = json!({"name": tool, "arguments": {}});
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert_eq!(http().post(&endpoint).body(message.to_string()).send().await.unwrap().status(), 202);
    }
    stream
}

#[tokio::test]
async fn shutdown_finishes_calls_of_sse_client() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let slow = json!([{"delay_ms": 500}, {"text": "done"}]);
    let script = Script::both().plain_tool("slow").on("tools/call:slow", slow).journal(&journal);
    let mut serving = Serving::before(&script, "");
    let mut stream = old_client_calls(&serving, "slow").await;
    await_calls(&journal, 1).await;
    serving.terminate();
    let mut last = None;
    while let Some(message) = stream.message().await {
        last = message.result;
    }
    assert!(last.is_some_and(|result| result.get().contains("done")));
    assert_eq!(serving.ended().await, Some(0), "{}", serving.stderr());
}

#[tokio::test]
async fn closing_sse_stream_cancels_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let serving = Serving::before(&holding(&journal), "");
    let stream = old_client_calls(&serving, "hold").await;
    await_calls(&journal, 1).await;
    drop(stream);
    await_cancelled(&journal, 1).await;
}

#[test]
fn closing_stdin_cancels_calls_of_stdio_client() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &holding(&journal));
    let mut child = cli.command(&["serve", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "hold", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    writeln!(input, "{call}").unwrap();
    let mut seen = Journal::read(&journal);
    seen.wait_for(|journal| journal.count_method("tools/call") == 1, TEST_TIMEOUT);
    drop(input);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    seen.wait_for(|journal| cancelled_calls(journal) == 1, TEST_TIMEOUT);
}
