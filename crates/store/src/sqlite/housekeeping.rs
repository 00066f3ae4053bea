//! Periodic cleanup: deletes old calls and results, and marks the calls of dead hubs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::sums::Sums;
use super::{SqliteStore, audit, counters, history, journal, responses, state};
use crate::audit::Auditor;
use crate::journal::folder;
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::query::delete_results;
use crate::retention::{MAX_STEP_BLOCKS, MAX_STEP_ROWS, STEP_INTERVAL};
use crate::rows::{cutoff_micros, unix_micros};

/// Number of written result bytes that triggers a cleanup before its scheduled time.
const EARLY_BYTES: u64 = 64 << 20;

/// Schedule and execution of the cleanup.
#[derive(Debug)]
pub(super) struct Housekeeping {
    folder: PathBuf,
    owner: OwnerId,
    retention: Retention,
    auditor: Option<Arc<Auditor>>,
    next: Instant,
    /// Bytes of results and blocks written since the last cleanup.
    written: u64,
}

enum Progress {
    More,
    Done,
}

impl Housekeeping {
    pub(super) fn new(store: &SqliteStore) -> Self {
        Self {
            folder: store.folder.clone(),
            owner: store.owner,
            retention: store.options.retention,
            auditor: store.auditor.clone(),
            next: Instant::now(),
            written: 0,
        }
    }

    /// Replays the journals of dead stores.
    pub(super) fn replay(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        journal::replay(connection, &self.folder, self.owner, &self.retention)
    }

    /// Adds to the number of written bytes of results and blocks. Very many of them trigger an immediate cleanup:
    /// within the hour they could fill a disk.
    pub(super) fn add_written_bytes(&mut self, bytes: i64) {
        self.written = self.written.saturating_add(bytes.unsigned_abs());
        if self.is_early() {
            self.next = self.next.min(Instant::now());
        }
    }

    /// Whether so much was written that the schedule is ignored.
    fn is_early(&self) -> bool {
        self.written > EARLY_BYTES.min(self.retention.result_bytes / 4)
    }

    /// The time of the next step.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Performs one step. Failed work is left for the next time.
    pub(super) fn keep(&mut self, connection: &mut Connection) {
        let wait = match self.step(connection) {
            Ok(Progress::More) => STEP_INTERVAL,
            Ok(Progress::Done) | Err(_) => {
                self.written = 0;
                self.retention.every
            }
        };
        self.next = Instant::now() + wait;
    }

    fn step(&self, connection: &mut Connection) -> rusqlite::Result<Progress> {
        let now = SystemTime::now();
        let last = counters::value(connection, "kept_house_at")?;
        if !self.is_early() && last > cutoff_micros(now, self.retention.every) && last <= unix_micros(now) {
            return Ok(Progress::Done);
        }
        // Before the journals are replayed: those of stores that die later may contain ends.
        let dead = history::dead(connection, &self.folder, self.owner)?;
        self.replay(connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut sums = Sums::default();
        audit::adopt_orphans(&transaction, &dead, &mut sums.audit)?;
        // Without a checkpoint: the writer signs the next one.
        sums.store(&transaction, None)?;
        let too_large = excess_bytes(&transaction, &self.retention)?;
        let result_bytes = counters::value(&transaction, counters::RESULT_BYTES)?.unsigned_abs();
        let excess = too_large.max(result_bytes.saturating_sub(self.retention.result_bytes));
        let results = prune_results(&transaction, cutoff_micros(now, self.retention.result_age()), excess)?;
        // Calls are deleted because of size only if no result is left to delete.
        let for_size = too_large > 0 && results == 0;
        let before = if for_size { i64::MAX } else { cutoff_micros(now, self.retention.calls) };
        let calls = prune_calls(&transaction, before)?;
        let records = match &self.auditor {
            Some(auditor) => audit::prune(&transaction, auditor, cutoff_micros(now, auditor.retention()))?,
            None => 0,
        };
        let state = state::purge(&transaction)?;
        let progress = if results + calls + records + state > 0 { Progress::More } else { Progress::Done };
        if matches!(progress, Progress::Done) {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO housekeeping VALUES ('kept_house_at', ?1)")?
                .execute([unix_micros(now)])?;
        }
        transaction.commit()?;
        for dead in dead {
            folder::forget(&self.folder, OwnerId(dead));
        }
        folder::sweep(&self.folder);
        Ok(progress)
    }
}

/// The number of bytes by which the database exceeds its maximum size. Free pages are reused and do not count, nor do
/// the audit log and the responses, which have their own retention.
fn excess_bytes(connection: &Connection, retention: &Retention) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    let bytes = pages.saturating_mul(pragma("page_size")?);
    let others = counters::value(connection, counters::AUDIT_BYTES)?
        .saturating_add(responses::total_bytes(connection)?);
    Ok(bytes.saturating_sub(others).max(0).unsigned_abs().saturating_sub(retention.max_bytes))
}

/// Whether the first time is the older one; `None` for a table without rows.
fn is_older(first: Option<i64>, second: Option<i64>) -> bool {
    first.is_some_and(|first| second.is_none_or(|second| first <= second))
}

fn oldest(connection: &Connection, select: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(select)?.query_row([], |row| row.get(0)).optional()
}

/// Deletes some results: those that began before `before`, and the oldest until `excess` bytes are freed. Returns
/// their number. Row ids are in the order of time, so that the oldest rows are found without a separate index.
fn prune_results(connection: &Connection, before: i64, excess: u64) -> rusqlite::Result<usize> {
    let single = oldest(connection, "SELECT began FROM results ORDER BY id LIMIT 1")?;
    let block = oldest(connection, "SELECT began FROM block_outputs ORDER BY id LIMIT 1")?;
    let results = (DELETE_RESULTS, MAX_STEP_ROWS);
    let (sql, step) = if is_older(single, block) { results } else { (DELETE_OUTPUTS, MAX_STEP_BLOCKS) };
    let mut delete = connection.prepare_cached(sql)?;
    let excess = i64::try_from(excess).unwrap_or(i64::MAX);
    let bytes = delete
        .query_map([step, before, excess], |row| row.get::<_, i64>(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    counters::add(connection, counters::RESULT_BYTES, -bytes.iter().sum::<i64>())?;
    Ok(bytes.len())
}

const DELETE_RESULTS: &str = delete_results!("results", "id", ["?1", "?2", "?3"]);
const DELETE_OUTPUTS: &str = delete_results!("block_outputs", "id", ["?1", "?2", "?3"]);

/// Deletes some calls that are too old and have no result; returns the number of rows.
fn prune_calls(connection: &Connection, before: i64) -> rusqlite::Result<usize> {
    let single = oldest(connection, "SELECT began FROM calls ORDER BY id LIMIT 1")?;
    let block = oldest(connection, "SELECT began_last FROM call_blocks ORDER BY id LIMIT 1")?;
    let mut order = [(DELETE_CALLS, MAX_STEP_ROWS), (DELETE_BLOCKS, MAX_STEP_BLOCKS)];
    if !is_older(single, block) {
        order.reverse();
    }
    for (sql, step) in order {
        let deleted = connection.prepare_cached(sql)?.execute([step, before])?;
        if deleted > 0 {
            return Ok(deleted);
        }
    }
    Ok(0)
}

const DELETE_CALLS: &str =
    "DELETE FROM calls WHERE id IN (SELECT id FROM calls ORDER BY id LIMIT ?1) AND began < ?2
    AND status <> 'running' AND id NOT IN (SELECT id FROM results)";
const DELETE_BLOCKS: &str =
    "DELETE FROM call_blocks WHERE id IN (SELECT id FROM call_blocks ORDER BY id LIMIT ?1) AND began_last < ?2
    AND id NOT IN (SELECT id FROM block_outputs)";
