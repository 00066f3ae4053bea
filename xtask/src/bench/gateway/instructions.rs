//! User-space instructions per call, counted by callgrind. Unlike times, they do not depend on the load of the machine.
//! Instructions executed in the kernel are not counted.
use std::{
    fs,
    io::ErrorKind,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Programs, RunningServer, SESSION, Wrap, access::AccessCases};
use crate::{
    debian,
    run::{self, program},
    table::Table,
};

const CALLERS: &str = "32";
/// Seconds of warm-up, and of the calls that are counted.
const WARM_UP_SECONDS: &str = "6";
const COUNTED_SECONDS: &str = "12";
/// Number of runs of each program; the median is shown.
const ROUNDS: usize = 3;
/// Name of the folder of the measured toolhub.
const COUNTED_HOME: &str = "counted";
/// Timeout for the dump file of callgrind.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn show(programs: &Programs) -> Result<()> {
    if run::read(program("valgrind").arg("--version")).is_err() {
        debian::install("valgrind", "callgrind counts instructions: install valgrind")?;
    }
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let folder = programs.folder.join("instructions");
    let access = AccessCases::start(programs)?;
    let count = |name: &str, calls: &CallsOf<'_>, start: &dyn Fn(Wrap<'_>) -> Result<RunningServer>| {
        let mut counts = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            // Otherwise this round would also read and prune the data stored by an earlier one.
            for stale in [folder.clone(), programs.folder.join(COUNTED_HOME)] {
                fs::remove_dir_all(&stale).or_else(|error| match error.kind() {
                    ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })?;
            }
            fs::create_dir_all(&folder)?;
            let out = folder.join(name);
            let running_server = start(&|command| under_callgrind(&command, &out))?;
            let counting = InstructionCounter { programs, running_server: &running_server, calls, out: &out };
            counts.push(counting.count().with_context(|| name.to_owned())?);
        }
        counts.sort_by(f64::total_cmp);
        counts.get(ROUNDS / 2).copied().context("nothing was counted")
    };
    let session = SESSION.map(str::to_owned);
    let toolhub_with = |settings: &str, token: &str| {
        count("toolhub", &CallsOf { args: &session, token }, &|wrap| {
            Programs::serve(programs.toolhub_with(COUNTED_HOME, &server, settings)?, wrap)
        })
    };
    let toolhub = |settings: &str| toolhub_with(settings, "");
    let plain = CallsOf { args: &[], token: "" };
    let mut counted = vec![
        (
            "baseline (bare pass-through)",
            count("baseline", &plain, &|wrap| programs.baseline_under(&upstream, wrap))?,
        ),
        ("toolhub, in a session", toolhub("")?),
        ("toolhub, in a session, detail = \"sample\"", toolhub("[store]\ndetail = \"sample\"\n")?),
        ("toolhub, in a session, fast_path = false", toolhub("[serve]\nfast_path = false\n")?),
    ];
    for case in access.cases() {
        counted.push((case.title, toolhub_with(&case.settings, &case.token)?));
    }
    for peer in &programs.peers {
        let at = folder.join(peer.name()).with_extension("folder");
        let calls = CallsOf { args: &peer.call_args(), token: "" };
        let found = count(peer.name(), &calls, &|wrap| peer.serve_under(&at, &server, wrap))?;
        counted.push((peer.name(), found));
    }
    let mut table = Table::default();
    table.row(["server over http, 32 callers", "instructions a call", "of baseline"].map(str::to_owned));
    for (name, found) in &counted {
        table.row([(*name).to_owned(), format!("{found:.0}"), format!("{:.2}", found / counted[0].1)]);
    }
    println!("{table}");
    Ok(())
}

/// Wraps `command` to run under callgrind, which writes its counts to files whose names begin with `out`.
fn under_callgrind(command: &Command, out: &Path) -> Command {
    let mut wrapped = program("valgrind");
    wrapped.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", out.display()));
    wrapped.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// How a program is called.
struct CallsOf<'a> {
    /// The arguments of the load generator.
    args: &'a [String],
    /// The key or token; may be empty.
    token: &'a str,
}

struct InstructionCounter<'a> {
    programs: &'a Programs,
    running_server: &'a RunningServer,
    calls: &'a CallsOf<'a>,
    out: &'a Path,
}

impl InstructionCounter<'_> {
    fn count(&self) -> Result<f64> {
        self.load(WARM_UP_SECONDS)?;
        self.callgrind_control("--zero")?;
        let calls = self.load(COUNTED_SECONDS)?;
        self.callgrind_control("--dump")?;
        let (written, since) = (self.out.with_extension("1"), Instant::now());
        loop {
            let text = fs::read_to_string(&written).unwrap_or_default();
            if let Some(sum) = text.lines().find_map(|line| line.strip_prefix("summary: ")) {
                return Ok(sum.trim().parse::<f64>()? / calls);
            }
            if since.elapsed() > WAIT_TIMEOUT {
                bail!("callgrind wrote nothing to {}", written.display());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Calls the program for `seconds` seconds and returns the number of calls.
    fn load(&self, seconds: &str) -> Result<f64> {
        let mut loading = program(&self.programs.load);
        loading.args(["load", &self.running_server.url, CALLERS, seconds]).args(self.calls.args);
        if !self.calls.token.is_empty() {
            loading.env("LOAD_TOKEN", self.calls.token);
        }
        let found: Value = serde_json::from_str(run::read(&mut loading)?.trim())?;
        found["calls"].as_f64().context("no calls")
    }

    fn callgrind_control(&self, what: &str) -> Result<()> {
        run::read(program("callgrind_control").arg(what).arg(self.running_server.child.id().to_string()))
            .map(drop)
    }
}
