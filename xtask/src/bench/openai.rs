//! The OpenAI-compatible endpoint beside the bare model endpoint and a proxy that only copies bytes, alternately in one run:
//! time to the first token, CPU time per streamed token, parallel streams, and memory per open stream.
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf, absolute},
    process::Stdio,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::gateway::{RunningServer, median_of, processor_time, resident};
use crate::{
    commands::unknown,
    run::{self, Profile, build, program},
    table::Table,
    workspace::Workspace,
};

const ROUNDS: usize = 5;
/// Requests of a round, one after another, for the time to the first token.
const FIRST_TOKENS: Load = Load { clients: 1, requests: 60, tokens: 4, pause_micros: 0 };
/// Streams at the pace of a fast model, for CPU time: 20 streams of 200 tokens per second.
const TOKENS: Load = Load { clients: 20, requests: 1, tokens: 500, pause_micros: 5_000 };
const PARALLEL: Load = Load { clients: 200, requests: 1, tokens: 100, pause_micros: 20_000 };
/// Number of streams whose memory is measured.
const OPEN_STREAMS: usize = 200;
/// Time for freed memory to be given back, and for logs to be written.
const REST: Duration = Duration::from_secs(3);

/// What the clients do.
#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    requests: usize,
    tokens: usize,
    pause_micros: u64,
}

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let folder = workspace.target.join("bench/openai");
    let built = |profile| -> Result<Programs> {
        Ok(Programs {
            toolhub: build(workspace, "toolhub-cli", "toolhub", profile)?,
            load: build(workspace, "toolhub-testkit", "openai-load", profile)?,
            folder: folder.clone(),
        })
    };
    let programs = match args {
        [] => built(Profile::Dist)?,
        [flag] if flag == "--release" => built(Profile::Release)?,
        [flag, programs] if flag == "--programs" => {
            let programs = absolute(programs)?;
            Programs { toolhub: programs.join("toolhub"), load: programs.join("openai-load"), folder }
        }
        [other, ..] => return Err(unknown("argument", other, ["--release", "--programs"])),
    };
    let model = programs.start(&["model"])?;
    let baseline = programs.start(&["baseline", model.url.as_str()])?;
    let hub = programs.hub(&model.url)?;
    let url = |address: &str| format!("http://{address}/v1");
    let subjects = [
        Subject { name: "the model server itself", url: url(&model.url), api: "chat", pid: model.child.id() },
        Subject {
            name: "a proxy that copies bytes",
            url: url(&baseline.url),
            api: "chat",
            pid: baseline.child.id(),
        },
        Subject { name: "hub, /v1/chat/completions", url: hub.url.clone(), api: "chat", pid: hub.child.id() },
        Subject { name: "hub, /v1/responses", url: hub.url.clone(), api: "responses", pid: hub.child.id() },
    ];
    println!("{}", first_tokens(&programs, &subjects)?);
    println!("{}", tokens(&programs, &subjects)?);
    println!("{}", parallel(&programs, &subjects)?);
    println!("{}", memory(&programs, &subjects)?);
    Ok(())
}

/// What is measured.
struct Subject {
    name: &'static str,
    url: String,
    api: &'static str,
    pid: u32,
}

struct Programs {
    toolhub: PathBuf,
    load: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// Starts a program of `openai-load` that serves.
    fn start(&self, arguments: &[&str]) -> Result<RunningServer> {
        RunningServer::start(program(&self.load).args(arguments), |line| Some(line.to_owned()))
    }

    /// Starts a hub with this model, and without servers.
    fn hub(&self, model: &str) -> Result<RunningServer> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        fs::create_dir_all(&self.folder)?;
        let config = self.folder.join("toolhub.toml");
        let settings = format!(
            "[llm]\nurl = \"http://{model}/v1\"\nmodel = \"scripted\"\n[serve]\nmax_concurrent = 1000\nper_second = 100000\n"
        );
        fs::write(&config, settings)?;
        let mut command = program(&self.toolhub);
        command.arg("--config").arg(&config).arg("--home").arg(self.folder.join("home"));
        command.args(["--json", "serve", "--bind", "127.0.0.1:0"]);
        RunningServer::start(&mut command, |line| {
            let startup: Value = serde_json::from_str(line).ok()?;
            Some(format!("{}/v1", startup["mcp"].as_str()?.strip_suffix("/mcp")?))
        })
    }

    fn load(&self, subject: &Subject, load: Load) -> Result<Figures> {
        let before = processor_time(subject.pid)?;
        let mut clients = program(&self.load);
        clients.args(["load", &subject.url, subject.api]);
        let Load { clients: count, requests, tokens, pause_micros } = load;
        let numbers = [count, requests, tokens].map(|number| number.to_string());
        let output = run::read(clients.args(numbers).arg(pause_micros.to_string()))
            .with_context(|| subject.name.to_owned())?;
        let cpu = processor_time(subject.pid)? - before;
        let found: Value = serde_json::from_str(output.trim())?;
        let number = |key: &str| found[key].as_f64().with_context(|| format!("no `{key}` in {output}"));
        Ok(Figures {
            tokens: number("tokens")?,
            p50: number("p50")?,
            p99: number("p99")?,
            seconds: number("seconds")?,
            cpu_micros: cpu.as_secs_f64() * 1e6,
        })
    }
}

/// The figures of a load.
#[derive(Clone, Copy)]
struct Figures {
    tokens: f64,
    /// Time to the first token, in microseconds.
    p50: f64,
    p99: f64,
    seconds: f64,
    cpu_micros: f64,
}

/// Measures each subject in turn, several times, and returns the medians.
fn rounds(programs: &Programs, subjects: &[Subject], load: Load) -> Result<Vec<Figures>> {
    let mut turns: Vec<Vec<Figures>> = subjects.iter().map(|_| Vec::new()).collect();
    // Round 0 warms up and is not counted.
    for round in 0..=ROUNDS {
        for (subject, turns) in subjects.iter().zip(&mut turns) {
            let figures = programs.load(subject, load)?;
            if round > 0 {
                turns.push(figures);
            }
        }
    }
    Ok(turns.iter().map(|turns| medians(turns)).collect())
}

fn medians(turns: &[Figures]) -> Figures {
    let median = |of: fn(&Figures) -> f64| median_of(&mut turns.iter().map(of).collect::<Vec<_>>());
    Figures {
        tokens: median(|turn| turn.tokens),
        p50: median(|turn| turn.p50),
        p99: median(|turn| turn.p99),
        seconds: median(|turn| turn.seconds),
        cpu_micros: median(|turn| turn.cpu_micros),
    }
}

fn first_tokens(programs: &Programs, subjects: &[Subject]) -> Result<Table> {
    let all = rounds(programs, subjects, FIRST_TOKENS)?;
    let bare = all.first().copied().context("no subject")?;
    let mut table = Table::default();
    table.row(["time to the first token", "p50", "added", "p99", "added"].map(str::to_owned));
    for (subject, figures) in subjects.iter().zip(&all) {
        let Figures { p50, p99, .. } = figures;
        table.row([
            subject.name.to_owned(),
            format!("{p50:.0} µs"),
            format!("{:.0} µs", p50 - bare.p50),
            format!("{p99:.0} µs"),
            format!("{:.0} µs", p99 - bare.p99),
        ]);
    }
    Ok(table)
}

fn tokens(programs: &Programs, subjects: &[Subject]) -> Result<Table> {
    let all = rounds(programs, subjects, TOKENS)?;
    let bare = all.first().copied().context("no subject")?;
    let of_token = |figures: &Figures| figures.cpu_micros / figures.tokens;
    let mut table = Table::default();
    table.row(["CPU time of the process", "per token", "of the model server"].map(str::to_owned));
    for (subject, figures) in subjects.iter().zip(&all) {
        table.row([
            subject.name.to_owned(),
            format!("{:.1} µs", of_token(figures)),
            format!("{:.2}", of_token(figures) / of_token(&bare)),
        ]);
    }
    Ok(table)
}

fn parallel(programs: &Programs, subjects: &[Subject]) -> Result<Table> {
    let mut table = Table::default();
    let title = format!("{} parallel streams, all texts equal", PARALLEL.clients);
    table.row([title.as_str(), "until the last one ends", "first token p50", "p99"].map(str::to_owned));
    for subject in subjects {
        let Figures { p50, p99, seconds, .. } = programs.load(subject, PARALLEL)?;
        table.row([
            subject.name.to_owned(),
            format!("{seconds:.2} s"),
            format!("{:.1} ms", p50 / 1e3),
            format!("{:.1} ms", p99 / 1e3),
        ]);
    }
    Ok(table)
}

fn memory(programs: &Programs, subjects: &[Subject]) -> Result<Table> {
    let mut table = Table::default();
    table.row(["memory", "before", "with open streams", "a stream"].map(str::to_owned));
    for subject in subjects.iter().skip(1) {
        thread::sleep(REST);
        let before = resident(subject.pid)?;
        let with_streams = with_open_streams(&programs.load, subject)?;
        table.row([
            subject.name.to_owned(),
            format!("{:.1} MB", before / 1e6),
            format!("{:.1} MB", with_streams / 1e6),
            format!("{:.1} KiB", (with_streams - before) / OPEN_STREAMS as f64 / 1024.0),
        ]);
    }
    Ok(table)
}

/// The memory of a process while it has open streams.
fn with_open_streams(load: &Path, subject: &Subject) -> Result<f64> {
    let mut clients = program(load);
    clients.args(["hold", &subject.url, subject.api, &OPEN_STREAMS.to_string()]);
    let mut child = clients.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
    let memory = resident(subject.pid);
    let status = child.wait()?;
    ensure!(line.trim() == "open" && status.success(), "not all streams of {} were complete", subject.name);
    memory
}
