//! What a worker adds to a call: the same server reached by a hub alone, by a replica that runs it itself, and through a worker.
use anyhow::Result;
use serde_json::json;

use super::{
    Environment,
    deployment::{Configuration, Deployment, Member},
    load::{Figures, Load, Subject, TOOLS, medians, server},
};
use crate::table::Table;

const CALLERS: [usize; 2] = [1, 32];

/// A way to the server.
struct Path {
    name: &'static str,
    replicas: Vec<Member>,
    workers: Vec<Member>,
}

impl Path {
    /// The first replica is called; another one is idle.
    fn subject(&self) -> Subject<'_> {
        let urls = self.replicas.iter().take(1).map(|replica| replica.url.as_str()).collect();
        Subject { urls, replicas: &self.replicas, workers: &self.workers, balancer: None }
    }
}

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let configuration = |name, nats| Configuration {
        name,
        nats,
        servers: json!({"up": server(&environment.programs.load)}),
        settings: "",
    };
    let alone = Deployment::new(environment, &configuration("hop_alone", None))?;
    let replicated = Deployment::new(environment, &configuration("hop_replicated", None))?;
    let cluster = Deployment::new(environment, &configuration("hop_cluster", Some(&environment.nats)))?;
    let paths = [
        Path { name: "one hub", replicas: alone.replicas(1)?, workers: Vec::new() },
        Path {
            name: "a replica that runs it itself",
            replicas: replicated.replicas(2)?,
            workers: Vec::new(),
        },
        Path {
            name: "a replica and a worker",
            workers: vec![cluster.worker()?],
            replicas: cluster.replicas(2)?,
        },
    ];
    for replica in paths.iter().flat_map(|path| &path.replicas) {
        replica.await_ready(TOOLS[0], &json!({"text": "hello"}))?;
    }
    for (tool, kind) in TOOLS.into_iter().zip(["changes nothing", "may change something"]) {
        println!("a tool that {kind}; the same stdio server and PostgreSQL server, CPU without the server");
        println!("{}", measure(environment, &paths, tool)?);
    }
    Ok(())
}

/// Measures all paths in turn.
fn measure(environment: &Environment<'_>, paths: &[Path], tool: &str) -> Result<Table> {
    let mut runs: Vec<[Vec<Figures>; 2]> = paths.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    // Round 0 warms up and is not counted.
    for round in 0..=environment.options.rounds {
        for (path, runs) in paths.iter().zip(&mut runs) {
            for (callers, runs) in CALLERS.into_iter().zip(runs) {
                let load = Load { tool, callers, seconds: environment.options.seconds };
                let figures = load.run(environment, &path.subject())?;
                if round > 0 {
                    runs.push(figures);
                }
            }
        }
    }
    let mut table = Table::default();
    let head = [
        "",
        "callers",
        "p50",
        "ratio",
        "p99",
        "ratio",
        "calls/s",
        "CPU/call: hub",
        "ratio",
        "NATS",
        "PostgreSQL",
    ];
    table.row(head.map(str::to_owned));
    for (index, callers) in CALLERS.iter().enumerate() {
        let all: Vec<Figures> = runs.iter().map(|runs| medians(&runs[index])).collect();
        let Some(base) = all.first().copied() else { continue };
        for (path, figures) in paths.iter().zip(&all) {
            let Figures { rate, p50, p99, cpu } = figures;
            table.row([
                path.name.to_owned(),
                callers.to_string(),
                format!("{p50:.0} µs"),
                format!("{:.2}", p50 / base.p50),
                format!("{p99:.0} µs"),
                format!("{:.2}", p99 / base.p99),
                format!("{rate:.0}"),
                format!("{:.0} µs", cpu.hub()),
                format!("{:.2}", cpu.hub() / base.cpu.hub()),
                format!("{:.0} µs", cpu.nats),
                format!("{:.0} µs", cpu.postgres),
            ]);
        }
    }
    Ok(table)
}
