//! Replicas, workers and the NATS server are killed and frozen at random under load; then the journal of the server, the history and the
//! audit log are compared. `cargo xtask chaos` runs this test for longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster_load_balancer::{Answers, Balanced};
use crate::cluster_sessions::KEYS;
use crate::test_cluster::{Client, TEST_TIMEOUT, succeeded};

const DEFAULT_SECONDS: u64 = 15;
/// Longer than the lease of a placement.
const MAX_FREEZE: Duration = Duration::from_secs(8);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Does one random thing to a part of the cluster, and repairs it.
async fn disturb(balanced: &mut Balanced, random: &mut fastrand::Rng) {
    let short = Duration::from_millis(random.u64(100..4_000));
    let long = Duration::from_millis(random.u64(100..u64::try_from(MAX_FREEZE.as_millis()).unwrap()));
    let (replica, worker) = (random.usize(..balanced.replicas.len()), random.usize(..balanced.workers.len()));
    let what = random.usize(..7);
    eprintln!("chaos: {what}, replica {replica}, worker {worker}, {short:?} or {long:?}");
    match what {
        0 | 1 => {
            let (port, mut killed) = balanced.replicas.remove(replica);
            if what == 0 {
                killed.kill();
            } else {
                killed.terminate();
            }
            tokio::time::sleep(short / 4).await;
            let next = balanced.cluster.replica_at(port);
            balanced.replicas.insert(replica, (port, next));
        }
        2 => {
            balanced.replicas[replica].1.signal(Signal::STOP);
            tokio::time::sleep(short).await;
            balanced.replicas[replica].1.signal(Signal::CONT);
        }
        3 => {
            let mut killed = balanced.workers.remove(worker);
            killed.kill();
            let next = balanced.cluster.worker(&[]);
            balanced.workers.push(next);
        }
        4 => {
            balanced.workers[worker].signal(Signal::STOP);
            tokio::time::sleep(long).await;
            balanced.workers[worker].signal(Signal::CONT);
        }
        5 => {
            balanced.cluster.nats.freeze();
            tokio::time::sleep(short).await;
            balanced.cluster.nats.thaw();
        }
        _ => {
            balanced.cluster.nats.stop();
            tokio::time::sleep(short).await;
            balanced.cluster.nats.restart();
        }
    }
}

/// How often each id is in the history.
fn recorded(balanced: &Balanced) -> HashMap<String, usize> {
    let home = balanced.cluster.path("history");
    let output = balanced.cluster.command(&home, &["history", "--export", "-"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut counts = HashMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = record["arguments"]["id"].as_str() {
            *counts.entry(id.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn nothing_runs_twice_and_every_answered_call_is_recorded_once_in_chaos() {
    let seed = number("TOOLHUB_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..));
    let duration = Duration::from_secs(number("TOOLHUB_CHAOS_SECONDS").unwrap_or(DEFAULT_SECONDS));
    eprintln!("chaos: seed {seed}, {duration:?}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut balanced = Balanced::start(2).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = balanced.load(&stop).await;
    let since = Instant::now();
    while since.elapsed() < duration {
        tokio::time::sleep(Duration::from_millis(random.u64(200..2_000))).await;
        disturb(&mut balanced, &mut random).await;
    }
    // Everything works again.
    for (_, replica) in &balanced.replicas {
        Client::of(replica).with_key(KEYS[0]).await_ready().await;
    }
    stop.store(true, Ordering::Relaxed);
    let answers: Answers = calls.join_all().await.into_iter().flatten().collect();
    let failed = balanced.failed(answers.clone()).len();
    eprintln!("chaos: {} calls, {failed} failed", answers.len());
    let succeeded: Vec<String> =
        answers.into_iter().filter(|(_, answer)| succeeded(answer)).map(|(id, _)| id).collect();
    let since = Instant::now();
    // Replicas write records in groups.
    loop {
        let counts = recorded(&balanced);
        let wrong: Vec<(&String, usize)> = succeeded
            .iter()
            .map(|id| (id, counts.get(id).copied().unwrap_or_default()))
            .filter(|(_, count)| *count != 1)
            .collect();
        if wrong.is_empty() {
            break;
        }
        assert!(since.elapsed() < TEST_TIMEOUT / 6, "{wrong:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Each member signs with a key of its own.
    let homes = std::fs::read_dir(balanced.cluster.path("")).unwrap();
    let keys: String = homes
        .filter_map(|home| std::fs::read_to_string(home.unwrap().path().join("audit.pub")).ok())
        .collect();
    let home = balanced.cluster.path("verify");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("audit.pub"), keys).unwrap();
    let verified = balanced.cluster.command(&home, &["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}
