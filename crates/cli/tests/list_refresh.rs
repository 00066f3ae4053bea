//! Tool lists of a long-running hub: renewed when their TTL expires, requested once for many callers, and never a reason to
//! start a program.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::Duration;

use serde_json::{Value, json};
use toolhub::ToolCall;
use toolhub_core::ports::{CachedList, ToolListStore as _};
use toolhub_store::SqliteStore;
use toolhub_testkit::TestHub;
use toolhub_testkit::scripted::{HttpServer, Journal, Script};

/// Longer than a TTL of ten minutes, with any jitter.
const LATER: Duration = Duration::from_secs(11 * 60 + 1);
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A server whose list has a TTL of ten minutes, and one more tool each time, up to three.
fn growing(script: Script) -> Script {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let list = |names: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        json!([{"reply": {"resultType": "complete", "tools": tools, "ttlMs": 600_000}}])
    };
    let lists = json!([list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])]);
    script.on("tools/list", lists).on("tools/call:a", json!([{"text": "ok"}]))
}

/// Advances the tokio clock; servers are not affected.
async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Does `work` while the hub follows its servers.
async fn following(hub: &TestHub, work: impl Future<Output = ()>) {
    tokio::select! {
        () = hub.follow() => {}
        () = work => {}
    }
}

/// Waits until the catalog and the store have the tool; only then does the hub compute the next renewal.
async fn known(hub: &TestHub, tool: &str) {
    let store = SqliteStore::open(&hub.folder().join("home")).unwrap();
    let name = format!("\"{tool}\"");
    let found = async {
        while hub.catalog().named(tool).next().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let is_stored = |list: &CachedList| list.tools.iter().any(|tool| tool.get().contains(&name));
        while !store.load().await.unwrap().iter().any(|(_, list)| is_stored(list)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(tokio::time::timeout(TEST_TIMEOUT, found).await.is_ok(), "{:?}", hub.events.texts());
}

#[tokio::test]
async fn relists_http_server_when_list_expires() {
    for script in [Script::modern(), Script::legacy()] {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let server = HttpServer::start(&growing(script).journal(&journal));
        let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
        following(&hub, async {
            assert!(hub.call(ToolCall::new("a", json!({}))).await.success());
            advance(LATER / 2).await;
            assert!(hub.call(ToolCall::new("a", json!({}))).await.success());
            assert_eq!(Journal::read(&journal).count_method("tools/list"), 1, "it is fresh still");
            advance(LATER / 2).await;
            known(&hub, "b").await;
            // The idle connection was closed long ago; the hub connects again.
            advance(LATER).await;
            known(&hub, "c").await;
        })
        .await;
        assert_eq!(Journal::read(&journal).count_method("tools/list"), 3);
        hub.close().await;
    }
}

#[tokio::test]
async fn relists_running_program_without_keeping_it_alive() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = growing(Script::legacy()).journal(&journal);
    let settings = "[[servers]]\nid = \"s\"\nidle_timeout = \"15m\"\n";
    let hub = TestHub::builder().server("s", &script).settings(settings).build().await;
    following(&hub, async {
        assert!(hub.call(ToolCall::new("a", json!({}))).await.success());
        advance(LATER).await;
        known(&hub, "b").await;
        advance(Duration::from_secs(15 * 60) - LATER).await;
        Journal::read(&journal).wait_for_async(|seen| !seen.events("eof").is_empty(), TEST_TIMEOUT).await;
    })
    .await;
    assert_eq!(Journal::read(&journal).events("start").len(), 1);
    hub.close().await;
}

#[tokio::test]
async fn does_not_start_program_to_relist_it() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let other = HttpServer::start(&growing(Script::modern()));
    let builder = TestHub::builder().server("s", &growing(Script::both()).journal(&journal));
    let mut hub = builder.entry("other", json!({"url": other.url})).build().await;
    hub.list_again().await;
    // As if the next hub started an hour later.
    let store = SqliteStore::open(&hub.folder().join("home")).unwrap();
    for (server, list) in store.load().await.unwrap() {
        let listed_at = list.listed_at.map(|at| at - Duration::from_secs(3600));
        store.save(&server, &CachedList { listed_at, ..list }).await.unwrap();
    }
    hub.restart().await;
    following(&hub, async {
        // The list of the other server is requested immediately.
        known(&hub, "b").await;
        let seen = Journal::read(&journal);
        assert_eq!((seen.events("start").len(), seen.count_method("tools/list")), (1, 1));
        // A call starts this server; now that it runs, its list is renewed, too.
        assert!(hub.call(ToolCall::new("a", json!({})).at("s")).await.success());
        Journal::read(&journal)
            .wait_for_async(|seen| seen.count_method("tools/list") == 2, TEST_TIMEOUT)
            .await;
    })
    .await;
    assert_eq!(Journal::read(&journal).events("start").len(), 2);
    hub.close().await;
}

#[tokio::test]
async fn concurrent_list_requests_are_coalesced() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let slow = json!([{"delay_ms": 300}]);
    let script = Script::both().plain_tool("t").on("tools/list", slow).journal(&journal);
    let hub = TestHub::builder().server("s", &script).build().await;
    let calls = (0..30).map(|_| hub.call(ToolCall::new("t", json!({}))));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(outcome.success(), "{outcome:?}");
    }
    assert_eq!(Journal::read(&journal).count_method("tools/list"), 1);
    // A cancelled caller does not cancel the request for the others; when all have cancelled, the server is notified.
    let (gave_up, completed) = tokio::join!(
        tokio::time::timeout(Duration::from_millis(50), hub.list_server("s")),
        hub.list_server("s")
    );
    assert!(gave_up.is_err() && completed.unwrap().is_ok());
    assert_eq!(Journal::read(&journal).count_method("tools/list"), 2);
    assert!(tokio::time::timeout(Duration::from_millis(50), hub.list_server("s")).await.is_err());
    let cancelled = |seen: &Journal| seen.count_method("notifications/cancelled") == 1;
    Journal::read(&journal).wait_for_async(cancelled, TEST_TIMEOUT).await;
    hub.close().await;
}
