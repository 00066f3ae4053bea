//! Runs of the load generator, with the CPU time that each part of a cluster uses for a call.
use std::{io::Read as _, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Environment, deployment::Member, scratch::Process, usage};
use crate::{bench::gateway::median_of, run::program};

/// The tool that declares to change nothing, and the one that may change something.
pub(super) const TOOLS: [&str; 2] = ["echo_0", "change_0"];

/// What the callers do.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) tool: &'a str,
    pub(super) callers: usize,
    pub(super) seconds: f64,
}

/// The processes whose CPU time counts.
pub(super) struct Subject<'a> {
    /// Addresses; the callers are divided among them.
    pub(super) urls: Vec<&'a str>,
    pub(super) replicas: &'a [Member],
    pub(super) workers: &'a [Member],
    pub(super) balancer: Option<u32>,
}

/// The results of one run.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    /// Calls per second.
    pub(super) rate: f64,
    /// Latency in microseconds: the largest of the generators.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// CPU time per call.
    pub(super) cpu: Cpu,
}

/// CPU time in microseconds. Servers do not count: they are the same everywhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Cpu {
    pub(super) replicas: f64,
    pub(super) workers: f64,
    pub(super) nats: f64,
    pub(super) postgres: f64,
    pub(super) balancer: f64,
}

impl Cpu {
    /// Replicas and workers.
    pub(super) fn hub(&self) -> f64 {
        self.replicas + self.workers
    }

    pub(super) fn total(&self) -> f64 {
        self.hub() + self.nats + self.postgres + self.balancer
    }

    fn of(environment: &Environment<'_>, subject: &Subject<'_>) -> Result<Self> {
        let members = |members: &[Member]| {
            usage::cpu_of(&members.iter().map(Member::pid).collect::<Vec<_>>()).map(micros)
        };
        Ok(Self {
            replicas: members(subject.replicas)?,
            workers: members(subject.workers)?,
            nats: micros(usage::cpu_of(&[environment.nats.pid()])?),
            postgres: micros(usage::cpu_of_tree(environment.postgres.pid())),
            balancer: subject.balancer.map_or(Ok(0.0), |pid| usage::cpu_of(&[pid]).map(micros))?,
        })
    }

    fn per_call(&self, before: &Self, calls: f64) -> Self {
        Self {
            replicas: (self.replicas - before.replicas) / calls,
            workers: (self.workers - before.workers) / calls,
            nats: (self.nats - before.nats) / calls,
            postgres: (self.postgres - before.postgres) / calls,
            balancer: (self.balancer - before.balancer) / calls,
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Load<'_> {
    /// Calls a subject, with a generator for each of its addresses.
    pub(super) fn run(&self, environment: &Environment<'_>, subject: &Subject<'_>) -> Result<Figures> {
        let before = Cpu::of(environment, subject)?;
        let count = subject.urls.len();
        let callers = |index: usize| self.callers / count + usize::from(index < self.callers % count);
        let started = subject.urls.iter().enumerate();
        let running = started.map(|(index, url)| self.start(environment, url, callers(index)));
        let running: Vec<Process> = running.collect::<Result<_>>()?;
        let reports: Vec<Value> = running.into_iter().map(report).collect::<Result<_>>()?;
        let of = |key: &str| -> Result<Vec<f64>> {
            let number = |report: &Value| report[key].as_f64().with_context(|| format!("no `{key}`"));
            reports.iter().map(number).collect()
        };
        let largest = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
        let calls: f64 = of("calls")?.iter().sum();
        Ok(Figures {
            rate: of("rate")?.iter().sum(),
            p50: largest(of("p50")?),
            p99: largest(of("p99")?),
            cpu: Cpu::of(environment, subject)?.per_call(&before, calls),
        })
    }

    fn start(&self, environment: &Environment<'_>, url: &str, callers: usize) -> Result<Process> {
        let Self { tool, seconds, .. } = self;
        let mut command = program(&environment.programs.load);
        command.args(["load", url, &callers.to_string(), &seconds.to_string(), "alone", tool]);
        command.current_dir(environment.scratch.path());
        Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))
    }
}

fn report(mut running: Process) -> Result<Value> {
    let mut text = String::new();
    running.0.stdout.take().context("no stdout")?.read_to_string(&mut text)?;
    ensure!(running.0.wait()?.success(), "the load failed: {text}");
    Ok(serde_json::from_str(text.trim())?)
}

/// The medians of several runs.
pub(super) fn medians(runs: &[Figures]) -> Figures {
    let median = |of: fn(&Figures) -> f64| median_of(&mut runs.iter().map(of).collect::<Vec<_>>());
    Figures {
        rate: median(|run| run.rate),
        p50: median(|run| run.p50),
        p99: median(|run| run.p99),
        cpu: Cpu {
            replicas: median(|run| run.cpu.replicas),
            workers: median(|run| run.cpu.workers),
            nats: median(|run| run.cpu.nats),
            postgres: median(|run| run.cpu.postgres),
            balancer: median(|run| run.cpu.balancer),
        },
    }
}

/// The entry of the server that is called, in `mcp.json`.
pub(super) fn server(load: &Path) -> Value {
    serde_json::json!({"command": load, "args": ["upstream-stdio", "1"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_counted_per_call_and_by_part() {
        let before = Cpu { replicas: 10.0, workers: 20.0, nats: 30.0, postgres: 40.0, balancer: 0.0 };
        let after = Cpu { replicas: 20.0, workers: 40.0, nats: 34.0, postgres: 46.0, balancer: 8.0 };
        let per_call = after.per_call(&before, 2.0);
        assert_eq!((per_call.hub(), per_call.total()), (15.0, 24.0));
    }

    #[test]
    fn medians_are_taken_for_each_figure() {
        let run = |rate, nats| Figures { rate, cpu: Cpu { nats, ..Cpu::default() }, ..Figures::default() };
        let found = medians(&[run(1.0, 9.0), run(3.0, 7.0), run(2.0, 8.0)]);
        assert_eq!((found.rate, found.cpu.nats), (2.0, 8.0));
    }
}
