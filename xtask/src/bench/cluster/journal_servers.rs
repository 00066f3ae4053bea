//! Small stdio servers that append the ids of their calls to a file, any number of them: their entries, and one call of each.
use std::{
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use super::{
    Environment,
    client::{Client, Outcome},
    deployment::{Deployment, Member},
};

/// Appends its argument `id` and waits for `ms` milliseconds. It may change something.
pub(super) const TOOL: &str = "append";
/// Tools of one server.
const TOOLS: usize = 5;
/// Concurrent callers of many servers.
pub(super) const CALLERS: usize = 16;

/// The entry of one server in `mcp.json`.
pub(super) fn entry(environment: &Environment<'_>, journal: &Path) -> Value {
    json!({"command": environment.programs.journal, "env": {"JOURNAL": journal}})
}

/// The entries of many servers.
pub(super) fn entries(environment: &Environment<'_>, count: usize) -> Value {
    let journal = environment.scratch.path().join("journal");
    let named = |number| (server_id(number), entry(environment, &journal));
    Value::Object((0..count).map(named).collect::<Map<String, Value>>())
}

fn server_id(number: usize) -> String {
    format!("s{number:05}")
}

/// Lets a replica list all servers, so that the tools are in the database, and ends it with the workers. A replica that is started
/// later starts servers on demand. Returns how long the listing took.
pub(super) fn list_once(deployment: &Deployment, count: usize, workers: usize) -> Result<Duration> {
    let mut workers = deployment.workers(workers)?;
    let began = Instant::now();
    let mut replica = deployment.replica()?;
    let known = replica.await_tools(count * TOOLS)?;
    let took = began.elapsed();
    ensure!(known >= count * TOOLS, "{known} tools of {count} servers are known");
    replica.terminate()?;
    workers.iter_mut().try_for_each(Member::terminate)?;
    Ok(took)
}

/// The results of one call of each server.
pub(super) struct Round {
    pub(super) took: Duration,
    /// Of successful calls, sorted.
    pub(super) latencies: Vec<Duration>,
    pub(super) failures: Vec<String>,
}

/// Calls each server once.
pub(super) fn call_each(replica: &Member, count: usize) -> Result<Round> {
    let next = AtomicUsize::new(0);
    let (latencies, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let clients: Vec<Client> = (0..CALLERS).map(|_| Client::new(&replica.url)).collect::<Result<_>>()?;
    let began = Instant::now();
    thread::scope(|scope| {
        for mut client in clients {
            let (next, latencies, failures) = (&next, &latencies, &failures);
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
                    match outcome {
                        Outcome::Succeeded => lock(latencies).push(latency),
                        Outcome::Failed { text, .. } => lock(failures).push(format!("{id}: {text}")),
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    let mut latencies = latencies.into_inner().unwrap_or_else(PoisonError::into_inner);
    latencies.sort_unstable();
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Round { took, latencies, failures })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
