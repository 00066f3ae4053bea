//! Writes the audit log. The write transaction serialises it: several processes may append.

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use toolhub_audit::{Chain, Checkpoint, CheckpointKind, LogId, PendingRecords};
use toolhub_core::call_log::{CallStatus, RecordId};

use super::counters;
use crate::audit::rows::{
    BATCH_COLUMNS, CHECKPOINT_COLUMNS, LOG_COLUMNS, OLDEST_BATCHES, deletable_chain, push_stored_call,
};
use crate::audit::{Auditor, LogState};
use crate::rows::{COLUMNS, call_of};

/// The state of the log; `None` if nothing was ever recorded.
pub(super) fn state(connection: &Connection) -> rusqlite::Result<Option<LogState>> {
    let mut select =
        connection.prepare_cached(&format!("SELECT {LOG_COLUMNS} FROM audit_log WHERE id = 1"))?;
    let columns =
        select.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)));
    Ok(columns.optional()?.map(LogState::of))
}

/// Appends records to the log, and a checkpoint if it is due and there is a key. Returns the checkpoint.
pub(super) fn append(
    connection: &Connection,
    records: &PendingRecords,
    auditor: Option<&Auditor>,
) -> rusqlite::Result<Option<Checkpoint>> {
    if records.is_empty() {
        return Ok(None);
    }
    let mut state = match state(connection)? {
        Some(state) => state,
        None => LogState::new(LogId::generate()),
    };
    let Some(batch) = state.chain.extend(records) else { return Ok(None) };
    let sql = format!("INSERT INTO audit_batches ({BATCH_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    let values = params![
        batch.first_sequence.cast_signed(),
        batch.last_sequence.cast_signed(),
        batch.first_micros.cast_signed(),
        batch.last_micros.cast_signed(),
        batch.previous_hash.0,
        batch.last_hash.0,
        batch.principals,
        batch.entries,
    ];
    connection.prepare_cached(&sql)?.execute(values).map_err(inconsistent)?;
    counters::add(connection, counters::AUDIT_BYTES, batch.entries.len() as i64)?;
    let auditor = auditor.filter(|_| state.is_checkpoint_due());
    let checkpoint = auditor.map(|auditor| auditor.sign(state.log, CheckpointKind::Progress, state.chain));
    store_state(connection, &mut state, checkpoint.as_ref())?;
    Ok(checkpoint)
}

/// The error of a log that does not fit its stated end. It is no error of the data: what was to be appended must not be
/// dropped.
fn inconsistent(error: rusqlite::Error) -> rusqlite::Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => rusqlite::Error::UserFunctionError(
            "the audit log was changed: records follow the end that it states; verify it".into(),
        ),
        _ => error,
    }
}

/// Stores the state of the log, with a new checkpoint if there is one.
fn store_state(
    connection: &Connection,
    state: &mut LogState,
    checkpoint: Option<&Checkpoint>,
) -> rusqlite::Result<()> {
    if let Some(checkpoint) = checkpoint {
        insert_checkpoint(connection, checkpoint)?;
        state.set_checkpoint(checkpoint);
    }
    let sql = format!("INSERT OR REPLACE INTO audit_log (id, {LOG_COLUMNS}) VALUES (1, ?1, ?2, ?3, ?4, ?5)");
    connection.prepare_cached(&sql)?.execute(params![
        state.log.0,
        state.chain.sequence.cast_signed(),
        state.chain.hash.0,
        state.checkpoint_sequence.cast_signed(),
        state.checkpoint_micros.cast_signed(),
    ])?;
    Ok(())
}

fn insert_checkpoint(connection: &Connection, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO audit_checkpoints ({CHECKPOINT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        checkpoint.sequence.cast_signed(),
        checkpoint.kind.name(),
        checkpoint.log.0,
        checkpoint.hash.0,
        checkpoint.micros.cast_signed(),
        checkpoint.key,
        checkpoint.signature,
    ])?;
    Ok(())
}

/// Signs a checkpoint if there are records without one.
pub(super) fn sign(connection: &Connection, auditor: &Auditor) -> rusqlite::Result<Option<Checkpoint>> {
    let Some(mut state) = state(connection)?.filter(LogState::is_unsigned) else { return Ok(None) };
    let checkpoint = auditor.sign(state.log, CheckpointKind::Progress, state.chain);
    store_state(connection, &mut state, Some(&checkpoint))?;
    Ok(Some(checkpoint))
}

/// Deletes some batches all of whose records began before a time, and signs where the log begins now. Returns their
/// number.
pub(super) fn prune(connection: &Connection, auditor: &Auditor, before: i64) -> rusqlite::Result<usize> {
    let Some(state) = state(connection)? else { return Ok(0) };
    let mut select = connection.prepare_cached(OLDEST_BATCHES)?;
    let oldest = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let Some(chain) = deletable_chain(oldest, before) else { return Ok(0) };
    let base: Checkpoint = auditor.sign(state.log, CheckpointKind::Base, chain);
    let Chain { sequence, .. } = chain;
    let mut delete = connection
        .prepare_cached("DELETE FROM audit_batches WHERE last_seq <= ?1 RETURNING length(entries)")?;
    let bytes = delete
        .query_map([sequence.cast_signed()], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    counters::add(connection, counters::AUDIT_BYTES, -bytes.iter().sum::<i64>())?;
    connection
        .prepare_cached("DELETE FROM audit_checkpoints WHERE seq <= ?1")?
        .execute([sequence.cast_signed()])?;
    insert_checkpoint(connection, &base)?;
    Ok(bytes.len())
}

/// Adds the call of a row that belongs in the log, with its current status.
pub(super) fn push_row(
    connection: &Connection,
    record: &RecordId,
    records: &mut PendingRecords,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT {} FROM calls WHERE record = ?1", COLUMNS.join(", "));
    let call = connection.prepare_cached(&sql)?.query_row([record.as_str()], |row| call_of(row))?;
    push_stored_call(records, &call);
    Ok(())
}

/// Marks the running calls of dead stores as unknown, and adds those that belong in the log.
pub(super) fn adopt_orphans(
    connection: &Connection,
    dead: &[i64],
    records: &mut PendingRecords,
) -> rusqlite::Result<()> {
    for owner in dead {
        let sql = format!(
            "SELECT {} FROM calls WHERE status = 'running' AND owner = ?1 AND audit <> 0 ORDER BY record",
            COLUMNS.join(", ")
        );
        let mut select = connection.prepare_cached(&sql)?;
        for call in select.query_map([owner], |row| call_of(row))? {
            let mut call = call?;
            call.status = CallStatus::Unknown;
            push_stored_call(records, &call);
        }
        connection
            .prepare_cached("UPDATE calls SET status = 'unknown' WHERE status = 'running' AND owner = ?1")?
            .execute([owner])?;
    }
    Ok(())
}
