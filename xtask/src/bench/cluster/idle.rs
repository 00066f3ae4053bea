//! The memory of what does nothing: servers at a worker, and sessions at a replica.
use std::{net::TcpStream, path::Path, thread, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use super::{
    Environment,
    client::Client,
    deployment::{Configuration, Deployment, Member},
    usage,
};
use crate::table::Table;

/// The tool of the server that keeps a journal: it may change something.
pub(super) const TOOL: &str = "append";
/// Tools of that server.
pub(super) const TOOLS: usize = 5;
const SERVERS: usize = 50;
const SESSIONS: usize = 500;
/// Fewer than the event streams that one caller may have.
const STREAMS: usize = 200;
/// Time for freed memory to be given back, and for records to be written.
pub(super) const REST: Duration = Duration::from_secs(5);

/// A small stdio server that appends the ids of its calls to a file.
pub(super) fn server(program: &Path, journal: &Path) -> Value {
    json!({"command": program, "env": {"JOURNAL": journal}})
}

/// Many of them, in `mcp.json`.
pub(super) fn servers(environment: &Environment<'_>, count: usize) -> Value {
    let journal = environment.scratch.path().join("journal");
    let entry = |number| (server_id(number), server(&environment.programs.journal, &journal));
    Value::Object((0..count).map(entry).collect::<Map<String, Value>>())
}

pub(super) fn server_id(number: usize) -> String {
    format!("s{number:05}")
}

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let deployment = Deployment::new(
        environment,
        &Configuration {
            name: "idle",
            nats: Some(&environment.nats),
            servers: servers(environment, SERVERS),
            settings: "",
        },
    )?;
    let worker = deployment.worker()?;
    thread::sleep(REST);
    let worker_before = usage::proportional_memory(worker.pid())?;
    // A new replica lists servers without a stored list, and so starts them all.
    let replica = deployment.replica()?;
    let known = replica.await_tools(SERVERS * TOOLS)?;
    ensure!(known >= SERVERS * TOOLS, "{known} tools of {SERVERS} servers are known");
    thread::sleep(REST);
    let children = usage::children(worker.pid());
    ensure!(children.len() >= SERVERS, "{} of {SERVERS} servers run", children.len());
    let worker_after = usage::proportional_memory(worker.pid())?;
    let mut table = Table::default();
    table.row(["memory (PSS)", "before", "after", "each"].map(str::to_owned));
    let title = format!("worker, {SERVERS} idle servers");
    table.row(row(&title, &Growth { before: worker_before, after: worker_after, count: SERVERS }));
    let servers = usage::total_memory(&children);
    table.row(row("the servers themselves", &Growth { before: 0.0, after: servers, count: children.len() }));
    sessions(&replica, &mut table)?;
    println!("{table}");
    println!("connections to PostgreSQL: {} of one replica and one worker", environment.postgres.connections("idle")?);
    Ok(())
}

/// Idle sessions, and such with an open stream.
fn sessions(replica: &Member, table: &mut Table) -> Result<()> {
    let memory = || usage::proportional_memory(replica.pid());
    let mut client = Client::with_session(&replica.url)?;
    thread::sleep(REST);
    let before = memory()?;
    for _ in 0..SESSIONS {
        client.open_session()?;
    }
    thread::sleep(REST);
    let after = memory()?;
    table.row(row(&format!("replica, {SESSIONS} idle sessions"), &Growth { before, after, count: SESSIONS }));
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..STREAMS {
        client.open_session()?;
        streams.push(client.listen()?);
    }
    thread::sleep(REST);
    let growth = Growth { before: after, after: memory()?, count: STREAMS };
    table.row(row(&format!("replica, {STREAMS} more with a stream"), &growth));
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
