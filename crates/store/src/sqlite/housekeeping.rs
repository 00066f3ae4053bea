//! What is done now and then while nobody waits: old calls and results go, and what dead hubs left is marked.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::{history, journal};
use crate::journal::folder;
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::query::delete_results;
use crate::rows::{cutoff, micros};

/// How long the writer is left alone between two bites.
const BETWEEN: Duration = Duration::from_millis(100);
/// Rows that are taken in one bite, so that whoever comes in between waits for a moment only.
const BITE: i64 = 200;
/// Blocks that are taken in one bite.
const BLOCKS_BITE: i64 = 10;

/// After so many bytes of results what is too much is looked for, whenever that was done last.
const EARLY_BYTES: u64 = 64 << 20;

/// When it is time, and what to do then.
#[derive(Debug)]
pub(super) struct Housekeeping {
    folder: PathBuf,
    owner: OwnerId,
    retention: Retention,
    next: Instant,
    /// Bytes of results and blocks that were written since the last round.
    written: u64,
}

enum Progress {
    More,
    Done,
}

impl Housekeeping {
    pub(super) fn new(folder: &Path, owner: OwnerId, retention: Retention) -> Self {
        Self { folder: folder.to_owned(), owner, retention, next: Instant::now(), written: 0 }
    }

    /// Notes that so many bytes of results and blocks were written. After very many of them it is time at once: within the hour they
    /// could fill a disk.
    pub(super) fn wrote(&mut self, bytes: i64) {
        self.written = self.written.saturating_add(bytes.unsigned_abs());
        if self.is_early() {
            self.next = self.next.min(Instant::now());
        }
    }

    /// Whether so much was written that the time of the last round does not count.
    fn is_early(&self) -> bool {
        self.written > EARLY_BYTES.min(self.retention.result_bytes / 4)
    }

    /// When it is time again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Does one bite. What fails is left for the next time.
    pub(super) fn keep(&mut self, connection: &mut Connection) {
        let wait = match self.bite(connection) {
            Ok(Progress::More) => BETWEEN,
            Ok(Progress::Done) | Err(_) => {
                self.written = 0;
                self.retention.every
            }
        };
        self.next = Instant::now() + wait;
    }

    fn bite(&self, connection: &mut Connection) -> rusqlite::Result<Progress> {
        let now = SystemTime::now();
        let last = value(connection, "kept_house_at")?;
        if !self.is_early() && last > cutoff(now, self.retention.every) && last <= micros(now) {
            return Ok(Progress::Done);
        }
        journal::replay(connection, &self.folder, self.owner, &self.retention)?;
        let dead = history::dead(connection, &self.folder, self.owner)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for dead in &dead {
            transaction
                .prepare_cached(
                    "UPDATE calls SET status = 'unknown' WHERE status = 'running' AND owner = ?1",
                )?
                .execute([dead])?;
        }
        let too_large = excess_bytes(&transaction, &self.retention)?;
        let result_bytes = value(&transaction, "result_bytes")?.unsigned_abs();
        let excess = too_large.max(result_bytes.saturating_sub(self.retention.result_bytes));
        let results = prune_results(&transaction, cutoff(now, self.retention.result_age()), excess)?;
        // Calls go for their size only when there is no result left that could go.
        let for_size = too_large > 0 && results == 0;
        let before = if for_size { i64::MAX } else { cutoff(now, self.retention.calls) };
        let calls = prune_calls(&transaction, before)?;
        let progress = if results + calls > 0 { Progress::More } else { Progress::Done };
        if matches!(progress, Progress::Done) {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO housekeeping VALUES ('kept_house_at', ?1)")?
                .execute([micros(now)])?;
        }
        transaction.commit()?;
        for dead in dead {
            folder::forget(&self.folder, OwnerId(dead));
        }
        folder::sweep(&self.folder);
        Ok(progress)
    }
}

/// By how many bytes the database is larger than it may be. Pages that are free are used again and do not count.
fn excess_bytes(connection: &Connection, retention: &Retention) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    let bytes = pages.saturating_mul(pragma("page_size")?);
    Ok(bytes.unsigned_abs().saturating_sub(retention.max_bytes))
}

/// The older of two moments is the first one; a table without rows has none.
fn is_older(first: Option<i64>, second: Option<i64>) -> bool {
    first.is_some_and(|first| second.is_none_or(|second| first <= second))
}

fn oldest(connection: &Connection, select: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(select)?.query_row([], |row| row.get(0)).optional()
}

/// Deletes some results: those that began before `before`, and the oldest until `excess` bytes are gone. Returns how
/// many. Rows are numbered in the order of time, so the oldest are found without an index of their own.
fn prune_results(connection: &Connection, before: i64, excess: u64) -> rusqlite::Result<usize> {
    let single = oldest(connection, "SELECT began FROM results ORDER BY id LIMIT 1")?;
    let block = oldest(connection, "SELECT began FROM block_outputs ORDER BY id LIMIT 1")?;
    let results = (DELETE_RESULTS, BITE);
    let (sql, bite) = if is_older(single, block) { results } else { (DELETE_OUTPUTS, BLOCKS_BITE) };
    let mut delete = connection.prepare_cached(sql)?;
    let excess = i64::try_from(excess).unwrap_or(i64::MAX);
    let bytes = delete
        .query_map([bite, before, excess], |row| row.get::<_, i64>(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    add_result_bytes(connection, -bytes.iter().sum::<i64>())?;
    Ok(bytes.len())
}

const DELETE_RESULTS: &str = delete_results!("results", "id", ["?1", "?2", "?3"]);
const DELETE_OUTPUTS: &str = delete_results!("block_outputs", "id", ["?1", "?2", "?3"]);

/// Deletes some calls that are too old and have no result any more; how many rows.
fn prune_calls(connection: &Connection, before: i64) -> rusqlite::Result<usize> {
    let single = oldest(connection, "SELECT began FROM calls ORDER BY id LIMIT 1")?;
    let block = oldest(connection, "SELECT began_last FROM call_blocks ORDER BY id LIMIT 1")?;
    let mut order = [(DELETE_CALLS, BITE), (DELETE_BLOCKS, BLOCKS_BITE)];
    if !is_older(single, block) {
        order.reverse();
    }
    for (sql, bite) in order {
        let deleted = connection.prepare_cached(sql)?.execute([bite, before])?;
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

/// Notes that so many bytes of results came, or went.
pub(super) fn add_result_bytes(connection: &Connection, bytes: i64) -> rusqlite::Result<()> {
    if bytes != 0 {
        connection
            .prepare_cached(
                "INSERT INTO housekeeping VALUES ('result_bytes', ?1)
                 ON CONFLICT DO UPDATE SET value = value + excluded.value",
            )?
            .execute([bytes])?;
    }
    Ok(())
}

fn value(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    let mut select = connection.prepare_cached("SELECT value FROM housekeeping WHERE name = ?1")?;
    Ok(select.query_row([name], |row| row.get(0)).optional()?.unwrap_or_default())
}
