//! Three replicas behind HAProxy with the shipped settings: one is killed, and all are replaced one after the other, under load.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolhub_testkit::haproxy::LoadBalancer;

use crate::cluster_sessions::{KEYS, LegacyClient, keys};
use crate::test_cluster::{Client, Process, TestCluster, succeeded};

const CALLERS: usize = 4;

pub(crate) struct Balanced {
    pub(crate) cluster: TestCluster,
    /// The replicas with their ports.
    pub(crate) replicas: Vec<(u16, Process)>,
    pub(crate) workers: Vec<Process>,
    _balancer: LoadBalancer,
    /// The address of the load balancer.
    url: String,
}

/// The ids of calls with their answers.
pub(crate) type Answers = Vec<(String, String)>;

impl Balanced {
    /// Three replicas, and this number of workers.
    pub(crate) async fn start(workers: usize) -> Self {
        let mut cluster = TestCluster::new(&keys());
        let workers = (0..workers).map(|_| cluster.worker(&[])).collect();
        let ports = free_ports();
        let replicas: Vec<(u16, Process)> =
            ports.iter().map(|port| (*port, cluster.replica_at(*port))).collect();
        for (_, replica) in &replicas {
            Client::of(replica).with_key(KEYS[0]).await_ready().await;
        }
        let balancer = LoadBalancer::start(&ports);
        let url = format!("http://127.0.0.1:{}/mcp", balancer.port());
        Self { cluster, replicas, workers, _balancer: balancer, url }
    }

    /// Calls through the load balancer until `stop` is set: modern clients, and one legacy client, which begins another session only
    /// if its own has ended.
    pub(crate) async fn load(&self, stop: &Arc<AtomicBool>) -> JoinSet<Answers> {
        let mut calls = JoinSet::new();
        for caller in 0..CALLERS {
            let (client, stop) = (Client::of(&self.url).with_key(KEYS[0]), Arc::clone(stop));
            calls.spawn(async move {
                let mut answers = Answers::new();
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("modern-{caller}-{}", answers.len());
                    let answer = client.call("append", json!({"id": id, "ms": 20})).await;
                    pause_after(&answer).await;
                    answers.push((id, answer));
                }
                answers
            });
        }
        let (url, stop) = (self.url.clone(), Arc::clone(stop));
        let mut client = LegacyClient::connect(&url, KEYS[1]).await.unwrap();
        calls.spawn(async move {
            let mut answers = Answers::new();
            while !stop.load(Ordering::Relaxed) {
                let id = format!("legacy-{}", answers.len());
                let answer = client.call(&url, "append", json!({"id": id, "ms": 20})).await;
                if answer.contains("there is no such session")
                    && let Some(next) = LegacyClient::connect(&url, KEYS[1]).await
                {
                    client = next;
                }
                pause_after(&answer).await;
                answers.push((id, answer));
            }
            answers
        });
        calls
    }

    /// Checks that nothing ran twice, and that what succeeded ran. Returns the calls that failed.
    pub(crate) fn failed(&self, answers: Answers) -> Answers {
        let ran = self.cluster.ran();
        assert!(answers.len() > 50, "{} calls", answers.len());
        let mut failed = Answers::new();
        for (id, answer) in answers {
            let count = ran.iter().filter(|ran| **ran == id).count();
            assert!(count <= 1, "{id} ran {count} times: {answer}");
            match succeeded(&answer) {
                true => assert_eq!(count, 1, "{id}: {answer}"),
                false => failed.push((id, answer)),
            }
        }
        failed
    }
}

/// Three free ports.
pub(crate) fn free_ports() -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// A client waits a moment after a failure.
async fn pause_after(answer: &str) {
    if !succeeded(answer) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replica_fails_its_running_calls_alone() {
    let mut balanced = Balanced::start(1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = balanced.load(&stop).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    balanced.replicas[0].1.kill();
    tokio::time::sleep(Duration::from_secs(6)).await;
    stop.store(true, Ordering::Relaxed);
    let answers = calls.join_all().await.into_iter().flatten().collect();
    let failed = balanced.failed(answers);
    assert!(failed.len() <= CALLERS + 1, "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_all_replicas_are_replaced() {
    let mut balanced = Balanced::start(1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = balanced.load(&stop).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for index in 0..3 {
        let (port, mut replica) = balanced.replicas.remove(index);
        let replica = tokio::task::spawn_blocking(move || {
            replica.terminate();
            replica
        });
        drop(replica.await.unwrap());
        let replica = balanced.cluster.replica_at(port);
        Client::of(&replica).with_key(KEYS[0]).await_ready().await;
        balanced.replicas.insert(index, (port, replica));
        // The load balancer checks its servers once per second.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let answers = calls.join_all().await.into_iter().flatten().collect();
    assert_eq!(balanced.failed(answers), Answers::new());
}
