//! Many stdio servers on a few workers, started on demand by their first calls, and called again.
use std::thread;

use anyhow::{Result, ensure};

use super::{
    Environment,
    deployment::{Configuration, Deployment, Member, REST},
    journal_servers::{CALLERS, Round, call_each, entries, list_once},
    usage,
};
use crate::{
    bench::samples::{milliseconds, percentile},
    table::Table,
};

const WORKERS: usize = 4;
/// Failures that are shown.
const MAX_SHOWN: usize = 3;

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let count = environment.options.servers;
    let deployment = Deployment::new(
        environment,
        &Configuration {
            name: "servers",
            nats: Some(&environment.nats),
            servers: entries(environment, count),
            // Room for all servers at one worker: they are not spread evenly while many start.
            settings: &format!("[worker]\ncapacity = {count}\n"),
        },
    )?;
    let listed_in = list_once(&deployment, count, WORKERS)?;
    println!(
        "{count} servers, {WORKERS} workers, one replica; with an empty database the replica had listed all after {:.1} s",
        listed_in.as_secs_f64()
    );

    // The new members know all tools from the database, and run nothing yet.
    let (workers, replica) = (deployment.workers(WORKERS)?, deployment.replica()?);
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
    for name in ["first calls", "second calls"] {
        let round = call_each(&replica, count)?;
        calls.row(calls_row(name, &round));
        failures.extend(round.failures);
        thread::sleep(REST);
        memory.row(memory_row(environment, &format!("after the {name}"), &replica, &workers));
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

fn calls_row(name: &str, round: &Round) -> [String; 7] {
    let Round { took, latencies, failures } = round;
    [
        name.to_owned(),
        (latencies.len() + failures.len()).to_string(),
        failures.len().to_string(),
        format!("{:.2} s", took.as_secs_f64()),
        milliseconds(percentile(latencies, 50)),
        milliseconds(percentile(latencies, 99)),
        milliseconds(percentile(latencies, 100)),
    ]
}
