//! Checks that the history is complete at full load: 32 callers call a local server for minutes, every call must be stored
//! with its details, and the stored calls are counted afterwards. Also checks the limits of memory and of the journals.
use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Programs, Served, history, resident};
use crate::{run::program, table::Table};

/// Default duration of the load.
pub(super) const SECONDS: u64 = 300;
const CALLERS: &str = "32";
const EVERY: Duration = Duration::from_secs(1);
/// Size limits so high that no call is deleted before it is counted.
const SETTINGS: &str = "[store]\ndetail = \"all\"\nmax_size = \"64GiB\"\nresult_bytes = 64000000000\n";

const MIB: f64 = 1024.0 * 1024.0;
/// Maximum resident memory of the gateway, of which the queue for the database takes at most 32 MiB.
const MAX_RESIDENT_MIB: f64 = 128.0;
/// Maximum size of the journals: calls that are not yet in the database, and the current file of each worker.
const MAX_JOURNAL_MIB: f64 = 64.0;
/// Maximum time from the last response until every call is in the database.
const MAX_DRAIN: Duration = Duration::from_secs(60);
/// Maximum duration of a call, including its wait for the database (`ARCHITECTURE.md`, finished calls).
const MAX_CALL: Duration = Duration::from_secs(6);

/// Memory and journal sizes during the load.
#[derive(Default)]
struct Seen {
    start_mib: f64,
    max_mib: f64,
    end_mib: f64,
    max_journal_mib: f64,
}

/// The results of the load and of the history.
struct Found {
    calls: u64,
    stored: u64,
    /// Number of `stored` calls that have their results.
    with_results: u64,
    rate: f64,
    longest: Duration,
    drain: Duration,
    disk_mib: f64,
    seen: Seen,
}

pub(super) fn show(programs: &Programs, seconds: u64) -> Result<()> {
    println!(
        "{CALLERS} callers for {seconds} s, server on loopback, requests that stand alone, detail = \"all\"\n"
    );
    let found = measure(programs, seconds)?;
    println!("{}", found.table());
    let faults = found.faults();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    println!("every call is in the history with its details");
    Ok(())
}

fn measure(programs: &Programs, seconds: u64) -> Result<Found> {
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let hub = programs.gateway_with("record", &server, SETTINGS)?;
    let home = programs.folder.join("record/home");
    // The first calls connect to the server, and are stored before the load begins.
    let first = calls_of(&finished(load(programs, &hub, 1)?)?)?;
    let before = history::settled(&home)?;
    ensure!(before == first, "{before} of the first {first} calls are on record");
    let mut loading = load(programs, &hub, seconds)?;
    let mut seen = Seen { start_mib: resident(hub.child.id())? / MIB, ..Seen::default() };
    while loading.try_wait()?.is_none() {
        seen.max_mib = seen.max_mib.max(resident(hub.child.id())? / MIB);
        seen.max_journal_mib = seen.max_journal_mib.max(folder_bytes(&home.join("running")) / MIB);
        thread::sleep(EVERY);
    }
    let report = finished(loading)?;
    let calls = calls_of(&report)?;
    let since = Instant::now();
    let mut stored = history::count(&home)? - before;
    while stored < calls && since.elapsed() < MAX_DRAIN {
        thread::sleep(Duration::from_millis(200));
        stored = history::count(&home)? - before;
    }
    let drain = since.elapsed();
    // Waits until the count is stable: more stored calls than made would be an error as well.
    let stored = history::settled(&home)? - before;
    let with_results = history::count_results(&home)? - before;
    seen.end_mib = resident(hub.child.id())? / MIB;
    Ok(Found {
        calls,
        stored,
        with_results,
        rate: report["rate"].as_f64().context("no rate")?,
        longest: Duration::from_secs_f64(report["max"].as_f64().context("no longest call")? / 1e6),
        drain,
        disk_mib: folder_bytes(&home) / MIB,
        seen,
    })
}

impl Found {
    fn table(&self) -> Table {
        let seen = &self.seen;
        let mut table = Table::default();
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("calls served", format!("{} ({:.0} a second)", self.calls, self.rate));
        row("calls in the history", self.share(self.stored));
        row("with their results", self.share(self.with_results));
        row("longest call", format!("{:.0} ms", self.longest.as_secs_f64() * 1e3));
        row("until the database had all", format!("{:.1} s", self.drain.as_secs_f64()));
        row("journals, at most", format!("{:.1} MiB", seen.max_journal_mib));
        row(
            "memory at start, most, end",
            format!("{:.1}, {:.1}, {:.1} MiB", seen.start_mib, seen.max_mib, seen.end_mib),
        );
        let bytes = self.disk_mib * MIB / self.calls.max(1) as f64;
        row("on disk", format!("{:.1} MiB, {bytes:.0} bytes a call", self.disk_mib));
        table
    }

    fn share(&self, part: u64) -> String {
        format!("{part} ({:.3} %)", part as f64 * 100.0 / self.calls.max(1) as f64)
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |is_right: bool, what: String| {
            if !is_right {
                faults.push(what);
            }
        };
        check(
            self.stored == self.calls,
            format!("{} calls were served, {} are in the history", self.calls, self.stored),
        );
        check(
            self.with_results == self.stored,
            format!("{} calls are in the history, {} with their results", self.stored, self.with_results),
        );
        check(
            self.seen.max_mib <= MAX_RESIDENT_MIB,
            format!("{:.1} MiB of memory, more than {MAX_RESIDENT_MIB}", self.seen.max_mib),
        );
        check(
            self.seen.max_journal_mib <= MAX_JOURNAL_MIB,
            format!("{:.1} MiB of journals, more than {MAX_JOURNAL_MIB}", self.seen.max_journal_mib),
        );
        check(self.drain < MAX_DRAIN, format!("the database had not all calls after {MAX_DRAIN:?}"));
        check(self.longest <= MAX_CALL, format!("a call took {:?}, longer than {MAX_CALL:?}", self.longest));
        faults
    }
}

fn load(programs: &Programs, hub: &Served, seconds: u64) -> Result<Child> {
    let mut loading = program(&programs.load);
    loading.args(["load", &hub.url, CALLERS, &seconds.to_string()]);
    Ok(loading.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?)
}

/// Waits for the load and returns its JSON report.
fn finished(mut loading: Child) -> Result<Value> {
    let mut text = String::new();
    loading.stdout.take().context("no stdout")?.read_to_string(&mut text)?;
    if !loading.wait()?.success() {
        bail!("the load failed: {text}");
    }
    Ok(serde_json::from_str(text.trim())?)
}

fn calls_of(report: &Value) -> Result<u64> {
    report["calls"].as_u64().context("no calls")
}

/// Total size of all files under a folder. A file removed in the meantime counts as 0.
fn folder_bytes(folder: &Path) -> f64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
        Ok(data) => data.len() as f64,
        Err(_) => 0.0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        Found {
            calls: 1000,
            stored: 1000,
            with_results: 1000,
            rate: 100.0,
            longest: Duration::from_millis(20),
            drain: Duration::from_millis(200),
            disk_mib: 1.0,
            seen: Seen { start_mib: 20.0, max_mib: 60.0, end_mib: 50.0, max_journal_mib: 8.0 },
        }
    }

    #[test]
    fn a_missing_call_and_every_exceeded_limit_is_a_fault() {
        assert_eq!(found().faults(), Vec::<String>::new());
        let more = |seen: Seen| Found { seen, ..found() };
        let wrong = [
            Found { stored: 999, with_results: 999, ..found() },
            Found { stored: 1001, with_results: 1001, ..found() },
            Found { with_results: 999, ..found() },
            Found { longest: Duration::from_secs(7), ..found() },
            Found { drain: MAX_DRAIN, ..found() },
            more(Seen { max_mib: MAX_RESIDENT_MIB + 1.0, ..Seen::default() }),
            more(Seen { max_journal_mib: MAX_JOURNAL_MIB + 1.0, ..Seen::default() }),
        ];
        for one in wrong {
            assert_eq!(one.faults().len(), 1, "{:?}", one.faults());
        }
    }
}
