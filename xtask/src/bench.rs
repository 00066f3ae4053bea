//! The benchmarks, one file each, and the way a command is measured.
mod cold_start;
mod engine;
mod samples;
mod servers;

use anyhow::Result;

use crate::{commands::unknown, table::Table, workspace::Workspace};

struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<()>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "cold-start",
        about: "a start with 20 configured servers, none of which may be started",
        run: cold_start::run,
    },
    Benchmark {
        name: "engine",
        about: "calls per second of a trivial native tool, written down and not",
        run: engine::run,
    },
    Benchmark {
        name: "servers",
        about: "eight good servers, with and without one that hangs and one that crashes beside them",
        run: servers::run,
    },
];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--list") {
        list();
        return Ok(());
    }
    let known = || BENCHMARKS.iter().map(|benchmark| benchmark.name);
    if let Some(stranger) = args.iter().find(|arg| !known().any(|name| name == *arg)) {
        return Err(unknown("benchmark", stranger, known()));
    }
    for benchmark in BENCHMARKS {
        if args.is_empty() || args.iter().any(|arg| arg == benchmark.name) {
            println!("━━ {}: {}", benchmark.name, benchmark.about);
            (benchmark.run)(workspace)?;
        }
    }
    Ok(())
}

fn list() {
    let mut table = Table::default();
    for benchmark in BENCHMARKS {
        table.row([benchmark.name.to_owned(), benchmark.about.to_owned()]);
    }
    print!("{table}");
}
