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

use super::{Programs, RunningServer, history, resident};
use crate::{run::program, table::Table};

/// Default duration of the load.
pub(super) const SECONDS: u64 = 300;
const CALLERS: &str = "32";
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
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
struct ResourceUsage {
    start_mib: f64,
    max_mib: f64,
    end_mib: f64,
    max_journal_mib: f64,
}

/// The results of the load and of the history.
struct RecordReport {
    calls: u64,
    stored: u64,
    /// Number of `stored` calls that have their results.
    with_results: u64,
    rate: f64,
    longest: Duration,
    drain: Duration,
    disk_mib: f64,
    resources: ResourceUsage,
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

fn measure(programs: &Programs, seconds: u64) -> Result<RecordReport> {
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let hub = programs.gateway_with("record", &server, SETTINGS)?;
    let home = programs.folder.join("record/home");
    // The first calls connect to the server, and are stored before the load begins.
    let first = calls_of(&wait_for_report(load(programs, &hub, 1)?)?)?;
    let before = history::wait_until_stored(&home)?;
    ensure!(before == first, "{before} of the first {first} calls are on record");
    let mut loading = load(programs, &hub, seconds)?;
    let mut resources =
        ResourceUsage { start_mib: resident(hub.child.id())? / MIB, ..ResourceUsage::default() };
    while loading.try_wait()?.is_none() {
        resources.max_mib = resources.max_mib.max(resident(hub.child.id())? / MIB);
        resources.max_journal_mib = resources.max_journal_mib.max(folder_bytes(&home.join("running")) / MIB);
        thread::sleep(SAMPLE_INTERVAL);
    }
    let report = wait_for_report(loading)?;
    let calls = calls_of(&report)?;
    let since = Instant::now();
    let mut stored = history::count(&home)? - before;
    while stored < calls && since.elapsed() < MAX_DRAIN {
        thread::sleep(Duration::from_millis(200));
        stored = history::count(&home)? - before;
    }
    let drain = since.elapsed();
    // Waits until the count is stable: more stored calls than made would be an error as well.
    let stored = history::wait_until_stored(&home)? - before;
    let with_results = history::count_results(&home)? - before;
    resources.end_mib = resident(hub.child.id())? / MIB;
    Ok(RecordReport {
        calls,
        stored,
        with_results,
        rate: report["rate"].as_f64().context("no rate")?,
        longest: Duration::from_secs_f64(report["max"].as_f64().context("no longest call")? / 1e6),
        drain,
        disk_mib: folder_bytes(&home) / MIB,
        resources,
    })
}

impl RecordReport {
    fn table(&self) -> Table {
        let resources = &self.resources;
        let mut table = Table::default();
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("calls served", format!("{} ({:.0} a second)", self.calls, self.rate));
        row("calls in the history", self.share(self.stored));
        row("with their results", self.share(self.with_results));
        row("longest call", format!("{:.0} ms", self.longest.as_secs_f64() * 1e3));
        row("until the database had all", format!("{:.1} s", self.drain.as_secs_f64()));
        row("journals, at most", format!("{:.1} MiB", resources.max_journal_mib));
        row(
            "memory at start, most, end",
            format!("{:.1}, {:.1}, {:.1} MiB", resources.start_mib, resources.max_mib, resources.end_mib),
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
            self.resources.max_mib <= MAX_RESIDENT_MIB,
            format!("{:.1} MiB of memory, more than {MAX_RESIDENT_MIB}", self.resources.max_mib),
        );
        check(
            self.resources.max_journal_mib <= MAX_JOURNAL_MIB,
            format!("{:.1} MiB of journals, more than {MAX_JOURNAL_MIB}", self.resources.max_journal_mib),
        );
        check(self.drain < MAX_DRAIN, format!("the database had not all calls after {MAX_DRAIN:?}"));
        check(self.longest <= MAX_CALL, format!("a call took {:?}, longer than {MAX_CALL:?}", self.longest));
        faults
    }
}

fn load(programs: &Programs, hub: &RunningServer, seconds: u64) -> Result<Child> {
    let mut loading = program(&programs.load);
    loading.args(["load", &hub.url, CALLERS, &seconds.to_string()]);
    Ok(loading.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?)
}

/// Waits for the load and returns its JSON report.
fn wait_for_report(mut loading: Child) -> Result<Value> {
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

    fn found() -> RecordReport {
        RecordReport {
            calls: 1000,
            stored: 1000,
            with_results: 1000,
            rate: 100.0,
            longest: Duration::from_millis(20),
            drain: Duration::from_millis(200),
            disk_mib: 1.0,
            resources: ResourceUsage { start_mib: 20.0, max_mib: 60.0, end_mib: 50.0, max_journal_mib: 8.0 },
        }
    }

    #[test]
    fn reports_missing_calls_and_exceeded_limits() {
        assert_eq!(found().faults(), Vec::<String>::new());
        let more = |resources: ResourceUsage| RecordReport { resources, ..found() };
        let wrong = [
            RecordReport { stored: 999, with_results: 999, ..found() },
            RecordReport { stored: 1001, with_results: 1001, ..found() },
            RecordReport { with_results: 999, ..found() },
            RecordReport { longest: Duration::from_secs(7), ..found() },
            RecordReport { drain: MAX_DRAIN, ..found() },
            more(ResourceUsage { max_mib: MAX_RESIDENT_MIB + 1.0, ..ResourceUsage::default() }),
            more(ResourceUsage { max_journal_mib: MAX_JOURNAL_MIB + 1.0, ..ResourceUsage::default() }),
        ];
        for one in wrong {
            assert_eq!(one.faults().len(), 1, "{:?}", one.faults());
        }
    }
}
