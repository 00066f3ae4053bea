//! Traces: the trace of a client continues through the gateway to the server, and a collector receives each span.

use serde_json::{Value, json};
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

use crate::collector::{Collector, Span};
use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "00f067aa0ba902b7";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

fn settings(collector: &Collector, more: &str) -> String {
    format!("[telemetry]\notlp = \"{}\"\nservice = \"hub-of-a-test\"\n{more}", collector.url)
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no `{name}` in {spans:#?}"))
}

fn has(name: &'static str) -> impl Fn(&[Span]) -> bool {
    move |spans| spans.iter().any(|span| span.name == name)
}

/// The calls that reached a server, as received.
fn calls(journal: &Journal) -> Vec<Value> {
    let called = |entry: &&Value| entry["message"]["method"] == "tools/call";
    journal.entries().iter().filter(called).cloned().collect()
}

#[tokio::test]
async fn call_is_one_trace_from_client_to_server() {
    for era in ERAS {
        let collector = Collector::start().await;
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let script = Script::both().plain_tool("echo").journal(&journal);
        let server = HttpServer::start(&script);
        let mut cli = hub(&settings(&collector, ""));
        cli.entry("near", json!({"url": server.url}));
        let serving = Serving::start(cli);
        let mut client = RawClient::connect(&serving.url(), era).await;
        client.also(&format!(r#""traceparent":"{}","tracestate":"vendor=1","other":[1.0]"#, parent("01")));
        assert_eq!(client.call("echo", r#"{"a":1.0}"#).await.text(), r#"{"a":1.0}"#);

        let spans = collector.spans_once(has("tools/call echo")).await;
        let (request, call, attempt) =
            (named(&spans, "tools/call echo"), named(&spans, "call echo"), named(&spans, "attempt near"));
        assert!([request, call, attempt].iter().all(|span| span.trace == TRACE), "{spans:#?}");
        assert_eq!(request.parent.as_deref(), Some(SPAN));
        assert_eq!(call.parent.as_ref(), Some(&request.id));
        assert_eq!(attempt.parent.as_ref(), Some(&call.id));
        assert_eq!((request.kind, call.kind, attempt.kind), (2, 1, 3));
        assert_eq!(request.state.as_deref(), Some("vendor=1"));
        for inner in [call, attempt] {
            assert!(request.nanos.0 <= inner.nanos.0 && inner.nanos.0 <= inner.nanos.1, "{spans:#?}");
        }
        let facts = &request.facts;
        assert_eq!(
            (&facts["mcp.method.name"], &facts["gen_ai.tool.name"], &facts["http.response.status_code"]),
            (&json!("tools/call"), &json!("echo"), &json!(200))
        );
        assert_eq!((&facts["enduser.id"], &facts["url.path"]), (&json!("local"), &json!("/mcp")));
        assert_eq!(call.facts["toolhub.route.candidates"], json!(["near"]));
        assert!(spans.iter().all(|span| span.error.is_none()), "{spans:#?}");
        assert!(collector.services().iter().all(|service| service == "hub-of-a-test"));

        // The server gets the span of the attempt as parent; all other members are forwarded unchanged.
        let reached = &calls(&Journal::read(&journal))[0];
        let meta = &reached["message"]["params"]["_meta"];
        let handed_on = format!("00-{TRACE}-{}-01", attempt.id);
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(handed_on), &json!("vendor=1")));
        assert_eq!(meta["other"].to_string(), "[1.0]");
        assert_eq!(reached["headers"]["traceparent"], json!(handed_on));
        assert_eq!(reached["message"]["params"]["arguments"].to_string(), r#"{"a":1.0}"#);
    }
}

/// A `traceparent` header is used if the message has none; without both, a new trace starts here. Other forwarded requests
/// belong to the trace, too.
#[tokio::test]
async fn continues_trace_of_header_or_starts_new_one() {
    let collector = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script =
        Script::both().plain_tool("echo").on("tasks/get", json!([{"reply": {"x": 1}}])).journal(&journal);
    let serving = Serving::before(&script, &settings(&collector, ""));
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let request = client.request("1", "tasks/get", r#""taskId":"t""#).header("mcp-name", "t");
    let answer =
        request.header("traceparent", parent("01")).header("tracestate", "a=b").send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("\"x\":1"));
    let spans = collector.spans_once(has("tasks/get")).await;
    let request = named(&spans, "tasks/get");
    assert_eq!((request.trace.as_str(), request.parent.as_deref()), (TRACE, Some(SPAN)));
    let log = Journal::read(&journal);
    let reached = log.messages().into_iter().find(|message| message["method"] == "tasks/get").unwrap();
    let meta = &reached["params"]["_meta"];
    assert_eq!(meta["traceparent"], json!(format!("00-{TRACE}-{}-01", request.id)));
    assert_eq!(meta["tracestate"], json!("a=b"));

    client.call("echo", "{}").await;
    let spans = collector.spans_once(has("tools/call echo")).await;
    let begun = named(&spans, "tools/call echo");
    assert!(begun.parent.is_none() && begun.trace != TRACE, "{begun:?}");
    assert_eq!(named(&spans, "call echo").trace, begun.trace);
}

#[tokio::test]
async fn trace_records_failures() {
    let collector = Collector::start().await;
    let script = Script::both()
        .plain_tool("fails")
        .on("tools/call:fails", json!([{"tool_error": "the fuse has blown\nand more"}]))
        .plain_tool("silent")
        .on("tools/call:silent", json!([{"ignore": true}]));
    let serving = Serving::before(&script, &settings(&collector, ""));
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    client.call("fails", "{}").await;
    let spans = collector.spans_once(has("tools/call fails")).await;
    for name in ["attempt s", "call fails", "tools/call fails"] {
        let error = named(&spans, name).error.clone().unwrap_or_default();
        assert!(error.contains("the fuse has blown") && !error.contains("and more"), "{name}: {error}");
    }
    // An unknown tool is an error of the request span.
    client.call("nothing", "{}").await;
    let spans = collector.spans_once(has("tools/call nothing")).await;
    assert_eq!(named(&spans, "tools/call nothing").facts["error.type"], json!("-32602"));
    // A client that disconnects is one, too.
    let asking = client.request("1", "tools/call", r#""name":"silent","arguments":{}"#).send();
    let _ = tokio::time::timeout(std::time::Duration::from_millis(500), asking).await;
    let spans = collector.spans_once(has("tools/call silent")).await;
    assert_eq!(named(&spans, "call silent").error.as_deref(), Some("the client went away"));
    assert_eq!(named(&spans, "tools/call silent").facts["http.response.status_code"], json!(499));
    let attempts: Vec<&Span> = spans.iter().filter(|span| span.name == "attempt s").collect();
    assert!(
        attempts.iter().any(|span| span.facts.get("toolhub.cancelled") == Some(&json!(true))),
        "{spans:#?}"
    );
}

/// The sampling flag of the client decides for its own trace; the ratio in the settings applies to traces that start here. The
/// flag is propagated in both cases, so that servers decide alike.
#[tokio::test]
async fn exports_only_sampled_spans() {
    let collector = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::both().plain_tool("echo").plain_tool("last").journal(&journal);
    let serving = Serving::before(&script, &settings(&collector, "sampling = 0.0\n"));
    let mut client = RawClient::connect(&serving.url(), Era::Modern).await;
    client.call("echo", "{}").await;
    client.also(&format!(r#""traceparent":"{}""#, parent("00")));
    client.call("echo", "{}").await;
    client.also(&format!(r#""traceparent":"{}""#, parent("01")));
    client.call("last", "{}").await;
    collector.spans_once(has("tools/call last")).await;
    drop(serving);
    let names: Vec<String> = collector.so_far().into_iter().map(|span| span.name).collect();
    assert!(names.iter().all(|name| name.contains("last") || name.contains("attempt s")), "{names:?}");
    assert_eq!(names.len(), 3, "{names:?}");
    let flags: Vec<String> = calls(&Journal::read(&journal))
        .iter()
        .map(|call| call["message"]["params"]["_meta"]["traceparent"].as_str().unwrap()[52..].to_owned())
        .collect();
    assert_eq!(flags, ["-00", "-00", "-01"]);
}

/// Without telemetry nothing is added or changed.
#[tokio::test]
async fn forwards_trace_context_without_telemetry() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let serving = Serving::before(&Script::both().plain_tool("echo").journal(&journal), "");
    let mut client = RawClient::connect(&serving.url(), Era::Modern).await;
    client.call("echo", "{}").await;
    client.set("traceparent", &parent("01"));
    client.call("echo", "{}").await;
    client.also(r#""traceparent":"not even one","tracestate":7"#);
    client.call("echo", "{}").await;
    let calls = calls(&Journal::read(&journal));
    let meta = |call: &Value| {
        let meta = &call["message"]["params"]["_meta"];
        (meta["traceparent"].clone(), meta["tracestate"].clone())
    };
    let nothing = (Value::Null, Value::Null);
    let found: Vec<(Value, Value)> = calls.iter().map(meta).collect();
    assert_eq!(found, [nothing.clone(), nothing, (json!("not even one"), json!(7))]);
}

#[tokio::test]
async fn unreachable_collector_is_reported_once_without_delay() {
    // A port without a listener: it was free just before.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = format!("[telemetry]\notlp = \"http://{free}/secret-path?key=hidden\"\n");
    let mut serving = Serving::before(&Script::both().plain_tool("echo"), &settings);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let since = std::time::Instant::now();
    while !serving.stderr().contains("traces cannot be sent") {
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", serving.stderr());
    }
    for _ in 0..200 {
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    let stderr = serving.stderr();
    assert_eq!(stderr.matches("traces cannot be sent").count(), 1, "{stderr}");
    assert!(!stderr.contains("secret-path") && !stderr.contains("hidden"), "{stderr}");
}
