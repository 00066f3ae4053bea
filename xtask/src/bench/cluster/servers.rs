//! Many stdio servers on a few workers, started on demand by their first calls, and called again.
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    Environment,
    client::{Client, Outcome},
    deployment::{Configuration, Deployment, Member},
    idle::{REST, TOOL, TOOLS, server_id, servers},
    usage,
};
use crate::{
    bench::samples::{milliseconds, percentile},
    table::Table,
};

const WORKERS: usize = 4;
const CALLERS: usize = 16;
/// Failures that are shown.
const MAX_SHOWN: usize = 3;

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let count = environment.options.servers;
    let deployment = Deployment::new(
        environment,
        &Configuration {
            name: "servers",
            nats: Some(&environment.nats),
            servers: servers(environment, count),
            // Room for all servers at a worker: they are not spread evenly while many start.
            settings: &format!("[worker]\ncapacity = {}\n", count.max(1)),
        },
    )?;
    let listed_in = learn(&deployment, count)?;
    println!(
        "{count} servers, {WORKERS} workers, one replica; a new replica had listed all after {:.1} s",
        listed_in.as_secs_f64()
    );

    // New members, which know all tools from the database, and run nothing yet.
    let workers = start_workers(&deployment)?;
    let replica = deployment.replica()?;
    thread::sleep(REST);
    let running = running_servers(&workers).len();
    ensure!(running == 0, "{running} servers run before they are called");
    let mut memory = Table::default();
    memory.row(["memory (PSS)", "replica", "workers", "servers", "NATS", "PostgreSQL"].map(str::to_owned));
    memory.row(memory_row(environment, "before", &replica, &workers));
    let mut calls = Table::default();
    let head = ["", "calls", "failed", "total", "median ms", "p99 ms", "max ms"];
    calls.row(head.map(str::to_owned));
    let mut failures = Vec::new();
    for name in ["first calls", "again"] {
        let round = call_all(&replica, count)?;
        calls.row(round.row(name));
        failures.extend(round.failures);
        thread::sleep(REST);
        memory.row(memory_row(environment, &format!("after {name}"), &replica, &workers));
    }
    println!("one call of each server, {CALLERS} callers\n{calls}");
    println!("{memory}");
    let per_worker = workers.iter().map(|worker| usage::children(worker.pid()).len().to_string());
    println!("servers of the workers: {}", per_worker.collect::<Vec<_>>().join(", "));
    for failure in failures.iter().take(MAX_SHOWN) {
        println!("failed: {failure}");
    }
    Ok(())
}

/// Lets a replica list all servers, so that the tools are in the database. Returns how long that took.
fn learn(deployment: &Deployment, count: usize) -> Result<Duration> {
    let mut workers = start_workers(deployment)?;
    let began = Instant::now();
    let mut replica = deployment.replica()?;
    let known = replica.await_tools(count * TOOLS)?;
    let took = began.elapsed();
    ensure!(known >= count * TOOLS, "{known} tools of {count} servers are known");
    replica.terminate()?;
    workers.iter_mut().try_for_each(Member::terminate)?;
    Ok(took)
}

fn start_workers(deployment: &Deployment) -> Result<Vec<Member>> {
    (0..WORKERS).map(|_| deployment.worker()).collect()
}

fn running_servers(workers: &[Member]) -> Vec<u32> {
    workers.iter().flat_map(|worker| usage::children(worker.pid())).collect()
}

fn memory_row(
    environment: &Environment<'_>,
    name: &str,
    replica: &Member,
    workers: &[Member],
) -> [String; 6] {
    let workers_alone: Vec<u32> = workers.iter().map(Member::pid).collect();
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    [
        name.to_owned(),
        megabytes(usage::total_memory(&[replica.pid()])),
        megabytes(usage::total_memory(&workers_alone)),
        megabytes(usage::total_memory(&running_servers(workers))),
        megabytes(usage::total_memory(&[environment.nats.pid()])),
        megabytes(usage::memory_of_tree(environment.postgres.pid())),
    ]
}

/// The results of one call of each server.
struct Round {
    took: Duration,
    /// Of successful calls.
    latencies: Vec<Duration>,
    failures: Vec<String>,
}

impl Round {
    fn row(&self, name: &str) -> [String; 7] {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        [
            name.to_owned(),
            (self.latencies.len() + self.failures.len()).to_string(),
            self.failures.len().to_string(),
            format!("{:.2} s", self.took.as_secs_f64()),
            milliseconds(percentile(&sorted, 50)),
            milliseconds(percentile(&sorted, 99)),
            milliseconds(percentile(&sorted, 100)),
        ]
    }
}

fn call_all(replica: &Member, count: usize) -> Result<Round> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Vec::new(), Vec::new()));
    let clients: Vec<Client> = (0..CALLERS).map(|_| Client::new(&replica.url)).collect::<Result<_>>()?;
    let began = Instant::now();
    thread::scope(|scope| {
        for mut client in clients {
            let (next, results) = (&next, &results);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let id = server_id(number);
                    let since = Instant::now();
                    let outcome = client.call(&format!("{id}__{TOOL}"), &json!({"id": id}));
                    let latency = since.elapsed();
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    match outcome {
                        Outcome::Succeeded => results.0.push(latency),
                        Outcome::Failed { text, .. } => results.1.push(format!("{id}: {text}")),
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    let (latencies, failures) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Round { took, latencies, failures })
}
