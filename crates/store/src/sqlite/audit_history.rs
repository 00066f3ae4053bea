//! The ports of the audit log: appending events, queries, verification, exports.

use rusqlite::{Connection, Row, params_from_iter};
use toolhub_audit::{
    AuditHistory, AuditQuery, AuditRecord, Checkpoint, ExportFormat, LogEvidence, LogVerification, PublicKey,
    StoredBatch, TrustedKeys,
};
use toolhub_core::BoxFuture;
use toolhub_core::audit::{AuditEvent, AuditLog};
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::StoreError;

use super::{SqliteStore, audit};
use crate::audit::Auditor;
use crate::audit::history::{self, AuditTables, PAGE_BATCHES};
use crate::audit::rows::{
    BatchColumns, CHECKPOINT_COLUMNS, CheckpointColumns, matching_batches, next_batches,
};
use crate::query::{Dialect, SqlValue};
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

    fn verify_audit(&self, keys: Option<TrustedKeys>) -> BoxFuture<'_, Result<LogVerification, StoreError>> {
        Box::pin(history::verify(self, keys))
    }

    fn sign_checkpoint(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.auditor.is_none() {
                return Ok(());
            }
            // Also if earlier writes failed: what is in the log gets its checkpoint.
            let settled = self.settle().await;
            self.write(Write::Checkpoint).await?;
            settled
        })
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
            let (folder, owner) = (self.folder.clone(), self.owner);
            // Before the journals are replayed: those of stores that die later may contain ends.
            let dead = self.run(move |connection| super::history::dead(connection, &folder, owner)).await?;
            self.write(Write::AdoptOrphans(dead)).await.map(drop)
        })
    }

    fn evidence(&self) -> BoxFuture<'_, Result<LogEvidence, StoreError>> {
        Box::pin(self.run(|connection| {
            // One transaction, so that both fit each other.
            let transaction = connection.transaction()?;
            let state = audit::state(&transaction)?;
            let sql = format!("SELECT {CHECKPOINT_COLUMNS} FROM audit_checkpoints ORDER BY seq");
            let mut select = transaction.prepare_cached(&sql)?;
            let checkpoints =
                select.query_map([], checkpoint_of)?.collect::<rusqlite::Result<Vec<Checkpoint>>>()?;
            let (log, end) = (state.map(|state| state.log), state.map(|state| state.end()));
            Ok(LogEvidence { log, end, checkpoints, head: None })
        }))
    }

    fn batches_after(&self, sequence: u64) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.run(move |connection| {
            let (sql, values) = next_batches(Dialect::Sqlite, sequence, PAGE_BATCHES);
            batches(connection, &sql, values)
        }))
    }

    fn batches_matching(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.run(move |connection| {
            let (sql, values) = matching_batches(Dialect::Sqlite, &query, PAGE_BATCHES);
            batches(connection, &sql, values)
        }))
    }
}

fn batches(connection: &Connection, sql: &str, values: Vec<SqlValue>) -> rusqlite::Result<Vec<StoredBatch>> {
    let mut select = connection.prepare_cached(sql)?;
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
