//! The ports of the audit log: appending events, queries, verification, exports.

use tokio_postgres::{Error, Row};
use toolhub_audit::{
    AuditHistory, AuditQuery, AuditRecord, Checkpoint, ExportFormat, LogEvidence, LogVerification, PublicKey,
    StoredBatch, TrustedKeys,
};
use toolhub_core::BoxFuture;
use toolhub_core::audit::{AuditEvent, AuditLog};
use toolhub_core::call_log::RecordId;
use toolhub_core::ports::StoreError;

use super::audit::state_of;
use super::session::Session;
use super::{PgStore, history as call_history, run_query};
use crate::audit::Auditor;
use crate::audit::history::{self, AuditTables, PAGE_BATCHES};
use crate::audit::rows::{
    BatchColumns, CHECKPOINT_COLUMNS, CheckpointColumns, LOG_COLUMNS, matching_batches, next_batches,
};
use crate::query::{Dialect, SqlValue};
use crate::write::Write;

impl AuditLog for PgStore {
    fn append(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.auditor.is_none() {
                return Err(crate::audit::auditor::disabled());
            }
            self.write(Write::Audit(RecordId::generate(), Box::new(event))).await.map(drop)
        })
    }
}

impl AuditHistory for PgStore {
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
            let settled = self.queue.settle().await;
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

impl AuditTables for PgStore {
    fn auditor(&self) -> Option<&Auditor> {
        self.auditor.as_deref()
    }

    fn settle_audit(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        let owner = self.owner;
        Box::pin(async move {
            self.queue.settle().await?;
            // Before the journals are replayed: those of stores that die later may contain ends.
            let dead =
                self.read(move |session| async move { call_history::dead(&session, owner).await }).await?;
            self.write(Write::AdoptOrphans(dead)).await.map(drop)
        })
    }

    fn evidence(&self) -> BoxFuture<'_, Result<LogEvidence, StoreError>> {
        Box::pin(self.read(|session| async move {
            // The state is read last, so that no checkpoint is ahead of it.
            let sql = format!("SELECT {CHECKPOINT_COLUMNS} FROM audit_checkpoints ORDER BY seq");
            let checkpoints = session.client.query(&sql, &[]).await?;
            let state = session.client.query(&format!("SELECT {LOG_COLUMNS} FROM audit_log"), &[]).await?;
            let state = state.first().map(state_of).transpose()?;
            let checkpoints = checkpoints.iter().map(checkpoint_of).collect::<Result<_, Error>>()?;
            let (log, end) = (state.map(|state| state.log), state.map(|state| state.end()));
            Ok(LogEvidence { log, end, checkpoints, head: None })
        }))
    }

    fn batches_after(&self, sequence: u64) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.read(move |session| async move {
            let (sql, values) = next_batches(Dialect::Postgres, sequence, PAGE_BATCHES);
            batches(&session, &sql, values).await
        }))
    }

    fn batches_matching(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>> {
        Box::pin(self.read(move |session| {
            let (sql, values) = matching_batches(Dialect::Postgres, &query, PAGE_BATCHES);
            async move { batches(&session, &sql, values).await }
        }))
    }
}

async fn batches(session: &Session, sql: &str, values: Vec<SqlValue>) -> Result<Vec<StoredBatch>, Error> {
    let batch = |row: &Row| {
        Ok(StoredBatch::from(BatchColumns {
            numbers: [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?],
            hashes: [row.try_get(4)?, row.try_get(5)?],
            principals: row.try_get(6)?,
            entries: row.try_get(7)?,
        }))
    };
    run_query(session, sql, values).await?.iter().map(batch).collect()
}

fn checkpoint_of(row: &Row) -> Result<Checkpoint, Error> {
    Ok(Checkpoint::from(CheckpointColumns {
        sequence: row.try_get(0)?,
        kind: row.try_get(1)?,
        log: row.try_get(2)?,
        hash: row.try_get(3)?,
        micros: row.try_get(4)?,
        key: row.try_get(5)?,
        signature: row.try_get(6)?,
    }))
}
