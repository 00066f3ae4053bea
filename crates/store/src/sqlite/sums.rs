//! What a transaction adds to the totals of the database: statistics, sizes, and records of the audit log.

use rusqlite::Connection;
use toolhub_audit::{Checkpoint, PendingRecords};

use super::{audit, counters, statistics};
use crate::audit::Auditor;
use crate::pending_statistics::PendingStatistics;

/// Totals of the calls in a transaction.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) counted: PendingStatistics,
    /// Bytes of outputs.
    pub(super) output_bytes: i64,
    /// Bytes of blocks.
    pub(super) entry_bytes: i64,
    /// Records for the audit log.
    pub(super) audit: PendingRecords,
}

impl Sums {
    /// Writes the totals, as the last part of a transaction. Returns the checkpoint that was signed, if any: it becomes
    /// the head once the transaction is committed.
    pub(super) fn store(
        &self,
        connection: &Connection,
        auditor: Option<&Auditor>,
    ) -> rusqlite::Result<Option<Checkpoint>> {
        statistics::add(connection, &self.counted)?;
        counters::add(connection, counters::RESULT_BYTES, self.output_bytes)?;
        audit::append(connection, &self.audit, auditor)
    }
}
