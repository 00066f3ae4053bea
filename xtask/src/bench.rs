//! The table of benchmarks, each in its own module, and their dispatch.
mod build;
#[cfg(unix)]
mod cluster;
mod cold_start;
mod console;
mod engine;
mod formats;
mod gateway;
mod openai;
mod plan;
mod samples;
mod sandbox;
mod script;
mod search;
mod servers;
mod size;

use anyhow::Result;

use crate::{
    commands::{no_arguments, unknown},
    table::Table,
    workspace::Workspace,
};

struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// Receives the arguments after the name.
    run: fn(&Workspace, &[String]) -> Result<()>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: build::NAME,
        about: "from a clone to the first answer, and after a change of one line; `--before COMMIT` builds that commit, too; only when named",
        run: build::run,
    },
    #[cfg(unix)]
    Benchmark {
        name: "cluster",
        about: "figures of a cluster with PostgreSQL, NATS and HAProxy: `hop`, `replicas`, `takeover`, `idle`, `servers`, all or those named; `--rounds N`, `--seconds N` of a load, `--servers N` of the part `servers`, `--programs DIR` measures those in a folder",
        run: cluster::run,
    },
    Benchmark {
        name: "cold-start",
        about: "a start with 20 configured servers, none of which may be started",
        run: |workspace, args| {
            no_arguments(args)?;
            cold_start::run(workspace)
        },
    },
    Benchmark {
        name: "console",
        about: "pages and lists of the web console with 10,000 tools and a million calls, its event streams, and calls through the gateway beside them; `--programs DIR` measures those in a folder",
        run: console::run,
    },
    Benchmark {
        name: "engine",
        about: "calls per second of a trivial native tool, written down and not",
        run: |workspace, args| {
            no_arguments(args)?;
            engine::run(workspace)
        },
    },
    Benchmark {
        name: "formats",
        about: "tool calls read out of texts, and malformed JSON mended; `--data DIR` names the sets",
        run: formats::run,
    },
    Benchmark {
        name: "gateway",
        about: "calls through the gateway, beside direct ones, a bare pass-through and other gateways; `--peers` installs those, `--access` measures keys, the audit log and signed tokens, `--instructions` counts instead of timing, `--matrix` compares every common case with the baseline, `--profiles` compares a plain release build with the program of packages, `--record [SECONDS]` checks that every call at full load is in the history, `--programs DIR` measures those in a folder",
        run: gateway::run,
    },
    Benchmark {
        name: "openai",
        about: "streams of the OpenAI-compatible endpoint beside those of the bare model endpoint; `--release` measures a plain release build, `--programs DIR` those in a folder",
        run: openai::run,
    },
    Benchmark {
        name: "plan",
        about: "planning without a model; `--data DIR` names the sets",
        run: plan::run,
    },
    Benchmark {
        name: "sandbox",
        about: "starting a program with and without the sandbox, and with Bubblewrap where it is installed",
        run: |workspace, args| {
            no_arguments(args)?;
            sandbox::run(workspace)
        },
    },
    Benchmark {
        name: "script",
        about: "starting the host of a script, and its calls beside direct ones",
        run: |workspace, args| {
            no_arguments(args)?;
            script::run(workspace)
        },
    },
    Benchmark {
        name: "search",
        about: "ranking quality and cost; `--data DIR` names the sets, `--json` prints numbers",
        run: search::run,
    },
    Benchmark {
        name: "size",
        about: "how much of the packaged program its parts take",
        run: |workspace, args| {
            no_arguments(args)?;
            size::run(workspace)
        },
    },
    Benchmark {
        name: "servers",
        about: "eight good servers, with and without one that hangs and one that crashes beside them",
        run: |workspace, args| {
            no_arguments(args)?;
            servers::run(workspace)
        },
    },
];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--list") {
        list();
        return Ok(());
    }
    let Some((name, rest)) = args.split_first() else {
        // Clean builds take longer than all other benchmarks together.
        let mut usual = BENCHMARKS.iter().filter(|benchmark| benchmark.name != build::NAME);
        return usual.try_for_each(|benchmark| start(benchmark, workspace, &[]));
    };
    match BENCHMARKS.iter().find(|benchmark| benchmark.name == name) {
        Some(benchmark) => start(benchmark, workspace, rest),
        None => Err(unknown("benchmark", name, BENCHMARKS.iter().map(|benchmark| benchmark.name))),
    }
}

fn start(benchmark: &Benchmark, workspace: &Workspace, args: &[String]) -> Result<()> {
    // Printed to stderr, so that the stdout of a benchmark with `--json` is valid JSON.
    eprintln!("━━ {}: {}", benchmark.name, benchmark.about);
    (benchmark.run)(workspace, args)
}

fn list() {
    let mut table = Table::default();
    for benchmark in BENCHMARKS {
        table.row([benchmark.name.to_owned(), benchmark.about.to_owned()]);
    }
    print!("{table}");
}
