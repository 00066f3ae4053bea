//! Replays the journals of dead stores: moves their calls into the database when a store is opened.

use std::collections::HashSet;
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, TransactionBehavior};
use toolhub_core::call_log::RecordId;

use super::line::{self, JournalEntry};
use crate::blocks::frame;
use crate::journal::JournalKind;
use crate::journal::folder::{JournalFile, journals_of_dead_stores};
use crate::options::Retention;
use crate::owner::{CallOrigin, OwnerId};
use crate::rows::{cutoff_micros, unix_micros};
use crate::sqlite::sums::Sums;
use crate::sqlite::{blocks, calls};
use crate::write::FinishedCall;

/// Moves the journal entries of dead stores. Idempotent, also if two stores do it at the same time: each call counts
/// once.
pub(in crate::sqlite) fn replay(
    connection: &mut Connection,
    folder: &Path,
    owner: OwnerId,
    retention: &Retention,
) -> rusqlite::Result<()> {
    for kind in [JournalKind::Intents, JournalKind::Calls] {
        for file in journals_of_dead_stores(folder, owner, kind) {
            // A missing file was replayed by another store.
            let Ok(bytes) = std::fs::read(&file.path) else { continue };
            match kind {
                JournalKind::Intents => {
                    replay_intents(connection, &String::from_utf8_lossy(&bytes), &file, retention)?;
                }
                JournalKind::Calls => replay_calls(connection, &bytes, &file, retention)?,
            }
            let _ = std::fs::remove_file(&file.path);
        }
    }
    Ok(())
}

fn replay_intents(
    connection: &mut Connection,
    text: &str,
    file: &JournalFile,
    retention: &Retention,
) -> rusqlite::Result<()> {
    // Older calls were in the database and have been deleted; they must not be counted again.
    let too_old = cutoff_micros(SystemTime::now(), retention.calls);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let entries: Vec<JournalEntry> = text.lines().filter_map(line::read).collect();
    let first = entries.iter().map(JournalEntry::record).min();
    let stored: HashSet<RecordId> = match first {
        Some(first) => blocks::stored_intents(&transaction, file.owner, first)?,
        None => HashSet::new(),
    };
    let mut sums = Sums::default();
    for entry in entries {
        match entry {
            entry if stored.contains(entry.record()) => {}
            JournalEntry::Begun { start, .. } if unix_micros(start.at) < too_old => {}
            JournalEntry::Begun { start, audit } => {
                calls::begin(&transaction, &start, CallOrigin { owner: file.owner, audit })?;
            }
            JournalEntry::Ended(end) => {
                calls::finish(&transaction, &end, &mut sums)?;
            }
        }
    }
    // Without a checkpoint: this process may have no key, and a writer signs the next one.
    sums.store(&transaction, None)?;
    transaction.commit()
}

fn replay_calls(
    connection: &mut Connection,
    bytes: &[u8],
    file: &JournalFile,
    retention: &Retention,
) -> rusqlite::Result<()> {
    let too_old = cutoff_micros(SystemTime::now(), retention.calls);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let stored = blocks::stored_ranges(&transaction, file.owner, file.number)?;
    let mut sums = Sums::default();
    for frame in frame::read(bytes) {
        let is_stored = stored.iter().any(|(start, end)| (*start..*end).contains(&frame.offset));
        if is_stored || unix_micros(frame.start.at) < too_old {
            continue;
        }
        let origin = CallOrigin { owner: file.owner, audit: frame.audit };
        let note = FinishedCall { start: frame.start, end: frame.end };
        calls::note(&transaction, &note, origin, &mut sums)?;
    }
    sums.store(&transaction, None)?;
    transaction.commit()
}
