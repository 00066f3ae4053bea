//! The audit log in the database. The write transaction serialises it: several processes may append.

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params, params_from_iter};
use toolhub_audit::{
    AuditHistory, AuditQuery, AuditRecord, Chain, Checkpoint, CheckpointKind, Evidence, ExportFormat, LogId,
    PendingRecords, PublicKey, StoredBatch, TrustedKeys, Verification,
};
use toolhub_core::BoxFuture;
use toolhub_core::audit::{AuditEvent, AuditLog};
use toolhub_core::call_log::{RecordId, Status};
use toolhub_core::ports::StoreError;

use super::SqliteStore;
use super::counters;
use crate::audit::history::{self, AuditTables, PAGE_BATCHES};
use crate::audit::rows::{
    BATCH_COLUMNS, BatchColumns, CHECKPOINT_COLUMNS, CheckpointColumns, LOG_COLUMNS, OLDEST_BATCHES,
    deletable, matching_batches, next_batches, push_stored_call,
};
use crate::audit::{Auditor, LogState};
use crate::query::{Dialect, Value};
use crate::rows::{COLUMNS, call_of};
use crate::write::Write;

impl AuditLog for SqliteStore {
    fn append(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.auditor.is_none() {
                return Err(crate::audit::auditor::disabled());
            }
            self.write(Write::Audit(RecordId::generate(), Box::new(event))).await.map(drop)
        })
    }
}

impl AuditHistory for SqliteStore {
    fn audit_records(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<AuditRecord>, StoreError>> {
        Box::pin(history::records(self, query))
    }

    fn verify_audit(&self, keys: Option<TrustedKeys>) -> BoxFuture<'_, Result<Verification, StoreError>> {
        Box::pin(history::verify(self, keys))
    }

    fn export_audit<'a>(
        &'a self,
        format: ExportFormat,
        out: &'a mut (dyn std::io::Write + Send),
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(history::export(self, format, out))
    }

    fn audit_key(&self) -> Option<PublicKey> {
        self.auditor.as_ref().map(|auditor| auditor.key().public())
    }
}

impl AuditTables for SqliteStore {
    fn auditor(&self) -> Option<&Auditor> {
        self.auditor.as_deref()
    }

    fn settle_audit(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            self.settle().await?;
            let (folder, own) = (self.folder.clone(), self.owner);
            // Before the journals are replayed: those of stores that die later may contain ends.
            let dead = self.run(move |connection| super::history::dead(connection, &folder, own)).await?;
            self.write(Write::AdoptOrphans(dead)).await.map(drop)
        })
    }

    fn evidence(&self) -> BoxFuture<'_, Result<Evidence, StoreError>> {
        Box::pin(self.run(|connection| {
            // One transaction, so that both fit each other.
            let transaction = connection.transaction()?;
            let state = state(&transaction)?;
            let sql = format!("SELECT {CHECKPOINT_COLUMNS} FROM audit_checkpoints ORDER BY seq");
            let mut select = transaction.prepare_cached(&sql)?;
            let checkpoints =
                select.query_map([], checkpoint_of)?.collect::<rusqlite::Result<Vec<Checkpoint>>>()?;
            let (log, end) = (state.map(|state| state.log), state.map(|state| state.end()));
            Ok(Evidence { log, end, checkpoints, head: None })
        }))
    }

    fn batches_after(&self, sequence: u64) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.run(move |connection| {
            batches(connection, next_batches(Dialect::Sqlite, sequence, PAGE_BATCHES))
        }))
    }

    fn batches_matching(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.run(move |connection| {
            batches(connection, matching_batches(Dialect::Sqlite, &query, PAGE_BATCHES))
        }))
    }
}

fn batches(
    connection: &Connection,
    (sql, values): (String, Vec<Value>),
) -> rusqlite::Result<Vec<StoredBatch>> {
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map(params_from_iter(values), |row| {
        Ok(StoredBatch::from(BatchColumns {
            numbers: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?],
            hashes: [row.get(4)?, row.get(5)?],
            principals: row.get(6)?,
            entries: row.get(7)?,
        }))
    })?;
    rows.collect()
}

fn checkpoint_of(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    Ok(Checkpoint::from(CheckpointColumns {
        sequence: row.get(0)?,
        kind: row.get(1)?,
        log: row.get(2)?,
        hash: row.get(3)?,
        micros: row.get(4)?,
        key: row.get(5)?,
        signature: row.get(6)?,
    }))
}

/// The state of the log; `None` if nothing was ever recorded.
fn state(connection: &Connection) -> rusqlite::Result<Option<LogState>> {
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
    let Some(chain) = deletable(oldest, before) else { return Ok(0) };
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
            call.status = Status::Unknown;
            push_stored_call(records, &call);
        }
        connection
            .prepare_cached("UPDATE calls SET status = 'unknown' WHERE status = 'running' AND owner = ?1")?
            .execute([owner])?;
    }
    Ok(())
}
