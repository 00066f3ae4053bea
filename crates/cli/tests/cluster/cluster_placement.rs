//! Which worker runs a server: labels, capacity, drain; and the errors if none can.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::test_cluster::{Client, TestCluster, effect, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn servers_run_only_where_their_labels_are_offered() {
    let mut cluster = TestCluster::new("[[servers]]\nid = \"journal\"\nlabels = [\"gpu\", \"office\"]\n");
    let (replica, plain, partly) =
        (cluster.replica(), cluster.worker(&[]), cluster.worker(&["--labels", "gpu"]));
    let client = Client::of(&replica);
    let refused = client.append("too early").await;
    assert!(!succeeded(&refused), "{refused}");
    let fitting = cluster.worker(&["--labels", "office,gpu,more"]);
    client.await_ready().await;
    assert_eq!(fitting.servers().len(), 1);
    assert!(plain.servers().is_empty() && partly.servers().is_empty() && replica.servers().is_empty());
    assert!(!cluster.ran().contains(&"too early".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn full_worker_takes_nothing_and_the_error_says_so() {
    let mut cluster = TestCluster::new("");
    let mut servers: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(cluster.path("mcp.json")).unwrap()).unwrap();
    servers["mcpServers"]["other"] = servers["mcpServers"]["journal"].clone();
    std::fs::write(cluster.path("mcp.json"), servers.to_string()).unwrap();
    let (replica, worker) = (cluster.replica(), cluster.worker(&["--capacity", "1"]));
    let status = cluster.await_status("one of two is placed", |status| {
        status["placements"].as_array().is_some_and(|all| all.len() == 1)
            && status["workers"][0]["servers"] == 1
    });
    assert_eq!((&status["workers"][0]["servers"], &status["workers"][0]["capacity"]), (&json!(1), &json!(1)));
    // The second server asks for a place again and again; there is never more than one process.
    for _ in 0..20 {
        assert!(worker.servers().len() <= 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let stderr = replica.stderr();
    assert!(stderr.contains("full"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_a_worker_drains() {
    let mut cluster = TestCluster::new("");
    let (replica, mut first) = (cluster.replica(), cluster.worker(&[]));
    let client = Client::of(&replica);
    client.await_ready().await;
    let second = cluster.worker(&[]);
    let mut calls = JoinSet::new();
    for caller in 0..4 {
        let client = client.clone();
        calls.spawn(async move {
            let mut failed = Vec::new();
            for number in 0..30 {
                let answer =
                    client.call("append", json!({"id": format!("{caller}-{number}"), "ms": 50})).await;
                if !succeeded(&answer) {
                    failed.push(answer);
                }
            }
            failed
        });
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    let terminating = tokio::task::spawn_blocking(move || {
        first.terminate();
        first
    });
    let failed: Vec<String> = calls.join_all().await.into_iter().flatten().collect();
    let first = terminating.await.unwrap();
    assert_eq!(failed, [""; 0], "{}", first.stderr());
    let mut ran = cluster.ran();
    ran.retain(|id| id != "ready");
    let count = ran.len();
    ran.sort();
    ran.dedup();
    assert_eq!((ran.len(), count), (120, 120));
    assert_eq!(second.servers().len(), 1);
    assert!(first.servers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_workers_calls_fail_and_nothing_starts() {
    let mut cluster = TestCluster::new("");
    let (replica, mut worker) = (cluster.replica(), cluster.worker(&[]));
    let client = Client::of(&replica);
    client.await_ready().await;
    worker.terminate();
    let answer = client.append("nobody").await;
    assert!(!succeeded(&answer) && answer.contains("no worker can run"), "{answer}");
    assert_eq!(effect(&answer), Some("none"), "{answer}");
    assert!(replica.servers().is_empty());
    assert!(!cluster.ran().contains(&"nobody".to_owned()));
}

#[test]
fn worker_needs_a_shared_store_and_nats() {
    let cluster = TestCluster::new("");
    for (toml, expected) in [
        ("", "`[cluster]`"),
        ("[cluster]\nnats = \"nats://127.0.0.1:1\"\n", "`[store] url`"),
        ("[cluster]\nnats = \"nats://127.0.0.1:1\"\nlease = \"1s\"\n", "`lease`"),
        ("[cluster]\nnats = \"nats://127.0.0.1:1\"\nprefix = \"a.b\"\n", "`prefix`"),
    ] {
        std::fs::write(cluster.path("toolhub.toml"), toml).unwrap();
        let output = cluster.command(&cluster.path("home"), &["work"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains(expected), "{toml}: {stderr}");
    }
}
