//! The streams of legacy clients: resumed after the last received event, with each message delivered once, and without events that
//! older revisions do not have.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{Era, RawClient, Stream, http};
use crate::serving::{Serving, TEST_TIMEOUT, await_cancelled, cancelled_calls, holding, hub};

/// The legacy revisions, and whether clients of each know events with empty data (2025-11-25, transports).
const REVISIONS: [(&str, bool); 4] =
    [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)];

fn cancel(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
}

/// Clients of revisions before 2025-11-25 parse the data of each event as JSON.
#[tokio::test]
async fn sends_empty_data_events_only_since_2025_11_25() {
    let reply = json!([{"progress": {"progress": 1}}, {"text": "done"}]);
    let mut serving = Serving::before(&Script::both().plain_tool("tell").on("tools/call:tell", reply), "");
    let mut listening = Vec::new();
    for (revision, primed) in REVISIONS {
        let client = RawClient::legacy_with(&serving.url(), revision, json!({})).await;
        let call = client.request("1", "tools/call", r#""name":"tell","arguments":{}"#);
        let answered = Stream::open(call).await.rest().await;
        assert_eq!(has_empty_data(&answered), primed, "POST {revision}: {answered}");
        assert!(answered.contains("done"), "POST {revision}: {answered}");
        listening.push((revision, primed, Stream::open(client.get()).await));
    }
    let mut old = Stream::open(http().get(format!("{}/sse", serving.root))).await;
    assert!(old.data().await.unwrap().starts_with("/messages"));
    serving.terminate();
    for (revision, primed, stream) in listening {
        let received = stream.rest().await;
        assert_eq!(has_empty_data(&received), primed, "GET {revision}: {received}");
    }
    let received = old.rest().await;
    assert!(!has_empty_data(&received), "/sse: {received}");
    assert_eq!(serving.ended().await, Some(0), "{}", serving.stderr());
}

/// An answer that does not fit into what may be kept for a caller is replaced by an error that names the setting.
#[tokio::test]
async fn response_larger_than_replay_bytes_becomes_error() {
    let long = json!([{"progress": {"progress": 1}}, {"text": "x".repeat(4000)}]);
    let script = Script::both().plain_tool("tell").on("tools/call:tell", long);
    for (limit, is_retained) in [(3000, false), (100_000, true)] {
        let serving = Serving::before(&script, &format!("[serve.limits]\nreplay_bytes = {limit}\n"));
        let client = RawClient::legacy_with(&serving.url(), "2025-11-25", json!({})).await;
        let params = r#""name":"tell","arguments":{}"#;
        let received = Stream::open(client.request("1", "tools/call", params)).await.rest().await;
        assert_eq!(received.contains(&"x".repeat(4000)), is_retained, "{limit}: {received}");
        assert_eq!(
            received.contains("`replay_bytes` in `[serve.limits]`"),
            !is_retained,
            "{limit}: {received}"
        );
    }
}

fn has_empty_data(events: &str) -> bool {
    events.lines().filter_map(|line| line.strip_prefix("data:")).any(|data| data.trim().is_empty())
}

/// The stream of a cancelled request ends without a response, and cannot be resumed; one that had not begun is empty. The
/// calls at the server are cancelled.
#[tokio::test]
async fn cancelled_request_of_a_session_gets_no_response() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = holding(&journal).plain_tool("silent").on("tools/call:silent", json!([{"ignore": true}]));
    let serving = Serving::before(&script, "");
    for (number, (revision, _)) in REVISIONS.into_iter().enumerate() {
        let client = RawClient::legacy_with(&serving.url(), revision, json!({})).await;
        let call = |id: &str, tool: &str| {
            client.request(id, "tools/call", &format!(r#""name":"{tool}","arguments":{{}}"#))
        };
        let mut held = Stream::open(call("1", "hold")).await;
        held.until("notifications/progress").await;
        let position = held.position().to_owned();
        let cancelling = async {
            let all = move |seen: &Journal| sent_calls(seen) >= 2 * number + 2;
            Journal::read(&journal).wait_for_async(all, TEST_TIMEOUT).await;
            for id in [json!(1), json!("two")] {
                assert_eq!(client.post(cancel(&id)).send().await.unwrap().status(), 202);
            }
        };
        let (silent, ()) = tokio::join!(call("\"two\"", "silent").send(), cancelling);
        let rest = held.rest().await;
        assert!(!rest.contains("data:"), "{revision}: {rest}");
        let silent = silent.unwrap();
        assert!(
            silent.status() == 200 && silent.headers()["content-type"] == "text/event-stream",
            "{silent:?}"
        );
        assert_eq!(silent.text().await.unwrap(), "", "{revision}");
        await_cancelled(&journal, 2 * number + 2).await;
        // A client that takes the end of the stream for a lost connection gets the answer that there is nothing to resume.
        let resumed = client.get().header("last-event-id", &position).send().await.unwrap();
        assert_eq!(resumed.status(), 405, "{revision}");
        assert_eq!(client.ask("3", "ping", "").await.result(), "{}", "{revision}");
    }
}

fn sent_calls(journal: &Journal) -> usize {
    journal.count_method("tools/call")
}

/// A batch is answered without the requests of it that were cancelled.
#[tokio::test]
async fn cancelled_request_of_a_batch_gets_no_response() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let serving = Serving::before(&holding(&journal), "");
    let client = RawClient::legacy_with(&serving.url(), "2025-03-26", json!({})).await;
    let hold = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hold"}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for (count, (batch, expected)) in [
        (json!([hold, ping]), json!([{"jsonrpc": "2.0", "id": 2, "result": {}}]).to_string()),
        (json!([hold]), String::new()),
    ]
    .into_iter()
    .enumerate()
    {
        let cancelling = async {
            let running = move |seen: &Journal| sent_calls(seen) > count;
            Journal::read(&journal).wait_for_async(running, TEST_TIMEOUT).await;
            client.post(cancel(&json!(1))).send().await.unwrap();
        };
        let (answer, ()) = tokio::join!(client.post(batch.to_string()).send(), cancelling);
        let answer = answer.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (200, expected));
        await_cancelled(&journal, count + 1).await;
    }
}

#[test]
fn cancelled_request_over_stdio_gets_no_response() {
    let mut cli = hub("");
    let journal = cli.folder().join("journal");
    cli.server("s", &holding(&journal));
    let mut child = cli.command(&["serve", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let client = json!({"name": "raw", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let call = json!({"name": "hold", "arguments": {}});
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
    }
    let mut seen = Journal::read(&journal);
    seen.wait_for(|seen| sent_calls(seen) == 1, TEST_TIMEOUT);
    writeln!(input, "{}", cancel(&json!(2))).unwrap();
    seen.wait_for(|seen| cancelled_calls(seen) == 1, TEST_TIMEOUT);
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 3, "method": "ping"})).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(input);
    let lines: Vec<Value> =
        BufReader::new(output).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let ids: Vec<&Value> = lines.iter().filter_map(|line| line.get("id")).collect();
    assert_eq!(ids, [&json!(1), &json!(3)], "{lines:?}");
    assert!(child.wait().unwrap().success());
}

/// A client loses its stream in the middle of a call, and receives the rest on another one.
#[tokio::test]
async fn resumes_broken_stream_with_last_event_id() {
    // It goes on when a second one comes.
    let pair = json!([{"progress": {"progress": 1}}, {"shuffle": {"of": 2, "seed": 1}}, {"text": "done"}]);
    let script = Script::both().plain_tool("pair").on("tools/call:pair", pair);
    let serving = Serving::before(&script, "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let params = r#""name":"pair","arguments":{}"#;
    let mut stream = Stream::open(client.request("1", "tools/call", params)).await;
    stream.until("notifications/progress").await;
    let position = stream.position().to_owned();
    drop(stream);

    let again = |position: &str| {
        let request = http().get(serving.url()).header("accept", "text/event-stream");
        let request = request.header("mcp-session-id", client.session());
        request.header("mcp-protocol-version", "2025-11-25").header("last-event-id", position)
    };
    let mut stream = Stream::open(again(&position)).await;
    let other = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(other.call("pair", "{}").await.text(), "done");
    let answer = stream.message().await.unwrap();
    assert_eq!(answer.id, Some(json!(1)));
    assert!(answer.result.unwrap().get().contains("done"));
    assert!(stream.message().await.is_none());
    // It can be heard once more, since the client may have lost it again.
    let mut stream = Stream::open(again(&position)).await;
    assert_eq!(stream.message().await.unwrap().id, Some(json!(1)));

    // No other client can resume it.
    let thief = RawClient::connect(&serving.url(), Era::Legacy).await;
    let theft =
        http().get(serving.url()).header("accept", "text/event-stream").header("last-event-id", &position);
    let theft = theft.header("mcp-session-id", thief.session()).send().await.unwrap();
    assert_eq!(theft.status(), 405);
}

/// A client that opens a second stream receives messages on that one alone, and none that it has received before.
#[tokio::test]
async fn second_stream_receives_only_new_notifications() {
    let tools = |count: usize| {
        let tool = |number| json!({"name": format!("tool_{number}"), "inputSchema": {"type": "object"}});
        let grow = json!({"name": "grow", "inputSchema": {"type": "object"}});
        let tools: Vec<_> = (0..count).map(tool).chain([grow]).collect();
        json!([{"reply": {"tools": tools}}])
    };
    let reply = json!([{"notify": {"method": "notifications/tools/list_changed"}}, {"text": "done"}]);
    let script = Script::legacy()
        .plain_tool("grow")
        .on("tools/list", json!([tools(0), tools(1), tools(2)]))
        .on("tools/call:grow", reply);
    let serving = Serving::before(&script, "[native]\nenabled = false\n");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    assert_eq!(client.tools().await, ["grow"]);
    let changed = "notifications/tools/list_changed";
    let mut first = client.listen().await;
    client.call("grow", "{}").await;
    first.until(changed).await;
    let mut second = client.listen().await;
    assert!(first.message().await.is_none(), "the first stream is over");
    client.call("grow", "{}").await;
    second.until(changed).await;
    assert_eq!(client.tools().await, ["tool_0", "tool_1", "grow"], "what was told is the second change");
}
