//! Killed and frozen workers, and NATS away: nothing runs twice, and errors are certain or say that they are not.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use crate::test_cluster::{Client, TEST_TIMEOUT, TestCluster, effect, succeeded};

/// How often each id ran.
fn counts(ran: Vec<String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for id in ran {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_runs_nothing_twice() {
    let mut cluster = TestCluster::new("");
    let replicas = [cluster.replica(), cluster.replica()];
    let mut worker = cluster.worker(&[]);
    for replica in &replicas {
        Client::of(replica).await_ready().await;
    }
    let _second = cluster.worker(&[]);
    let mut calls = JoinSet::new();
    for caller in 0..6 {
        let client = Client::of(&replicas[caller % 2]);
        calls.spawn(async move {
            let mut answers = Vec::new();
            let began = Instant::now();
            let mut number = 0;
            while began.elapsed() < Duration::from_secs(14) {
                let id = format!("{caller}-{number}");
                let answer = client.call("append", json!({"id": id, "ms": 20})).await;
                if !succeeded(&answer) {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                answers.push((id, answer));
                number += 1;
            }
            answers
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    worker.kill();
    let answers: Vec<(String, String)> = calls.join_all().await.into_iter().flatten().collect();
    let counts = counts(cluster.ran());
    let (mut worked, mut unknown) = (0, 0);
    for (id, answer) in &answers {
        let count = counts.get(id).copied().unwrap_or_default();
        assert!(count <= 1, "{id} ran {count} times: {answer}");
        match (succeeded(answer), effect(answer)) {
            (true, _) => {
                assert_eq!(count, 1, "{id}: {answer}");
                worked += 1;
            }
            (false, Some("none")) => assert_eq!(count, 0, "{id}: {answer}"),
            (false, Some(_)) => unknown += 1,
            (false, None) => panic!("{id} says nothing about its effect: {answer}"),
        }
    }
    // At most the calls that ran when the worker was killed are in doubt.
    assert!(worked > 50 && unknown <= 6, "{worked} {unknown}");
    // The other worker has taken over.
    let (_, last) = answers.iter().next_back().unwrap();
    assert!(succeeded(last), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_was_frozen_past_its_lease_is_fenced() {
    let mut cluster = TestCluster::new("");
    let (replica, frozen) = (cluster.replica(), cluster.worker(&[]));
    let client = Client::of(&replica);
    client.await_ready().await;
    let old = frozen.servers();
    assert_eq!(old.len(), 1);
    let second = cluster.worker(&[]);
    frozen.signal(Signal::STOP);
    // Reaches the frozen worker's connection, and must never run.
    let lost = client.append("while frozen").await;
    assert_eq!(effect(&lost), Some("unknown"), "{lost}");
    let since = Instant::now();
    while second.servers().is_empty() {
        let _ = client.append("after the lease").await;
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", cluster.status());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    frozen.signal(Signal::CONT);
    // It notices, and ends its own process before it does anything.
    let since = Instant::now();
    while !frozen.servers().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(10), "{}", frozen.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(succeeded(&client.append("at the second").await));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ran = cluster.ran();
    assert!(!ran.contains(&"while frozen".to_owned()), "{ran:?}");
    assert_eq!(ran.iter().filter(|id| *id == "at the second").count(), 1);
    assert_eq!(second.servers().len(), 1);
    let status = cluster.status();
    assert_eq!(status["placements"].as_array().unwrap().len(), 1, "{status:#}");
    assert_eq!(status["placements"][0]["worker"], second.id.as_str(), "{status:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nats_calls_certainly_do_not_run_and_later_they_do() {
    let mut cluster = TestCluster::new("");
    let (replica, _worker) = (cluster.replica(), cluster.worker(&[]));
    let client = Client::of(&replica);
    client.await_ready().await;
    cluster.nats.stop();
    // The connection of the replica ends within this time.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answer = client.append("away").await;
    assert_eq!(effect(&answer), Some("none"), "{answer}");
    let ready = reqwest::get(replica.url.replace("/mcp", "/readyz")).await.unwrap();
    assert_eq!(ready.status(), 200);
    assert!(ready.text().await.unwrap().contains("degraded"));
    cluster.nats.restart();
    let since = Instant::now();
    while !succeeded(&client.append("back").await) {
        assert!(since.elapsed() < TEST_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let counts = counts(cluster.ran());
    assert_eq!(counts.get("away"), None);
    assert_eq!(counts.get("back"), Some(&1), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn result_that_nats_lost_is_reported_as_unknown_soon() {
    let mut cluster = TestCluster::new("");
    let (replica, _worker) = (cluster.replica(), cluster.worker(&[]));
    Client::of(&replica).await_ready().await;
    let client = Client::of(&replica);
    let faults = async {
        tokio::time::sleep(Duration::from_millis(350)).await;
        // The result is written to a connection whose server never reads it.
        cluster.nats.freeze();
        tokio::time::sleep(Duration::from_millis(1200)).await;
        cluster.nats.stop();
        cluster.nats.restart();
        Instant::now()
    };
    let (answer, restarted) = tokio::join!(client.call("append", json!({"id": "lost", "ms": 700})), faults);
    assert_eq!(effect(&answer), Some("unknown"), "{answer}");
    assert!(restarted.elapsed() < Duration::from_secs(12), "{:?}", restarted.elapsed());
    assert_eq!(counts(cluster.ran()).get("lost"), Some(&1));
    // Calls that still run when the connection is back arrive.
    let faults = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.nats.stop();
        cluster.nats.restart();
    };
    let (answer, ()) = tokio::join!(client.call("append", json!({"id": "kept", "ms": 4000})), faults);
    assert!(succeeded(&answer), "{answer}");
}
