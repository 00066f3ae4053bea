//! The memory of what does nothing: servers at a worker and at the replica that has called them, and sessions at a replica.
use std::{net::TcpStream, thread};

use anyhow::{Result, ensure};

use super::{
    Environment,
    client::Client,
    deployment::{Configuration, Deployment, Member, REST},
    journal_servers::{call_each, entries, list_once},
    usage,
};
use crate::table::Table;

const SERVERS: usize = 50;
/// Sessions and streams that are opened first, so that they take the memory that was freed before.
const FIRST: usize = 200;
const SESSIONS: usize = 2_000;
/// Each is a connection, for which this process needs an open file.
const STREAMS: usize = 400;
const SETTINGS: &str = "[serve.limits]\nsessions = 100000\nstreams = 10000\n";

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let deployment = Deployment::new(
        environment,
        &Configuration {
            name: "idle",
            nats: Some(&environment.nats),
            servers: entries(environment, SERVERS),
            settings: SETTINGS,
        },
    )?;
    list_once(&deployment, SERVERS, 1)?;
    let mut table = Table::default();
    table.row(["memory (PSS)", "before", "after", "each"].map(str::to_owned));
    let (worker, mut replica) = (deployment.worker()?, deployment.replica()?);
    servers(&replica, &worker, &mut table)?;
    sessions(&replica, &mut table)?;
    println!("{table}");
    let connections = || environment.postgres.connections("idle");
    let all = connections()?;
    replica.terminate()?;
    let of_worker = connections()?;
    println!(
        "connections to PostgreSQL: {} of a replica, {of_worker} of a worker",
        all.saturating_sub(of_worker)
    );
    Ok(())
}

/// All processes run before and after, since the pages of the program are divided among them.
fn servers(replica: &Member, worker: &Member, table: &mut Table) -> Result<()> {
    let memory = |member: &Member| usage::proportional_memory(member.pid());
    thread::sleep(REST);
    let children = usage::children(worker.pid());
    ensure!(children.is_empty(), "{} servers run before they are called", children.len());
    let (worker_before, replica_before) = (memory(worker)?, memory(replica)?);
    let round = call_each(replica, SERVERS)?;
    ensure!(round.failures.is_empty(), "{}", round.failures.join("\n"));
    thread::sleep(REST);
    let children = usage::children(worker.pid());
    ensure!(children.len() == SERVERS, "{} of {SERVERS} servers run", children.len());
    let count = SERVERS;
    let after = memory(worker)?;
    table.row(row(
        &format!("worker, {SERVERS} idle servers"),
        &Growth { before: worker_before, after, count },
    ));
    let after = memory(replica)?;
    table.row(row("replica that has called them", &Growth { before: replica_before, after, count }));
    let after = usage::total_memory(&children);
    table.row(row("the servers themselves", &Growth { before: 0.0, after, count }));
    Ok(())
}

/// Idle sessions, and such with an open stream.
fn sessions(replica: &Member, table: &mut Table) -> Result<()> {
    let memory = || {
        thread::sleep(REST);
        usage::proportional_memory(replica.pid())
    };
    let mut client = Client::with_session(&replica.url)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..FIRST {
        client.open_session()?;
        streams.push(client.listen()?);
    }
    let before = memory()?;
    for _ in 0..SESSIONS {
        client.open_session()?;
    }
    let after = memory()?;
    table.row(row(&format!("replica, {SESSIONS} idle sessions"), &Growth { before, after, count: SESSIONS }));
    for _ in 0..STREAMS {
        client.open_session()?;
        streams.push(client.listen()?);
    }
    let growth = Growth { before: after, after: memory()?, count: STREAMS };
    table.row(row(&format!("replica, {STREAMS} more, each with a stream"), &growth));
    let (open, expected) = (replica.sessions()?, 1 + FIRST + SESSIONS + STREAMS);
    ensure!(open == expected, "{open} sessions are open, not {expected}");
    drop(streams);
    Ok(())
}

/// Memory in bytes before and after something was added.
struct Growth {
    before: f64,
    after: f64,
    count: usize,
}

fn row(title: &str, growth: &Growth) -> [String; 4] {
    let Growth { before, after, count } = growth;
    let each = (after - before) / *count as f64;
    [
        title.to_owned(),
        format!("{:.1} MB", before / 1e6),
        format!("{:.1} MB", after / 1e6),
        format!("{:.1} KiB", each / 1024.0),
    ]
}
