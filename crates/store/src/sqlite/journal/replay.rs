//! What a dead hub left in its journal is moved into the database by whoever comes next.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, TransactionBehavior};

use super::line::{self, Entry};
use crate::counted::Counted;
use crate::options::Retention;
use crate::owner::OwnerId;
use crate::rows::{cutoff, from_micros, micros};
use crate::sqlite::calls::{self, Finished};
use crate::sqlite::{housekeeping, owner, statistics};

/// Moves what dead owners left; nothing where there is nothing. May be done by two at once, and twice.
pub(in crate::sqlite) fn replay(
    connection: &mut Connection,
    folder: &Path,
    own: OwnerId,
    retention: &Retention,
) -> rusqlite::Result<()> {
    let mut left: Vec<(OwnerId, u32, PathBuf)> = owner::journals(folder);
    left.retain(|(id, ..)| *id != own);
    left.retain(|(id, ..)| owner::is_dead(folder, *id));
    left.sort_by_key(|(id, count, _)| (id.0, *count));
    for (id, _, path) in left {
        // What another has read and removed meanwhile is in the database.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        take(connection, &String::from_utf8_lossy(&bytes), id, retention)?;
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

fn take(
    connection: &mut Connection,
    text: &str,
    owner: OwnerId,
    retention: &Retention,
) -> rusqlite::Result<()> {
    // What is that old was in the database and has gone since; it must not be counted again.
    let too_old = cutoff(SystemTime::now(), retention.calls);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut sums, mut bytes) = (Counted::default(), 0);
    for entry in text.lines().filter_map(line::read) {
        match entry {
            Entry::Begun(start) if micros(start.at) < too_old => {}
            Entry::Begun(start) => drop(calls::begin(&transaction, &start, owner)?),
            Entry::Ended(end) => {
                if let Finished::Now { began, kept } = calls::finish(&transaction, &end)? {
                    sums.count(&end.attempts, from_micros(began));
                    bytes += kept;
                }
            }
        }
    }
    statistics::add(&transaction, &sums)?;
    housekeeping::add_result_bytes(&transaction, bytes)?;
    transaction.commit()
}
