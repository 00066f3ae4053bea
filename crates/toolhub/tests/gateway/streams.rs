//! The streams of legacy clients: taken up again where they broke off, and each message told once.

use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient, Stream, http};
use crate::serving::Serving;

/// A client loses its stream in the middle of a call, and hears the rest on another.
#[tokio::test]
async fn a_stream_that_broke_off_is_taken_up_again() {
    // It goes on when a second one comes.
    let pair = json!([{"progress": {"progress": 1}}, {"shuffle": {"of": 2, "seed": 1}}, {"text": "done"}]);
    let script = Script::both().plain_tool("pair").on("tools/call:pair", pair);
    let serving = Serving::before(&script, "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    let params = r#""name":"pair","arguments":{}"#;
    let mut stream = Stream::open(client.request("1", "tools/call", params)).await;
    stream.until("notifications/progress").await;
    let place = stream.place().to_owned();
    drop(stream);

    let again = |place: &str| {
        let request = http().get(serving.url()).header("accept", "text/event-stream");
        let request = request.header("mcp-session-id", client.session());
        request.header("mcp-protocol-version", "2025-11-25").header("last-event-id", place)
    };
    let mut stream = Stream::open(again(&place)).await;
    let other = RawClient::connect(&serving.url(), Era::Modern).await;
    assert_eq!(other.call("pair", "{}").await.text(), "done");
    let answer = stream.message().await.unwrap();
    assert_eq!(answer.id, Some(json!(1)));
    assert!(answer.result.unwrap().get().contains("done"));
    assert!(stream.message().await.is_none());
    // It can be heard once more, since the client may have lost it again.
    let mut stream = Stream::open(again(&place)).await;
    assert_eq!(stream.message().await.unwrap().id, Some(json!(1)));

    // Nobody else takes it up.
    let thief = RawClient::connect(&serving.url(), Era::Legacy).await;
    let theft =
        http().get(serving.url()).header("accept", "text/event-stream").header("last-event-id", &place);
    let theft = theft.header("mcp-session-id", thief.session()).send().await.unwrap();
    assert_eq!(theft.status(), 404);
}

/// A client that opens a second stream hears on that one alone, and not what it has heard.
#[tokio::test]
async fn what_is_told_is_told_once() {
    let tools = |count: usize| {
        let tool = |number| json!({"name": format!("tool_{number}"), "inputSchema": {"type": "object"}});
        let grow = json!({"name": "grow", "inputSchema": {"type": "object"}});
        let tools: Vec<_> = (0..count).map(tool).chain([grow]).collect();
        json!([{"reply": {"tools": tools}}])
    };
    let told = json!([{"notify": {"method": "notifications/tools/list_changed"}}, {"text": "done"}]);
    let script = Script::legacy()
        .plain_tool("grow")
        .on("tools/list", json!([tools(0), tools(1), tools(2)]))
        .on("tools/call:grow", told);
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
