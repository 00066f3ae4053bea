//! Connections over time: requests of servers, list changes, broken streams, servers that keep failing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub::{ClientHandler, HandlerAnswer, RawJson, ToolCall};
use toolhub_core::{BoxFuture, Effect, ServerId};
use toolhub_testkit::TestHub;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

/// Answers an elicitation with a name and supports no other request.
struct Octocat;

impl ClientHandler for Octocat {
    fn capabilities(&self) -> RawJson {
        RawJson::from(json!({"elicitation": {"form": {}}}))
    }

    fn request<'a>(
        &'a self,
        _: &'a ServerId,
        method: String,
        _: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            match method.as_str() {
                "elicitation/create" => {
                    Ok(RawJson::from(json!({"action": "accept", "content": {"name": "octocat"}})))
                }
                other => Err((-32601, format!("method not found: {other}"))),
            }
        })
    }
}

fn question() -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "who?", "requestedSchema": {"type": "object"}}})
}

#[tokio::test]
async fn elicitation_of_legacy_server_reaches_handler() {
    for http in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let actions = json!([{"request": question()}, {"text": "hello"}]);
        let script =
            Script::legacy().plain_tool("t").on("tools/call:t", &actions).set("sse", true).journal(&journal);
        let server = http.then(|| HttpServer::start(&script));
        let builder = TestHub::builder().handler(Arc::new(Octocat));
        let hub = match &server {
            Some(server) => builder.entry("s", json!({"url": server.url})).build().await,
            None => builder.server("s", &script).build().await,
        };
        let outcome = hub.call(ToolCall::new("t", json!({}))).await;
        assert!(outcome.success(), "{outcome:?}");
        let seen = std::fs::read_to_string(&journal).unwrap();
        assert!(seen.contains("octocat") && seen.contains("\"elicitation\""), "{seen}");
        hub.close().await;
    }
}

#[tokio::test]
async fn input_request_of_modern_server_is_answered_by_retry() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let ask = json!({"resultType": "input_required", "inputRequests": {"who": question()}, "requestState": "opaque=="});
    let rounds = json!([[{"reply": ask}], [{"text": "hello octocat"}]]);
    let script = Script::modern().plain_tool("t").on("tools/call:t", &rounds).journal(&journal);
    let hub = TestHub::builder().handler(Arc::new(Octocat)).server("s", &script).build().await;
    let outcome = hub.call(ToolCall::new("t", json!({"n": 1}))).await;
    assert_eq!(outcome.result.unwrap().texts().0, ["hello octocat"]);
    let seen = Journal::read(&journal);
    let calls: Vec<&Value> =
        seen.messages().into_iter().filter(|message| message["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let second = &calls[1]["params"];
    assert_eq!(second["inputResponses"]["who"]["content"]["name"], "octocat");
    assert_eq!((&second["requestState"], &second["arguments"]), (&json!("opaque=="), &json!({"n": 1})));
    hub.close().await;
}

#[tokio::test]
async fn bounds_input_requests_per_call() {
    let ask = json!({"resultType": "input_required", "inputRequests": {"who": question()}});
    let script = Script::modern().plain_tool("t").on("tools/call:t", json!([{"reply": ask}]));
    let hub = TestHub::builder().handler(Arc::new(Octocat)).server("s", &script).build().await;
    let outcome = hub.call(ToolCall::new("t", json!({}))).await;
    assert!(outcome.result.unwrap_err().to_string().contains("asked for input 10 times"));
    hub.close().await;
}

#[tokio::test]
async fn coalesces_list_changed_notifications() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let lists = json!([
        [{"reply": {"tools": [tool("a")]}}],
        [{"reply": {"tools": [tool("a"), tool("b")]}}],
    ]);
    let notice = json!({"notify": {"method": "notifications/tools/list_changed"}});
    let storm: Vec<Value> = std::iter::repeat_n(notice, 500).chain([json!({"text": "ok"})]).collect();
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy().on("tools/list", &lists).on("tools/call:a", &storm).journal(&journal);
    let hub = TestHub::builder().server("s", &script).build().await;
    let work = async {
        assert!(hub.call(ToolCall::new("a", json!({}))).await.success());
        let patience = Instant::now();
        while hub.catalog().named("b").next().is_none() {
            assert!(patience.elapsed() < Duration::from_secs(10), "{:?}", hub.events.texts().len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = hub.follow() => {}
        () = work => {}
    }
    assert!(Journal::read(&journal).count_method("tools/list") <= 3);
    hub.close().await;
}

#[tokio::test]
async fn resumes_broken_stream_at_last_event() {
    let actions = json!([{"progress": {"progress": 1}}, {"close": true}, {"text": "after all"}]);
    let script = Script::legacy().plain_tool("t").on("tools/call:t", &actions);
    let server = HttpServer::start(&script.set("sse", true).set("resumable", true));
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    let outcome = hub.call(ToolCall::new("t", json!({}))).await;
    assert_eq!(outcome.result.unwrap().texts().0, ["after all"], "{:?}", hub.events.texts());
    hub.close().await;
}

#[tokio::test]
async fn stops_idle_child() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy().plain_tool("t").journal(&journal);
    let settings = "[[servers]]\nid = \"s\"\nidle_timeout = \"300ms\"\n";
    let hub = TestHub::builder().server("s", &script).settings(settings).build().await;
    assert!(hub.call(ToolCall::new("t", json!({}))).await.success());
    Journal::read(&journal)
        .wait_for_async(|seen| !seen.events("eof").is_empty(), Duration::from_secs(10))
        .await;
    assert!(hub.call(ToolCall::new("t", json!({}))).await.success(), "it is started again when it is needed");
    assert_eq!(hub.servers()[0].restarts, 1);
    hub.close().await;
}

/// Ten servers, one that never answers and one that always crashes: calls to the other eight are as fast as without them.
#[tokio::test]
async fn bad_servers_do_not_delay_good_ones() {
    let mut builder = TestHub::builder().settings("[limits]\nconnect = \"20s\"\n");
    for id in 0..8 {
        builder = builder.server(&format!("good_{id}"), &Script::both().plain_tool(&format!("tool_{id}")));
    }
    let hangs = Script::legacy().on("*", json!([{"ignore": true}]));
    let crashes = Script::legacy().on("*", json!([{"exit": 1}]));
    let hub = builder.server("hangs", &hangs).server("crashes", &crashes).build().await;
    let started = Instant::now();
    let ids: Vec<String> = (0..8).map(|id| format!("good_{id}")).collect();
    let bad = async { tokio::join!(hub.list_server("hangs"), hub.list_server("crashes")) };
    let good = async {
        let lists = futures_util::future::join_all(ids.iter().map(|id| hub.list_server(id))).await;
        assert!(lists.into_iter().all(|list| list.unwrap().is_ok()));
        for id in 0..8 {
            assert!(
                hub.call(ToolCall::new(format!("tool_{id}"), json!({})).at(format!("good_{id}")))
                    .await
                    .success()
            );
            // The same holds for a call without a source.
            assert!(hub.call(ToolCall::new(format!("tool_{id}"), json!({}))).await.success());
        }
        started.elapsed()
    };
    let took = tokio::select! {
        _ = bad => panic!("the hanging server answered"),
        took = good => took,
    };
    assert!(took < Duration::from_secs(10), "{took:?}");
    hub.close().await;
}

/// Two thousand concurrent calls over one child process; a connection takes 1024 at a time, the others are queued. The child
/// answers in batches of five hundred, each in an order drawn from a seed, and each call must get its own response. A failure
/// prints the seed; `TOOLHUB_TEST_SEED` replays it.
#[tokio::test]
async fn matches_responses_of_a_burst() {
    const AT_ONCE: usize = 2000;
    let seed_variable = std::env::var("TOOLHUB_TEST_SEED").ok();
    let seed: u64 = seed_variable.map_or_else(fresh_seed, |seed| seed.parse().unwrap());
    for script in [Script::legacy(), Script::modern()] {
        let mixed = json!([{"shuffle": {"of": 500, "seed": seed}}]);
        let script = script.plain_tool("echo").on("tools/call:echo", &mixed);
        let hub = TestHub::builder().server("s", &script).build().await;
        hub.list_server("s").await.unwrap().unwrap();
        let answered = Mutex::new(Vec::with_capacity(AT_ONCE));
        let calls = (0..AT_ONCE).map(async |n| {
            let arguments = json!({"n": n});
            let outcome = hub.call(ToolCall::new("echo", arguments.clone())).await;
            answered.lock().unwrap().push(n);
            let texts = outcome.result.map(|output| output.texts().0);
            let own = texts.as_ref().is_ok_and(|texts| *texts == [arguments.to_string()]);
            assert!(own, "seed {seed}: {arguments} was answered with {texts:?}");
        });
        futures_util::future::join_all(calls).await;
        let answered = answered.into_inner().unwrap();
        let in_order = answered.windows(2).filter(|pair| pair[0] < pair[1]).count();
        // In a random order half of the neighbours are ascending; without shuffling all of them are.
        assert!((800..1200).contains(&in_order), "seed {seed}: {in_order} of {AT_ONCE} in order");
        hub.close().await;
    }
}

/// A queued call has not been sent: if it is cancelled, it had no effect and never reaches the server, and the next call
/// proceeds when there is room.
#[tokio::test]
async fn queued_call_has_not_been_sent() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = Script::legacy().plain_tool("holds").on("tools/call:holds", json!([{"ignore": true}]));
    let script = script.plain_tool("echo").journal(&journal);
    let hub = TestHub::builder().server("s", &script).build().await;
    hub.list_server("s").await.unwrap().unwrap();
    let (sent, patience) = (|seen: &Journal| seen.count_method("tools/call"), Duration::from_secs(60));
    let holding = async {
        let calls = (0..1024).map(|_| hub.call(ToolCall::new("holds", json!({}))));
        futures_util::future::join_all(calls).await;
    };
    let waiting = async {
        Journal::read(&journal).wait_for_async(|seen| sent(seen) == 1024, patience).await;
        let short = ToolCall::new("echo", json!({"n": "short"})).within(Duration::from_millis(300));
        let error = hub.call(short).await.result.unwrap_err();
        assert_eq!((error.kind(), error.effect()), ("timed_out", Effect::None), "{error}");
        let dropped = hub.call(ToolCall::new("echo", json!({"n": "dropped"})));
        assert!(tokio::time::timeout(Duration::from_millis(300), dropped).await.is_err());
    };
    tokio::select! {
        () = holding => panic!("nobody answers them"),
        () = waiting => {}
    }
    // The calls that occupied the connection are cancelled, which makes room.
    let outcome = hub.call(ToolCall::new("echo", json!({"n": "last"}))).await;
    assert_eq!(outcome.result.unwrap().texts().0, [r#"{"n":"last"}"#]);
    let seen = Journal::read(&journal);
    assert_eq!((sent(&seen), seen.count_method("notifications/cancelled")), (1025, 1024));
    hub.close().await;
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one("seed")
}

/// The protocol versions of the initialize and discover requests, in order.
fn greeted_in(journal: &Journal) -> Vec<String> {
    let version = |message: &&Value| match message["method"].as_str() {
        Some("initialize") => message["params"]["protocolVersion"].as_str().map(str::to_owned),
        Some("server/discover") => {
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    journal.messages().iter().filter_map(version).collect()
}

/// An unsupported-version error (2026-07-28, basic/versioning) with the supported versions.
fn unsupported(code: i64, supported: &[&str]) -> Value {
    let data = json!({"supported": supported, "requested": "as asked"});
    json!({"error": {"code": code, "message": "Unsupported protocol version", "data": data}})
}

/// If a server rejects the version and lists the supported ones, the client retries with a common version.
#[tokio::test]
async fn retries_with_common_protocol_version() {
    let then = |refusal: Value| json!([[refusal], [{"default": true}]]);
    let cases = [
        // The version of the hub, both rejected and listed as supported.
        (
            Script::modern().on("server/discover", then(unsupported(-32022, &["2027-01-01", "2026-07-28"]))),
            vec!["2026-07-28", "2026-07-28"],
            "modern",
        ),
        // The server supports newer versions than the hub, and older ones; its own version check rejects the request, over HTTP
        // with 400.
        (
            Script::both().set("supported", ["2027-01-01"]).set("version", "2025-06-18"),
            vec!["2026-07-28", "2025-11-25"],
            "legacy",
        ),
        // Supports a single version and rejects `initialize` as well, instead of answering with its version.
        (
            Script::both()
                .set("supported", ["2027-01-01"])
                .set("version", "2025-03-26")
                .on("initialize", then(unsupported(-32022, &["2027-01-01", "2025-03-26"]))),
            vec!["2026-07-28", "2025-11-25", "2025-03-26"],
            "legacy",
        ),
        // The same for a legacy server, in the form of 2025-11-25.
        (
            Script::legacy()
                .set("version", "2024-11-05")
                .on("initialize", then(unsupported(-32602, &["2024-11-05"]))),
            vec!["2026-07-28", "2025-11-25", "2024-11-05"],
            "legacy",
        ),
    ];
    for (script, versions, era) in cases {
        for http in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let journal = folder.path().join("journal");
            let script = script.clone().plain_tool("t").journal(&journal);
            let server = http.then(|| HttpServer::start(&script));
            let hub = match &server {
                Some(server) => TestHub::builder().entry("s", json!({"url": server.url})).build().await,
                None => TestHub::builder().server("s", &script).build().await,
            };
            let listed = hub.list_server("s").await.unwrap();
            let listed = listed.unwrap_or_else(|error| panic!("{versions:?} http {http}: {error}"));
            assert_eq!((listed.era.as_str(), listed.tools.len()), (era, 1), "{versions:?} http {http}");
            let outcome = hub.call(ToolCall::new("t", json!({"n": 1}))).await;
            assert_eq!(outcome.result.unwrap().texts().0, [r#"{"n":1}"#], "{versions:?} http {http}");
            assert_eq!(greeted_in(&Journal::read(&journal)), versions, "http {http}");
            hub.close().await;
        }
    }
}

/// Without a common version, or if the listed version is always rejected, the connection fails soon with an error.
#[tokio::test]
async fn reports_no_common_protocol_version() {
    let for_ever = json!([unsupported(-32022, &["2026-07-28"])]);
    let cases = [
        (
            Script::modern().set("supported", ["2027-01-01", "2028-01-01"]),
            1,
            "it supports 2027-01-01, 2028-01-01",
        ),
        (Script::modern().on("server/discover", for_ever), 2, "Unsupported protocol version"),
    ];
    for (script, expected_greetings, message) in cases {
        for http in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let journal = folder.path().join("journal");
            let script = script.clone().plain_tool("t").journal(&journal);
            let server = http.then(|| HttpServer::start(&script));
            let hub = match &server {
                Some(server) => TestHub::builder().entry("s", json!({"url": server.url})).build().await,
                None => TestHub::builder().server("s", &script).build().await,
            };
            let error = hub.list_server("s").await.unwrap().unwrap_err();
            assert_eq!(error.kind(), "mcp_error", "{error}");
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(greeted_in(&Journal::read(&journal)).len(), expected_greetings, "http {http}");
            hub.close().await;
        }
    }
}

/// With a configured era only that era is tried, over both transports, and the error names a wrong setting.
#[tokio::test]
async fn configured_era_is_not_probed() {
    let cases = [
        (Script::both(), "legacy", Some("initialize")),
        (Script::both(), "modern", Some("server/discover")),
        (Script::legacy(), "legacy", Some("initialize")),
        (Script::modern(), "modern", Some("server/discover")),
        (Script::legacy(), "modern", None),
        (Script::modern(), "legacy", None),
    ];
    for (script, era, greeting) in cases {
        for http in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let journal = folder.path().join("journal");
            let script = script.clone().plain_tool("t").journal(&journal);
            let server = http.then(|| HttpServer::start(&script));
            let builder = TestHub::builder().settings(&format!("[[servers]]\nid = \"s\"\nera = \"{era}\"\n"));
            let hub = match &server {
                Some(server) => builder.entry("s", json!({"url": server.url})).build().await,
                None => builder.server("s", &script).build().await,
            };
            let listed = hub.list_server("s").await.unwrap();
            match (greeting, listed) {
                (Some(greeting), Ok(listed)) => {
                    assert_eq!(listed.era, era);
                    let seen = Journal::read(&journal);
                    assert_eq!(seen.methods().first(), Some(&greeting), "{:?}", seen.methods());
                    assert_eq!(greeted_in(&seen).len(), 1, "{:?}", seen.methods());
                }
                (None, Err(error)) => {
                    let message = format!("`era = \"{era}\"`, which it may not speak");
                    assert!(error.to_string().contains(&message), "{error}");
                }
                (_, listed) => panic!("{era} http {http}: {listed:?}"),
            }
            hub.close().await;
        }
    }
}
