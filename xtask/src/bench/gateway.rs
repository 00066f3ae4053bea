//! The cost of the gateway: the same calls directly to a server, through a bare pass-through (the baseline), through the gateway,
//! and through other gateways if they are installed, all in one run.
mod access;
mod history;
mod instructions;
mod matrix;
mod peers;
mod profiles;
mod record;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf, absolute},
    process::{Child, ChildStdin, Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use self::peers::InstalledPeer;
use crate::{
    commands::{UsageError, unknown},
    run::{self, Profile, build, program},
    table::Table,
    workspace::Workspace,
};

/// Number of rounds. Each round measures every subject; the median is shown.
pub(super) const ROUNDS: usize = 5;
const SECONDS: f64 = 2.0;
const TOOLS: usize = 1_000;
const LIST_CALLS: usize = 50;
const STARTS: usize = 20;
/// Name of the server on the official Rust SDK in the tables.
const RMCP: &str = "stdio (rmcp)";

/// The selected measurement.
#[derive(Debug, PartialEq, Eq)]
enum Mode {
    /// Keys, the audit log and signed tokens beside a gateway without access control.
    Access,
    Calls,
    Instructions,
    Matrix,
    /// The plain release build beside the build of the packages.
    Profiles,
    /// Completeness of the history after a load of this many seconds.
    Record(u64),
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    mode: Mode,
    /// Whether peers are installed first.
    installs_peers: bool,
    /// The folder of programs that are built already.
    programs: Option<PathBuf>,
}

fn read_arguments(args: &[String]) -> Result<Options> {
    const FLAGS: [&str; 7] =
        ["--access", "--instructions", "--peers", "--programs", "--matrix", "--profiles", "--record"];
    let (mut mode, mut installs_peers, mut programs) = (Mode::Calls, false, None);
    let mut words = args.iter().peekable();
    while let Some(word) = words.next() {
        let chosen = match word.as_str() {
            "--peers" => {
                installs_peers = true;
                continue;
            }
            "--programs" => {
                let folder =
                    words.next().ok_or_else(|| UsageError("`--programs` needs a folder".to_owned()))?;
                programs = Some(absolute(folder)?);
                continue;
            }
            "--access" => Mode::Access,
            "--instructions" => Mode::Instructions,
            "--matrix" => Mode::Matrix,
            "--profiles" => Mode::Profiles,
            "--record" => {
                let seconds = words.next_if(|word| !word.starts_with("--"));
                let seconds = seconds.map_or(Ok(record::SECONDS), |word| word.parse());
                let is_wrong = || UsageError("`--record` wants a number of seconds".to_owned());
                Mode::Record(seconds.ok().filter(|seconds| *seconds > 0).ok_or_else(is_wrong)?)
            }
            other => return Err(unknown("argument", other, FLAGS)),
        };
        if mode != Mode::Calls {
            return Err(UsageError(format!("`{word}` is measured by itself")).into());
        }
        mode = chosen;
    }
    Ok(Options { mode, installs_peers, programs })
}

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let Options { mode, installs_peers, programs } = read_arguments(args)?;
    let mut programs = match programs {
        Some(folder) => Programs {
            rmcp: Some(folder.join("rmcp-server")).filter(|program| program.exists()),
            ..Programs::in_folder(workspace, &folder, "gateway")
        },
        None => Programs {
            rmcp: match mode {
                Mode::Calls => Some(build(workspace, "toolhub-testkit", "rmcp-server", Profile::Dist)?),
                _ => None,
            },
            ..Programs::without_peers(workspace, "gateway")?
        },
    };
    programs.peers = peers::found(workspace, installs_peers)?;
    if programs.folder.exists() {
        fs::remove_dir_all(&programs.folder)?;
    }
    match mode {
        Mode::Calls => {}
        Mode::Access => return access::show(&programs),
        Mode::Instructions => return instructions::show(&programs),
        Mode::Matrix => return matrix::show(&programs),
        Mode::Profiles => return profiles::show(workspace, &programs),
        Mode::Record(seconds) => return record::show(&programs, seconds),
    }
    println!("median of {ROUNDS} rounds of {SECONDS} s; a round takes each in turn\n");
    over_http(&programs)?;
    over_stdio(&programs)?;
    with_many_tools(&programs)
}

pub(super) struct Programs {
    pub(super) toolhub: PathBuf,
    load: PathBuf,
    /// A server on the official Rust SDK, if it is measured.
    rmcp: Option<PathBuf>,
    pub(super) folder: PathBuf,
    peers: Vec<InstalledPeer>,
}

/// Wraps a command, for example to run it under callgrind.
type Wrap<'a> = &'a dyn Fn(Command) -> Command;

/// Arguments of `gateway-load` for calls to toolhub in a session: mode, protocol version, tool.
const SESSION: [&str; 3] = ["session", "2025-11-25", "echo_0"];

/// A running server process. Dropping this ends it.
pub(super) struct RunningServer {
    pub(super) child: Child,
    pub(super) url: String,
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningServer {
    /// Starts a program whose first line of stdout contains its address.
    pub(super) fn start(command: &mut Command, address_of: impl Fn(&str) -> Option<String>) -> Result<Self> {
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
    /// The programs for a benchmark of the gateway alone, with its own folder.
    pub(super) fn without_peers(workspace: &Workspace, folder: &str) -> Result<Self> {
        Ok(Self {
            toolhub: build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?,
            load: build(workspace, "toolhub-testkit", "gateway-load", Profile::Dist)?,
            rmcp: None,
            folder: workspace.target.join("bench").join(folder),
            peers: Vec::new(),
        })
    }

    /// Like [`Programs::without_peers`], with the programs in a folder.
    pub(super) fn in_folder(workspace: &Workspace, programs: &Path, folder: &str) -> Self {
        Self {
            toolhub: programs.join("toolhub"),
            load: programs.join("gateway-load"),
            rmcp: None,
            folder: workspace.target.join("bench").join(folder),
            peers: Vec::new(),
        }
    }

    /// Stateless calls to a gateway by this many callers.
    pub(super) fn call(&self, gateway: &RunningServer, callers: usize) -> Result<Measurement> {
        load_with(&self.load, gateway, callers, &[])
    }

    pub(super) fn upstream(&self, tools: usize) -> Result<RunningServer> {
        let mut command = program(&self.load);
        RunningServer::start(command.args(["upstream-http", &tools.to_string()]), |line| {
            Some(line.to_owned())
        })
    }

    fn baseline(&self, upstream: &RunningServer) -> Result<RunningServer> {
        self.baseline_under(upstream, &|command| command)
    }

    /// Starts the baseline with a wrapped command.
    fn baseline_under(&self, upstream: &RunningServer, wrap: Wrap<'_>) -> Result<RunningServer> {
        let mut command = program(&self.load);
        command.args(["baseline", &upstream.url]);
        RunningServer::start(&mut wrap(command), |line| Some(line.to_owned()))
    }

    /// Starts the gateway in front of one server.
    fn gateway(&self, name: &str, server: &Value) -> Result<RunningServer> {
        self.gateway_under(name, server, &|command| command)
    }

    /// Like `gateway`, with additional settings for `toolhub.toml`.
    fn gateway_with(&self, name: &str, server: &Value, settings: &str) -> Result<RunningServer> {
        Self::serve(self.toolhub_with(name, server, settings)?, &|command| command)
    }

    pub(super) fn serve(mut command: Command, wrap: Wrap<'_>) -> Result<RunningServer> {
        command.args(["--json", "serve", "--bind", "127.0.0.1:0"]);
        RunningServer::start(&mut wrap(command), |line| {
            serde_json::from_str::<Value>(line).ok()?["mcp"].as_str().map(str::to_owned)
        })
    }

    /// Like `gateway`, with a wrapped command.
    fn gateway_under(&self, name: &str, server: &Value, wrap: Wrap<'_>) -> Result<RunningServer> {
        Self::serve(self.toolhub(name, server)?, wrap)
    }

    pub(super) fn toolhub_with(&self, name: &str, server: &Value, settings: &str) -> Result<Command> {
        let command = self.toolhub(name, server)?;
        let file = self.folder.join(name).join("toolhub.toml");
        let text = fs::read_to_string(&file)?;
        fs::write(&file, text + settings)?;
        Ok(command)
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

/// The result of one run of one subject.
pub(super) struct Measurement {
    pub(super) rate: f64,
    pub(super) p50: f64,
    p99: f64,
    /// CPU time of the subject per call, in microseconds.
    pub(super) processor: f64,
}

/// A measured server or gateway.
struct Subject {
    name: String,
    running_server: Rc<RunningServer>,
    /// Arguments of `gateway-load` for calls in a session; empty for stand-alone requests.
    call_args: Vec<String>,
    alone: Vec<Measurement>,
    together: Vec<Measurement>,
}

impl Subject {
    fn new(name: impl Into<String>, running_server: Rc<RunningServer>) -> Self {
        Self {
            name: name.into(),
            running_server,
            call_args: Vec::new(),
            alone: Vec::new(),
            together: Vec::new(),
        }
    }

    fn with_call_args(mut self, call_args: Vec<String>) -> Self {
        self.call_args = call_args;
        self
    }

    fn turn(&self, load: &Path, callers: usize) -> Result<Measurement> {
        load_with(load, &self.running_server, callers, &self.call_args).with_context(|| self.name.clone())
    }
}

/// Calls a server for [`SECONDS`] seconds.
fn load_with(
    load: &Path,
    server: &RunningServer,
    callers: usize,
    call_args: &[String],
) -> Result<Measurement> {
    let pid = server.child.id();
    let before = processor_time(pid)?;
    let (callers, seconds) = (callers.to_string(), SECONDS.to_string());
    let mut loading = program(load);
    loading.args(["load", &server.url, &callers, &seconds]).args(call_args);
    let output = run::read(&mut loading)?;
    turn(&output, processor_time(pid)? - before)
}

fn turn(output: &str, processor: Duration) -> Result<Measurement> {
    let found: Value = serde_json::from_str(output.trim())?;
    let number = |key: &str| found[key].as_f64().with_context(|| format!("no `{key}` in {output}"));
    Ok(Measurement {
        rate: number("rate")?,
        p50: number("p50")?,
        p99: number("p99")?,
        processor: processor.as_secs_f64() * 1e6 / number("calls")?,
    })
}

fn over_http(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(1)?;
    let baseline = programs.baseline(&upstream)?;
    let mut behind =
        vec![("http", json!({"type": "http", "url": upstream.url})), ("stdio", programs.stdio_server())];
    // The cost of this server itself is the same behind every gateway.
    behind.extend(programs.rmcp.as_ref().map(|rmcp| (RMCP, json!({"command": rmcp, "args": []}))));
    let mut subjects = vec![
        Subject::new("direct", Rc::new(upstream)),
        Subject::new("baseline (bare pass-through)", Rc::new(baseline)),
    ];
    for (way, server) in &behind {
        let gateway = Rc::new(programs.gateway(way, server)?);
        subjects.push(Subject::new(format!("toolhub, server over {way}"), Rc::clone(&gateway)));
        // In a session, as the peers are called.
        if !programs.peers.is_empty() {
            let name = format!("toolhub, in a session, server over {way}");
            subjects.push(Subject::new(name, gateway).with_call_args(SESSION.map(str::to_owned).to_vec()));
        }
    }
    for peer in &programs.peers {
        for (way, server) in &behind {
            let name = format!("{}, in a session, server over {way}", peer.name());
            let running_server = peer.serve(&programs.folder.join(peer.name()).join(way), server)?;
            subjects.push(Subject::new(name, Rc::new(running_server)).with_call_args(peer.call_args()));
        }
    }
    for subject in &subjects {
        // The first call connects to the server.
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
    show(
        &subjects
            .iter()
            .map(|one| (one.name.as_str(), &one.alone[..], &one.together[..]))
            .collect::<Vec<_>>(),
    );
    one_caller(&subjects);
    Ok(())
}

/// Compares toolhub with each peer: one caller in a session, in front of a server on the official Rust SDK over stdio.
fn one_caller(subjects: &[Subject]) {
    let behind = format!("in a session, server over {RMCP}");
    let rows: Vec<&Subject> = subjects.iter().filter(|one| one.name.ends_with(&behind)).collect();
    let Some((hub, peers)) = rows.split_first() else { return };
    let middle_time = |one: &Subject| median(&one.alone, |turn| turn.p50);
    for peer in peers {
        println!(
            "one caller, server over {RMCP}: {} {:.0} µs, {} {:.0} µs: {:.2}",
            hub.name.split(',').next().unwrap_or_default(),
            middle_time(hub),
            peer.name.split(',').next().unwrap_or_default(),
            middle_time(peer),
            middle_time(hub) / middle_time(peer)
        );
    }
    println!();
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
        for (index, (alone, together)) in turns.iter_mut().enumerate() {
            for (callers, turns) in [(1, alone), (32, together)] {
                let command = if index == 0 { direct() } else { hub()? };
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
fn piped(load: &Path, command: &Command, callers: usize) -> Result<Measurement> {
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
    let output = next()?;
    let used = processor_time(pid).map_or(Duration::ZERO, |now| now.saturating_sub(before));
    ensure!(child.wait()?.success(), "the load failed");
    turn(&output, used)
}

fn show(subjects: &[(&str, &[Measurement], &[Measurement])]) {
    let Some((_, base_alone, base_together)) = subjects.first() else { return };
    let baseline = subjects.iter().find(|(name, ..)| name.starts_with("baseline"));
    let mut table = Table::default();
    let head =
        ["", "1: p50", "p99", "CPU/call", "32: calls/s", "of direct", "p99", "CPU/call", "of baseline"];
    table.row(head.map(str::to_owned));
    let rate = |turns: &[Measurement]| median(turns, |turn| turn.rate);
    let _ = base_alone;
    for (name, alone, together) in subjects {
        let of_baseline = baseline.map_or_else(String::new, |(_, _, baseline)| {
            format!(
                "{:.2}",
                median(together, |turn| turn.processor) / median(baseline, |turn| turn.processor)
            )
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
            of_baseline,
        ]);
    }
    println!("{table}");
}

pub(super) fn median(turns: &[Measurement], of: impl Fn(&Measurement) -> f64) -> f64 {
    median_of(&mut turns.iter().map(of).collect::<Vec<_>>())
}

/// A gateway whose list of many tools is measured.
struct ListSubject<'a> {
    name: &'static str,
    start: Box<dyn Fn() -> Result<RunningServer> + 'a>,
    call_args: Vec<String>,
}

fn with_many_tools(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(TOOLS)?;
    let server = json!({"type": "http", "url": upstream.url});
    let start = Box::new(|| programs.gateway("many", &server));
    let mut listers = vec![ListSubject { name: "toolhub", start, call_args: Vec::new() }];
    for peer in &programs.peers {
        let folder = programs.folder.join(peer.name()).join("many");
        let start = Box::new({
            let server = &server;
            move || peer.serve(&folder, server)
        });
        listers.push(ListSubject { name: peer.name(), start, call_args: peer.call_args() });
    }
    let list = |url: &str, times: usize, call_args: &[String]| -> Result<f64> {
        let mut listing = program(&programs.load);
        let output = run::read(listing.args(["list", url, &times.to_string()]).args(call_args))?;
        let found: Value = serde_json::from_str(output.trim())?;
        found["p50"].as_f64().context("no figure")
    };
    let running_server: Vec<RunningServer> =
        listers.iter().map(|lister| (lister.start)()).collect::<Result<_>>()?;
    // Index 0 is the direct connection.
    let mut times = vec![Vec::new(); 1 + listers.len()];
    for round in 0..=ROUNDS {
        let direct = list(&upstream.url, LIST_CALLS, &[])?;
        let through = listers.iter().zip(&running_server);
        let through =
            through.map(|(lister, running_server)| list(&running_server.url, LIST_CALLS, &lister.call_args));
        let all: Vec<f64> = std::iter::once(Ok(direct)).chain(through).collect::<Result<_>>()?;
        // The first round connects to the server.
        if round > 0 {
            times.iter_mut().zip(all).for_each(|(times, took)| times.push(took));
        }
    }
    let memory: Vec<f64> = running_server
        .iter()
        .map(|running_server| resident(running_server.child.id()))
        .collect::<Result<_>>()?;
    drop(running_server);

    let mut table = Table::default();
    table.row(["", "tools/list", "of direct", "memory", "ready after", "at most"].map(str::to_owned));
    let direct = median_of(&mut times[0]);
    let none = String::new;
    table.row(["direct".to_owned(), format!("{direct:.0} µs"), "1.00".to_owned(), none(), none(), none()]);
    for (index, lister) in listers.iter().enumerate() {
        // A gateway that caches tool lists has them from an earlier start, as in every start but the first.
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            let started = Instant::now();
            let running_server = (lister.start)()?;
            starts.push(started.elapsed().as_secs_f64() * 1e3);
            list(&running_server.url, 1, &lister.call_args)?;
        }
        let (took, ready) = (median_of(&mut times[index + 1]), median_of(&mut starts));
        table.row([
            lister.name.to_owned(),
            format!("{took:.0} µs"),
            format!("{:.2}", took / direct),
            format!("{:.1} MB", memory[index] / 1e6),
            format!("{ready:.0} ms"),
            format!("{:.0} ms", starts[STARTS - 1]),
        ]);
    }
    println!("with {TOOLS} tools; ready: median of {STARTS} starts\n{table}");
    Ok(())
}

/// The median. Sorts `figures`.
pub(super) fn median_of(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CPU time used by a process.
pub(super) fn processor_time(pid: u32) -> Result<Duration> {
    let text =
        fs::read_to_string(format!("/proc/{pid}/stat")).context("only Linux tells what a program used")?;
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // `utime` and `stime`, in ticks of 10 ms.
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
}

/// Resident memory of a process, in bytes.
pub(super) fn resident(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Options> {
        read_arguments(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_select_the_measurement() {
        for (words, mode, installs_peers) in [
            ("", Mode::Calls, false),
            ("--peers", Mode::Calls, true),
            ("--matrix --peers", Mode::Matrix, true),
            ("--record", Mode::Record(300), false),
            ("--record 20", Mode::Record(20), false),
            ("--record --peers", Mode::Record(300), true),
            ("--instructions", Mode::Instructions, false),
        ] {
            let expected = Options { mode, installs_peers, programs: None };
            assert_eq!(read(words).unwrap(), expected, "{words}");
        }
        let options = read("--access --programs /bin").unwrap();
        assert_eq!((options.mode, options.programs), (Mode::Access, Some(PathBuf::from("/bin"))));
        for words in ["--record soon", "--record 0", "--matrix --record", "--matrices", "--programs"] {
            assert!(read(words).is_err(), "{words}");
        }
    }
}
