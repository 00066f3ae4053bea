//! What the gateway costs: the same calls straight to a server, through a bare pass-through, through the gateway, and
//! through other gateways where they are installed, side by side in one run.
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{
    run::{self, Profile, build, program},
    table::Table,
    workspace::Workspace,
};

/// Rounds of which the median is shown; each subject has its turn in each.
const ROUNDS: usize = 5;
const SECONDS: f64 = 2.0;
const TOOLS: usize = 1_000;
const LISTS: usize = 50;

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let programs = Programs {
        toolhub: build(workspace, "toolhub", "toolhub", Profile::Release)?,
        load: build(workspace, "toolhub-testkit", "gateway-load", Profile::Release)?,
        folder: workspace.target.join("bench/gateway"),
    };
    if programs.folder.exists() {
        fs::remove_dir_all(&programs.folder)?;
    }
    println!("median of {ROUNDS} rounds of {SECONDS} s; a round takes each in turn\n");
    over_http(&programs)?;
    over_stdio(&programs)?;
    with_many_tools(&programs)
}

struct Programs {
    toolhub: PathBuf,
    load: PathBuf,
    folder: PathBuf,
}

/// A program that serves an address, until it is dropped.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Starts a program that prints its address first.
    fn start(command: &mut Command, address_of: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
        match address_of(line.trim()) {
            Some(url) => Ok(Self { child, url }),
            None => {
                let _ = child.kill();
                bail!("it did not say where it listens: {line}")
            }
        }
    }
}

impl Programs {
    fn upstream(&self, tools: usize) -> Result<Served> {
        let mut command = program(&self.load);
        Served::start(command.args(["upstream-http", &tools.to_string()]), |line| Some(line.to_owned()))
    }

    fn floor(&self, upstream: &Served) -> Result<Served> {
        Served::start(program(&self.load).args(["floor", &upstream.url]), |line| Some(line.to_owned()))
    }

    /// The gateway in front of one server.
    fn gateway(&self, name: &str, server: &Value) -> Result<Served> {
        let mut command = self.toolhub(name, server)?;
        Served::start(command.args(["--json", "serve", "--bind", "127.0.0.1:0"]), |line| {
            serde_json::from_str::<Value>(line).ok()?["mcp"].as_str().map(str::to_owned)
        })
    }

    fn toolhub(&self, name: &str, server: &Value) -> Result<Command> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("toolhub.toml"), "[profiles.default]\nservers = [\"up\"]\nexpose = \"all\"\n")?;
        fs::write(folder.join("mcp.json"), json!({"mcpServers": {"up": server}}).to_string())?;
        let mut command = program(&self.toolhub);
        command.arg("--config").arg(folder.join("toolhub.toml")).arg("--home").arg(folder.join("home"));
        Ok(command)
    }

    fn stdio_server(&self) -> Value {
        json!({"command": self.load, "args": ["upstream-stdio", "1"]})
    }
}

/// What one turn of one subject came to.
struct Turn {
    rate: f64,
    p50: f64,
    p99: f64,
    /// Processor time of the subject for each call, in microseconds.
    processor: f64,
}

/// One that is measured.
struct Subject {
    name: &'static str,
    served: Served,
    alone: Vec<Turn>,
    together: Vec<Turn>,
}

impl Subject {
    fn new(name: &'static str, served: Served) -> Self {
        Self { name, served, alone: Vec::new(), together: Vec::new() }
    }

    fn turn(&self, load: &Path, callers: usize) -> Result<Turn> {
        let pid = self.served.child.id();
        let before = processor_time(pid)?;
        let (callers, seconds) = (callers.to_string(), SECONDS.to_string());
        let said = run::read(program(load).args(["load", &self.served.url, &callers, &seconds]))
            .with_context(|| self.name)?;
        turn(&said, processor_time(pid)? - before)
    }
}

fn turn(said: &str, processor: Duration) -> Result<Turn> {
    let found: Value = serde_json::from_str(said.trim())?;
    let number = |key: &str| found[key].as_f64().with_context(|| format!("no `{key}` in {said}"));
    Ok(Turn {
        rate: number("rate")?,
        p50: number("p50")?,
        p99: number("p99")?,
        processor: processor.as_secs_f64() * 1e6 / number("calls")?,
    })
}

fn over_http(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(1)?;
    let floor = programs.floor(&upstream)?;
    let to_http = programs.gateway("http", &json!({"type": "http", "url": upstream.url}))?;
    let to_stdio = programs.gateway("stdio", &programs.stdio_server())?;
    let mut subjects = vec![
        Subject::new("direct", upstream),
        Subject::new("floor (bare pass-through)", floor),
        Subject::new("toolhub, server over http", to_http),
        Subject::new("toolhub, server over stdio", to_stdio),
    ];
    for subject in &subjects {
        // The first call meets the server.
        subject.turn(&programs.load, 1)?;
    }
    for _ in 0..ROUNDS {
        for subject in &mut subjects {
            let (alone, together) = (subject.turn(&programs.load, 1)?, subject.turn(&programs.load, 32)?);
            subject.alone.push(alone);
            subject.together.push(together);
        }
    }
    println!("calls over HTTP");
    show(&subjects.iter().map(|one| (one.name, &one.alone[..], &one.together[..])).collect::<Vec<_>>());
    Ok(())
}

fn over_stdio(programs: &Programs) -> Result<()> {
    let direct = || {
        let mut command = program(&programs.load);
        command.args(["upstream-stdio", "1"]);
        command
    };
    let hub = || -> Result<Command> {
        let mut command = programs.toolhub("pipe", &programs.stdio_server())?;
        command.args(["serve", "--stdio"]);
        Ok(command)
    };
    let mut turns = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for _ in 0..ROUNDS {
        for (place, (alone, together)) in turns.iter_mut().enumerate() {
            for (callers, turns) in [(1, alone), (32, together)] {
                let command = if place == 0 { direct() } else { hub()? };
                turns.push(piped(&programs.load, &command, callers)?);
            }
        }
    }
    println!("calls over stdio");
    let [(direct_1, direct_32), (hub_1, hub_32)] = &turns;
    show(&[("direct", direct_1, direct_32), ("toolhub, server over stdio", hub_1, hub_32)]);
    Ok(())
}

/// Calls a program over its stdin and stdout.
fn piped(load: &Path, command: &Command, callers: usize) -> Result<Turn> {
    let mut loading = program(load);
    loading.args(["pipe", &callers.to_string(), &SECONDS.to_string()]);
    loading.arg(command.get_program()).args(command.get_args());
    let mut child = loading.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let mut input: ChildStdin = child.stdin.take().context("no stdin")?;
    let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    let mut next = || lines.next().context("it ended early")?.context("a line cannot be read");
    let pid: u32 = next()?.trim().parse()?;
    let before = processor_time(pid)?;
    writeln!(input)?;
    let said = next()?;
    let used = processor_time(pid).map_or(Duration::ZERO, |now| now.saturating_sub(before));
    ensure!(child.wait()?.success(), "the load failed");
    turn(&said, used)
}

fn show(subjects: &[(&str, &[Turn], &[Turn])]) {
    let Some((_, base_alone, base_together)) = subjects.first() else { return };
    let floor = subjects.iter().find(|(name, ..)| name.starts_with("floor"));
    let mut table = Table::default();
    let head = ["", "1: p50", "p99", "CPU/call", "32: calls/s", "of direct", "p99", "CPU/call", "of floor"];
    table.row(head.map(str::to_owned));
    let rate = |turns: &[Turn]| median(turns, |turn| turn.rate);
    let _ = base_alone;
    for (name, alone, together) in subjects {
        let of_floor = floor.map_or_else(String::new, |(_, _, floor)| {
            format!("{:.2}", median(together, |turn| turn.processor) / median(floor, |turn| turn.processor))
        });
        table.row([
            (*name).to_owned(),
            format!("{:.0} µs", median(alone, |turn| turn.p50)),
            format!("{:.0} µs", median(alone, |turn| turn.p99)),
            format!("{:.0} µs", median(alone, |turn| turn.processor)),
            format!("{:.0}", rate(together)),
            format!("{:.2}", rate(together) / rate(base_together)),
            format!("{:.0} µs", median(together, |turn| turn.p99)),
            format!("{:.0} µs", median(together, |turn| turn.processor)),
            of_floor,
        ]);
    }
    println!("{table}");
}

fn median(turns: &[Turn], of: impl Fn(&Turn) -> f64) -> f64 {
    let mut all: Vec<f64> = turns.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn with_many_tools(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(TOOLS)?;
    let server = json!({"type": "http", "url": upstream.url});
    let gateway = programs.gateway("many", &server)?;
    let list = |url: &str| -> Result<f64> {
        let said = run::read(program(&programs.load).args(["list", url, &LISTS.to_string()]))?;
        let found: Value = serde_json::from_str(said.trim())?;
        found["p50"].as_f64().context("no figure")
    };
    list(&gateway.url)?;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct.push(list(&upstream.url)?);
        through.push(list(&gateway.url)?);
    }
    for times in [&mut direct, &mut through] {
        times.sort_by(f64::total_cmp);
    }
    let (direct, through) = (direct[ROUNDS / 2], through[ROUNDS / 2]);
    println!(
        "`tools/list` with {TOOLS} tools: {through:.0} µs, direct {direct:.0} µs, ratio {:.2}",
        through / direct
    );
    println!("memory with {TOOLS} tools: {:.1} MB", resident(gateway.child.id())? / 1e6);
    drop(gateway);
    // With its lists known from before, as every start but the first.
    let mut starts: Vec<f64> = (0..20).map(|_| cold_start(programs, &server)).collect::<Result<_>>()?;
    starts.sort_by(f64::total_cmp);
    println!("ready after its start: {:.0} ms (median of 20), {:.0} ms at most", starts[10], starts[19]);
    Ok(())
}

/// From the start of the program to the first answer with all tools, in milliseconds.
fn cold_start(programs: &Programs, server: &Value) -> Result<f64> {
    let began = Instant::now();
    let gateway = programs.gateway("many", server)?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    run::read(program(&programs.load).args(["list", &gateway.url, "1"]))?;
    Ok(took)
}

/// Processor time that a program has used.
fn processor_time(pid: u32) -> Result<Duration> {
    let text =
        fs::read_to_string(format!("/proc/{pid}/stat")).context("only Linux tells what a program used")?;
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // User and system time, in hundredths of a second.
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
}

/// The memory that a program has, in bytes.
fn resident(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}
