//! Writes the audit log. Transactions of several hubs are serialised by the lock of the row of `audit_log`, which each
//! takes as its last lock.

use futures_util::future::{try_join, try_join4};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};
use toolhub_audit::{Chain, Checkpoint, CheckpointKind, LogId, PendingRecords};
use toolhub_core::audit::AuditEvent;
use toolhub_core::call_log::{CallRecord, RecordId};

use crate::audit::rows::{
    BATCH_COLUMNS, CHECKPOINT_COLUMNS, LOG_COLUMNS, OLDEST_BATCHES, deletable_chain, push_stored_call,
};
use crate::audit::{Auditor, LogState};
use crate::rows::{COLUMNS, Columns as _, call_of, unix_micros};

/// The table whose constraint fails if records follow the stated end of the log.
pub(super) const BATCHES_TABLE: &str = "audit_batches";

/// The state of the log in a row.
pub(super) fn state_of(row: &Row) -> Result<LogState, Error> {
    let columns = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    Ok(LogState::of(columns))
}

/// The prepared statements.
pub(super) struct Statements {
    lock: Statement,
    create: Statement,
    insert: Statement,
    update: Statement,
    checkpoint: Statement,
    claim: Statement,
    ended: Statement,
    adopt: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let columns = COLUMNS.join(", ");
        let lock = format!("SELECT {LOG_COLUMNS} FROM audit_log WHERE id = 1 FOR UPDATE");
        let create = format!(
            "INSERT INTO audit_log (id, {LOG_COLUMNS}) VALUES (1, $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
        );
        let insert =
            format!("INSERT INTO {BATCHES_TABLE} ({BATCH_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
        let update = "UPDATE audit_log SET seq = $1, hash = $2, checkpoint_seq = $3, checkpoint_at = $4";
        let checkpoint = format!(
            "INSERT INTO audit_checkpoints ({CHECKPOINT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT DO NOTHING"
        );
        let claim = "INSERT INTO audit_keys VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let ended = format!(
            "SELECT {columns} FROM calls WHERE record = ANY($1::text[]) AND audit <> 0 ORDER BY record"
        );
        let adopt = format!(
            "UPDATE calls SET status = 'unknown' WHERE status = 'running' AND owner = ANY($1::bigint[])
             RETURNING {columns}, audit"
        );
        let prepare = |sql| client.prepare(sql);
        let ((lock, create, insert, update), (checkpoint, claim, ended, adopt)) = try_join(
            try_join4(prepare(&lock), prepare(&create), prepare(&insert), prepare(update)),
            try_join4(prepare(&checkpoint), prepare(claim), prepare(&ended), prepare(&adopt)),
        )
        .await?;
        Ok(Self { lock, create, insert, update, checkpoint, claim, ended, adopt })
    }
}

/// Writes the log inside the transactions of one connection.
pub(super) struct AuditWriter<'a> {
    pub(super) client: &'a Client,
    pub(super) statements: &'a Statements,
    pub(super) auditor: Option<&'a Auditor>,
}

/// Locks the log if there is one.
async fn lock(writer: &AuditWriter<'_>) -> Result<Option<LogState>, Error> {
    let row = writer.client.query_opt(&writer.statements.lock, &[]).await?;
    row.as_ref().map(state_of).transpose()
}

/// Locks the log, and creates it if necessary. Only for appending: a log created otherwise would hide that the state
/// of an earlier one was removed.
async fn lock_or_create(writer: &AuditWriter<'_>) -> Result<LogState, Error> {
    if let Some(state) = lock(writer).await? {
        return Ok(state);
    }
    let AuditWriter { client, statements, .. } = writer;
    let LogState { log, chain, checkpoint_sequence, checkpoint_micros } = LogState::new(LogId::generate());
    let values: [&(dyn ToSql + Sync); 5] = [
        &log.0.as_slice(),
        &chain.sequence.cast_signed(),
        &chain.hash.0.as_slice(),
        &checkpoint_sequence.cast_signed(),
        &checkpoint_micros.cast_signed(),
    ];
    client.execute(&statements.create, &values).await?;
    state_of(&client.query_one(&statements.lock, &[]).await?)
}

/// Appends records to the log inside a transaction, and a checkpoint if it is due and there is a key. Returns the
/// checkpoint.
pub(super) async fn append(
    writer: &AuditWriter<'_>,
    records: &PendingRecords,
) -> Result<Option<Checkpoint>, Error> {
    if records.is_empty() {
        return Ok(None);
    }
    let mut state = lock_or_create(writer).await?;
    let Some(batch) = state.chain.extend(records) else { return Ok(None) };
    let auditor = writer.auditor.filter(|_| state.is_checkpoint_due());
    let checkpoint = auditor.map(|auditor| auditor.sign(state.log, CheckpointKind::Progress, state.chain));
    let values: [&(dyn ToSql + Sync); 8] = [
        &batch.first_sequence.cast_signed(),
        &batch.last_sequence.cast_signed(),
        &batch.first_micros.cast_signed(),
        &batch.last_micros.cast_signed(),
        &batch.previous_hash.0.as_slice(),
        &batch.last_hash.0.as_slice(),
        &batch.principals,
        &batch.entries,
    ];
    try_join(
        writer.client.execute(&writer.statements.insert, &values),
        store_state(writer, &mut state, checkpoint.as_ref()),
    )
    .await?;
    Ok(checkpoint)
}

/// Stores the state of the log, with a new checkpoint if there is one.
async fn store_state(
    writer: &AuditWriter<'_>,
    state: &mut LogState,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), Error> {
    if let Some(checkpoint) = checkpoint {
        insert_checkpoint(writer, checkpoint).await?;
        state.set_checkpoint(checkpoint);
    }
    let values: [&(dyn ToSql + Sync); 4] = [
        &state.chain.sequence.cast_signed(),
        &state.chain.hash.0.as_slice(),
        &state.checkpoint_sequence.cast_signed(),
        &state.checkpoint_micros.cast_signed(),
    ];
    writer.client.execute(&writer.statements.update, &values).await?;
    Ok(())
}

async fn insert_checkpoint(writer: &AuditWriter<'_>, checkpoint: &Checkpoint) -> Result<(), Error> {
    let values: [&(dyn ToSql + Sync); 7] = [
        &checkpoint.sequence.cast_signed(),
        &checkpoint.kind.name(),
        &checkpoint.log.0.as_slice(),
        &checkpoint.hash.0.as_slice(),
        &checkpoint.micros.cast_signed(),
        &checkpoint.key,
        &checkpoint.signature,
    ];
    writer.client.execute(&writer.statements.checkpoint, &values).await?;
    Ok(())
}

/// Whether an event is new: after a broken connection it may be repeated.
pub(super) async fn claim(
    writer: &AuditWriter<'_>,
    key: &RecordId,
    event: &AuditEvent,
) -> Result<bool, Error> {
    let values: [&(dyn ToSql + Sync); 2] = [&key.as_str(), &unix_micros(event.at)];
    Ok(writer.client.execute(&writer.statements.claim, &values).await? == 1)
}

/// Adds those of these calls that belong in the log, as they are stored.
pub(super) async fn push_rows(
    writer: &AuditWriter<'_>,
    calls: &[&str],
    records: &mut PendingRecords,
) -> Result<(), Error> {
    if calls.is_empty() {
        return Ok(());
    }
    for row in writer.client.query(&writer.statements.ended, &[&calls]).await? {
        push_stored_call(records, &call_of(&row)?);
    }
    Ok(())
}

/// Marks the running calls of dead stores as unknown, and adds those that belong in the log.
pub(super) async fn adopt_orphans(
    writer: &AuditWriter<'_>,
    dead: &[i64],
    records: &mut PendingRecords,
) -> Result<(), Error> {
    if dead.is_empty() {
        return Ok(());
    }
    let rows = writer.client.query(&writer.statements.adopt, &[&dead]).await?;
    let mut calls: Vec<CallRecord> = rows
        .iter()
        .filter_map(|row| match row.int(COLUMNS.len()) {
            Ok(0) => None,
            Ok(_) => Some(call_of(row)),
            Err(error) => Some(Err(error)),
        })
        .collect::<Result<_, Error>>()?;
    calls.sort_by(|left, right| left.start.record.cmp(&right.start.record));
    calls.iter().for_each(|call| push_stored_call(records, call));
    Ok(())
}

/// Signs a checkpoint inside a transaction if there are records without one.
pub(super) async fn sign(writer: &AuditWriter<'_>) -> Result<Option<Checkpoint>, Error> {
    let Some(auditor) = writer.auditor else { return Ok(None) };
    let Some(mut state) = lock(writer).await?.filter(LogState::is_unsigned) else { return Ok(None) };
    let checkpoint = auditor.sign(state.log, CheckpointKind::Progress, state.chain);
    store_state(writer, &mut state, Some(&checkpoint)).await?;
    Ok(Some(checkpoint))
}

/// Deletes some batches all of whose records began before a time, inside a transaction, and signs where the log begins
/// now. Returns their number.
pub(super) async fn prune(writer: &AuditWriter<'_>, auditor: &Auditor, before: i64) -> Result<u64, Error> {
    let Some(state) = lock(writer).await? else { return Ok(0) };
    let client = writer.client;
    client.execute("DELETE FROM audit_keys WHERE at < $1", &[&before]).await?;
    let rows = client.query(OLDEST_BATCHES, &[]).await?;
    let oldest = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let Some(chain) = deletable_chain(oldest, before) else { return Ok(0) };
    let base = auditor.sign(state.log, CheckpointKind::Base, chain);
    let Chain { sequence, .. } = chain;
    let deleted =
        client.execute("DELETE FROM audit_batches WHERE last_seq <= $1", &[&sequence.cast_signed()]).await?;
    client.execute("DELETE FROM audit_checkpoints WHERE seq <= $1", &[&sequence.cast_signed()]).await?;
    insert_checkpoint(writer, &base).await?;
    Ok(deleted)
}
