//! Event streams: how soon changes arrive, what a stream and a page cost in memory, and calls through the gateway beside them.
use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::http::{Browser, Connection, EventStream};
use crate::{
    bench::{
        gateway::{Measurement, Programs, ROUNDS, RunningServer, median, resident},
        samples::{milliseconds, percentile},
    },
    table::Table,
};

const STREAMS: usize = 200;
const CHANGES: usize = 10;
const PAGES: usize = 50;
/// The pages that are opened, in turn.
const OPENED: [&str; 5] =
    ["/console/", "/console/tools", "/console/calls", "/console/servers/up", "/console/tools/echo_1"];
/// Number of times that each page is loaded before memory is compared.
const WARM_UPS: usize = 10;
/// How often memory is read until it stays the same.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of times that memory is read.
const MAX_MEMORY_READS: usize = 30;
/// Maximum difference of memory that stays the same, in bytes.
const SAME_MEMORY: f64 = 64.0 * 1024.0;

const MIB: f64 = 1024.0 * 1024.0;

/// Many streams, to which some changes are announced. Every stream must announce each of them.
pub(super) fn events(hub: &RunningServer, browser: &Browser) -> Result<Table> {
    let before = steady_memory(hub)?;
    let mut streams: Vec<EventStream<'_>> = follow(browser, STREAMS)?;
    let with_streams = steady_memory(hub)?;
    let mut connection = browser.connect()?;
    let mut times = Vec::with_capacity(CHANGES);
    for change in 0..CHANGES {
        let started = Instant::now();
        make_call(&mut connection)?;
        for (number, stream) in streams.iter_mut().enumerate() {
            let context = || format!("stream {number} did not announce change {change}");
            stream.next_event(|data| data.contains("\"calls\"")).with_context(context)?;
        }
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let after_changes = steady_memory(hub)?;
    drop(streams);
    let closed = steady_memory(hub)?;

    let mut table = Table::default();
    let mut row = |name: String, value: String| table.row([name, value]);
    row(format!("{STREAMS} event streams, {CHANGES} changes"), "every stream announced every change".into());
    row(
        "from a call until the last stream has announced it".into(),
        format!(
            "median {} ms, at most {} ms",
            milliseconds(percentile(&times, 50)),
            milliseconds(percentile(&times, 100))
        ),
    );
    row("memory before".into(), mebibytes(before));
    row("with the streams".into(), mebibytes(with_streams));
    row("a stream".into(), format!("{:.1} KiB", (with_streams - before) / STREAMS as f64 / 1024.0));
    row("after the changes".into(), mebibytes(after_changes));
    row("after all are closed".into(), mebibytes(closed));
    Ok(table)
}

/// Pages that stay open, each with its connection and its stream.
pub(super) fn open_pages(hub: &RunningServer, browser: &Browser) -> Result<Table> {
    let mut connection = browser.connect()?;
    for path in OPENED.iter().cycle().take(WARM_UPS * OPENED.len()) {
        connection.get(path)?;
    }
    let before = steady_memory(hub)?;
    let mut tabs = Vec::with_capacity(PAGES);
    for path in OPENED.iter().cycle().take(PAGES) {
        let mut connection = browser.connect()?;
        ensure!(connection.get(path)?.status == 200, "{path} cannot be opened");
        tabs.push((connection, browser.follow()?));
    }
    let open = steady_memory(hub)?;
    drop(tabs);
    let mut table = Table::default();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("memory before", mebibytes(before));
    row(&format!("with {PAGES} open pages"), mebibytes(open));
    row("a page", format!("{:.1} KiB", (open - before) / PAGES as f64 / 1024.0));
    Ok(table)
}

/// Calls through the gateway without and with open pages, in turn.
pub(super) fn beside_calls(programs: &Programs, hub: &RunningServer, browser: &Browser) -> Result<Table> {
    const CALLERS: [usize; 2] = [1, 32];
    let mut turns: [[Vec<Measurement>; 2]; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (streams, by_callers) in [0, PAGES].into_iter().zip(&mut turns) {
            let open = follow(browser, streams)?;
            for (callers, turns) in CALLERS.into_iter().zip(by_callers) {
                turns.push(programs.call(hub, callers)?);
            }
            drop(open);
        }
    }
    let mut table = Table::default();
    let head = ["calls through the gateway", "1: p50", "CPU/call", "32: calls/s", "CPU/call"];
    table.row(head.map(str::to_owned));
    for (streams, [alone, together]) in [0, PAGES].into_iter().zip(&turns) {
        table.row([
            format!("with {streams} open pages"),
            format!("{:.0} µs", median(alone, |turn| turn.p50)),
            format!("{:.1} µs", median(alone, |turn| turn.processor)),
            format!("{:.0}", median(together, |turn| turn.rate)),
            format!("{:.1} µs", median(together, |turn| turn.processor)),
        ]);
    }
    Ok(table)
}

fn follow(browser: &Browser, streams: usize) -> Result<Vec<EventStream<'_>>> {
    (0..streams).map(|_| browser.follow()).collect()
}

/// A change of the hub: one call, which enters the history.
pub(super) fn make_call(connection: &mut Connection<'_>) -> Result<()> {
    let body = r#"{"arguments":{"text":"hello","count":3}}"#;
    let response = connection.post("/api/v1/tools/echo_0:call", body)?;
    ensure!(response.status == 200, "the call failed: {}", response.text());
    Ok(())
}

/// The memory of the hub when it stays the same: what is freed is given back after some seconds.
fn steady_memory(hub: &RunningServer) -> Result<f64> {
    let mut before = resident(hub.child.id())?;
    for _ in 0..MAX_MEMORY_READS {
        thread::sleep(MEMORY_INTERVAL);
        let now = resident(hub.child.id())?;
        if (now - before).abs() < SAME_MEMORY {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / MIB)
}
