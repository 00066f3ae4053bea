//! Leaks across restarts. The only test in its process, since it counts descriptors and memory.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use serde_json::json;
use toolhub::ToolCall;
use toolhub_testkit::TestHub;
use toolhub_testkit::scripted::Script;

/// A thousand rounds of connect, call and stop leak no zombie, descriptor or memory.
#[tokio::test]
async fn thousand_restarts_leak_nothing() {
    let hub = TestHub::builder().server("s", &Script::both().plain_tool("t")).build().await;
    let round = async || {
        assert!(hub.call(ToolCall::new("t", json!({}))).await.success());
        hub.shutdown().await;
    };
    for _ in 0..50 {
        round().await;
    }
    let before = (descriptors(), resident_kib());
    for _ in 50..1000 {
        round().await;
    }
    let after = (descriptors(), resident_kib());
    assert!(after.0 <= before.0 + 2, "descriptors {before:?} → {after:?}");
    assert!(after.1 < before.1 + 16 * 1024, "memory {before:?} → {after:?}");
    let zombies = toolhub_testkit::processes::children_of(std::process::id());
    let zombies: Vec<_> =
        zombies.into_iter().filter(|pid| toolhub_testkit::processes::zombie(*pid)).collect();
    assert!(zombies.is_empty(), "{zombies:?}");
    hub.close().await;
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
