//! What is done now and then while nobody waits: old calls and results go, and what dead hubs left is marked.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::{history, journal, owner};
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::rows::{cutoff, micros};

/// How long the writer is left alone between two bites.
const BETWEEN: Duration = Duration::from_millis(100);
/// Rows that are taken in one bite, so that whoever comes in between waits for a moment only.
const BITE: i64 = 200;

/// After so many bytes of results what is too much is looked for, whenever that was done last.
const EARLY_BYTES: u64 = 64 << 20;

/// When it is time, and what to do then.
#[derive(Debug)]
pub(super) struct Housekeeping {
    folder: PathBuf,
    owner: OwnerId,
    retention: Retention,
    next: Instant,
    /// Bytes of results that were written since results were last counted.
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

    /// Notes that so many bytes of results were written. After very many of them it is time at once: within the hour they
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
        let results = prune_results(&transaction, now, &self.retention)?;
        let calls = prune_calls(&transaction, cutoff(now, self.retention.calls))?;
        let progress = if results + calls > 0 { Progress::More } else { Progress::Done };
        if matches!(progress, Progress::Done) {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO housekeeping VALUES ('kept_house_at', ?1)")?
                .execute([micros(now)])?;
        }
        transaction.commit()?;
        for dead in dead {
            owner::forget(&self.folder, OwnerId(dead));
        }
        owner::sweep(&self.folder);
        Ok(progress)
    }
}

/// Deletes some results that are too old, or too many; how many. Rows are numbered in the order of time, so the oldest
/// are found without an index of their own.
fn prune_results(connection: &Connection, now: SystemTime, retention: &Retention) -> rusqlite::Result<usize> {
    let too_many = value(connection, "result_bytes")?.unsigned_abs() > retention.result_bytes;
    let before = if too_many { i64::MAX } else { cutoff(now, retention.results) };
    let mut delete = connection.prepare_cached(
        "DELETE FROM results WHERE id IN (SELECT id FROM results ORDER BY id LIMIT ?1) AND began < ?2
         RETURNING bytes",
    )?;
    // Where they are too many, a few at a time: a bite of large ones would take more than it must.
    let bite = if too_many { BITE / 20 } else { BITE };
    let bytes = delete
        .query_map([bite, before], |row| row.get::<_, i64>(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    add_result_bytes(connection, -bytes.iter().sum::<i64>())?;
    Ok(bytes.len())
}

fn prune_calls(connection: &Connection, before: i64) -> rusqlite::Result<usize> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM calls WHERE id IN (SELECT id FROM calls ORDER BY id LIMIT ?1) AND began < ?2
             AND id NOT IN (SELECT id FROM results)",
    )?;
    delete.execute([BITE, before])
}

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
