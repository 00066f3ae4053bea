//! One, two and three replicas with one worker: calls per second and CPU time per call, called directly and through `HAProxy`.
use anyhow::Result;
use serde_json::json;

use super::{
    Environment,
    deployment::{Configuration, Deployment, Member},
    load::{Figures, Load, Subject, TOOLS, medians, server},
    services::LoadBalancer,
};
use crate::table::Table;

const REPLICAS: usize = 3;
const CALLERS: usize = 32;

pub(super) fn run(environment: &Environment<'_>) -> Result<()> {
    let deployment = Deployment::new(
        environment,
        &Configuration {
            name: "replicas",
            nats: Some(&environment.nats),
            servers: json!({"up": server(&environment.programs.load)}),
            settings: "",
        },
    )?;
    let workers = [deployment.worker()?];
    let replicas = deployment.replicas(REPLICAS)?;
    for replica in &replicas {
        replica.await_ready(TOOLS[0], &json!({"text": "hello"}))?;
    }
    let urls: Vec<&str> = replicas.iter().map(|replica| replica.url.as_str()).collect();
    let balancer = |count| LoadBalancer::start(environment.workspace, deployment.folder(), &urls[..count]);
    let balancers: Vec<LoadBalancer> = (1..=REPLICAS).map(balancer).collect::<Result<_>>()?;
    let direct = (1..=REPLICAS).map(|count| Arrangement::new(&replicas, count, None));
    let balanced =
        balancers.iter().zip(1..).map(|(balancer, count)| Arrangement::new(&replicas, count, Some(balancer)));
    let arrangements: Vec<Arrangement<'_>> = direct.chain(balanced).collect();
    for (tool, kind) in TOOLS.into_iter().zip(["changes nothing", "may change something"]) {
        println!("a tool that {kind}, {CALLERS} callers; CPU per call, without the server and the callers");
        println!("{}", measure(environment, &arrangements, &workers, tool)?);
    }
    Ok(())
}

/// Some of the replicas, called directly or through a load balancer.
struct Arrangement<'a> {
    name: String,
    urls: Vec<&'a str>,
    replicas: &'a [Member],
    balancer: Option<u32>,
}

impl<'a> Arrangement<'a> {
    fn new(replicas: &'a [Member], count: usize, balancer: Option<&'a LoadBalancer>) -> Self {
        let noun = if count == 1 { "replica" } else { "replicas" };
        let used = replicas.iter().take(count);
        // As many generators in both cases, since they take part of the processors.
        let urls =
            used.map(|replica| balancer.map_or(replica.url.as_str(), |balancer| balancer.url.as_str()));
        Self {
            name: format!("{count} {noun}{}", if balancer.is_some() { " behind HAProxy" } else { "" }),
            urls: urls.collect(),
            replicas,
            balancer: balancer.map(LoadBalancer::pid),
        }
    }
}

/// Measures all arrangements in turn.
fn measure(
    environment: &Environment<'_>,
    arrangements: &[Arrangement<'_>],
    workers: &[Member],
    tool: &str,
) -> Result<Table> {
    let mut runs: Vec<Vec<Figures>> = arrangements.iter().map(|_| Vec::new()).collect();
    // Round 0 warms up and is not counted.
    for round in 0..=environment.options.rounds {
        for (arrangement, runs) in arrangements.iter().zip(&mut runs) {
            let load = Load { tool, callers: CALLERS, seconds: environment.options.seconds };
            let Arrangement { urls, replicas, balancer, .. } = arrangement;
            let subject = Subject { urls: urls.clone(), replicas, workers, balancer: *balancer };
            let figures = load.run(environment, &subject)?;
            if round > 0 {
                runs.push(figures);
            }
        }
    }
    let all: Vec<Figures> = runs.iter().map(|runs| medians(runs)).collect();
    let base = all.first().copied().unwrap_or_default();
    let mut table = Table::default();
    let head = [
        "",
        "calls/s",
        "ratio",
        "p99",
        "replicas",
        "worker",
        "NATS",
        "PostgreSQL",
        "HAProxy",
        "total",
        "ratio",
    ];
    table.row(head.map(str::to_owned));
    for (arrangement, Figures { rate, p99, cpu, .. }) in arrangements.iter().zip(&all) {
        table.row([
            arrangement.name.clone(),
            format!("{rate:.0}"),
            format!("{:.2}", rate / base.rate),
            format!("{p99:.0} µs"),
            format!("{:.0} µs", cpu.replicas),
            format!("{:.0} µs", cpu.workers),
            format!("{:.0} µs", cpu.nats),
            format!("{:.0} µs", cpu.postgres),
            format!("{:.0} µs", cpu.balancer),
            format!("{:.0} µs", cpu.total()),
            format!("{:.2}", cpu.total() / base.cpu.total()),
        ]);
    }
    Ok(table)
}
