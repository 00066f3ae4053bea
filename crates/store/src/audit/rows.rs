//! Rows of the audit tables, and records of stored calls.

use std::time::{Duration, SystemTime};

use toolhub_audit::{
    AuditQuery, CHECKPOINT_INTERVAL, CHECKPOINT_RECORDS, CallFields, Chain, Checkpoint, CheckpointKind, Hash,
    LogEnd, LogId, PendingRecords, StoredBatch,
};
use toolhub_core::Source;
use toolhub_core::call_log::{CallEnd, CallRecord, CallStart, CallStatus, StoredAttempt};

use crate::query::{Conditions, Dialect, SqlValue};
use crate::rows::{source_name, unix_micros};

/// The row of `audit_log`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogState {
    pub(crate) log: LogId,
    pub(crate) chain: Chain,
    /// The number and time of the last checkpoint.
    pub(crate) checkpoint_sequence: u64,
    pub(crate) checkpoint_micros: u64,
}

/// The columns of `audit_log`, in the order of [`LogColumns`].
pub(crate) const LOG_COLUMNS: &str = "log, seq, hash, checkpoint_seq, checkpoint_at";

/// The values of a row of `audit_log`.
pub(crate) type LogColumns = (Vec<u8>, i64, Vec<u8>, i64, i64);

impl LogState {
    /// The state of a new log.
    pub(crate) fn new(log: LogId) -> Self {
        let checkpoint_micros = unix_micros(SystemTime::now()).unsigned_abs();
        Self { log, chain: Chain::empty(&log), checkpoint_sequence: 0, checkpoint_micros }
    }

    /// Reads a row. Values of the wrong length are replaced by zeros, so that verification reports them.
    pub(crate) fn of(columns: LogColumns) -> Self {
        let (log, sequence, hash, checkpoint_sequence, checkpoint_micros) = columns;
        let log = LogId(log.try_into().unwrap_or_default());
        let chain = Chain { sequence: sequence.unsigned_abs(), hash: hash_of(&hash) };
        Self {
            log,
            chain,
            checkpoint_sequence: checkpoint_sequence.unsigned_abs(),
            checkpoint_micros: checkpoint_micros.unsigned_abs(),
        }
    }

    pub(crate) fn end(&self) -> LogEnd {
        LogEnd { sequence: self.chain.sequence, hash: self.chain.hash }
    }

    /// Whether there are records without a checkpoint.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.chain.sequence > self.checkpoint_sequence
    }

    /// Whether a checkpoint must be signed now.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        let now = unix_micros(SystemTime::now()).unsigned_abs();
        let age = Duration::from_micros(now.saturating_sub(self.checkpoint_micros));
        self.is_unsigned()
            && (self.chain.sequence - self.checkpoint_sequence >= CHECKPOINT_RECORDS
                || age >= CHECKPOINT_INTERVAL)
    }

    /// Notes a checkpoint.
    pub(crate) fn set_checkpoint(&mut self, checkpoint: &Checkpoint) {
        (self.checkpoint_sequence, self.checkpoint_micros) = (checkpoint.sequence, checkpoint.micros);
    }
}

/// A hash in a column.
pub(crate) fn hash_of(bytes: &[u8]) -> Hash {
    Hash(bytes.try_into().unwrap_or_default())
}

/// The columns of `audit_batches`, in the order of [`BatchColumns`].
pub(crate) const BATCH_COLUMNS: &str =
    "first_seq, last_seq, first_at, last_at, previous_hash, last_hash, principals, entries";

/// The values of a row of `audit_batches`.
pub(crate) struct BatchColumns {
    /// `first_seq`, `last_seq`, `first_at` and `last_at`.
    pub(crate) numbers: [i64; 4],
    /// `previous_hash` and `last_hash`.
    pub(crate) hashes: [Vec<u8>; 2],
    pub(crate) principals: Option<String>,
    pub(crate) entries: Vec<u8>,
}

impl From<BatchColumns> for StoredBatch {
    fn from(columns: BatchColumns) -> Self {
        let [first_sequence, last_sequence, first_micros, last_micros] =
            columns.numbers.map(i64::unsigned_abs);
        let [previous_hash, last_hash] = columns.hashes.map(|hash| hash_of(&hash));
        let (principals, entries) = (columns.principals, columns.entries);
        Self {
            first_sequence,
            last_sequence,
            first_micros,
            last_micros,
            previous_hash,
            last_hash,
            principals,
            entries,
        }
    }
}

/// The columns of `audit_checkpoints`, in the order of [`CheckpointColumns`].
pub(crate) const CHECKPOINT_COLUMNS: &str = "seq, kind, log, hash, at, key, signature";

/// The values of a row of `audit_checkpoints`.
pub(crate) struct CheckpointColumns {
    pub(crate) sequence: i64,
    pub(crate) kind: String,
    pub(crate) log: Vec<u8>,
    pub(crate) hash: Vec<u8>,
    pub(crate) micros: i64,
    pub(crate) key: String,
    pub(crate) signature: Vec<u8>,
}

impl From<CheckpointColumns> for Checkpoint {
    fn from(columns: CheckpointColumns) -> Self {
        Self {
            log: LogId(columns.log.try_into().unwrap_or_default()),
            // An unknown kind fails the check of the signature.
            kind: CheckpointKind::from_name(&columns.kind).unwrap_or(CheckpointKind::Progress),
            sequence: columns.sequence.unsigned_abs(),
            hash: hash_of(&columns.hash),
            micros: columns.micros.unsigned_abs(),
            key: columns.key,
            signature: columns.signature,
        }
    }
}

/// Adds a stored call.
pub(crate) fn push_stored_call(records: &mut PendingRecords, call: &CallRecord) {
    push(records, &fields(&call.start, call.status), &call.sources, &call.attempts);
}

/// Adds a finished call.
pub(crate) fn push_call(records: &mut PendingRecords, start: &CallStart, end: &CallEnd) {
    push(records, &fields(start, end.status), &end.sources, &end.attempts);
}

fn fields(start: &CallStart, status: CallStatus) -> CallFields<'_> {
    CallFields {
        micros: unix_micros(start.at).unsigned_abs(),
        principal: &start.authorization.principal,
        record: start.record.as_str(),
        tool: start.tool.as_str(),
        arguments: start.arguments.get(),
        status,
        may_change: start.may_change,
        rule: start.authorization.rule.as_deref(),
        approver: start.authorization.approver.as_deref(),
    }
}

/// Adds a call with the sources that answered, or else those that were attempted.
fn push(records: &mut PendingRecords, call: &CallFields<'_>, sources: &[Source], attempts: &[StoredAttempt]) {
    if !sources.is_empty() {
        return records.push_call(call, sources.iter().map(source_name));
    }
    let mut tried: Vec<&str> = Vec::new();
    for attempt in attempts {
        let source = source_name(&attempt.source);
        if !tried.contains(&source) {
            tried.push(source);
        }
    }
    records.push_call(call, tried.into_iter());
}

/// The statement that selects batches after a record, in order.
pub(crate) fn next_batches(dialect: Dialect, after: u64, limit: usize) -> (String, Vec<SqlValue>) {
    let mut filter = Conditions::new(dialect);
    filter.compare("first_seq", ">", Some(SqlValue::Int(after.cast_signed())));
    let (clause, values) = filter.finish();
    let sql = format!("SELECT {BATCH_COLUMNS} FROM audit_batches{clause} ORDER BY first_seq LIMIT {limit}");
    (sql, values)
}

/// The statement that selects batches that may contain matching records, newest first.
pub(crate) fn matching_batches(
    dialect: Dialect,
    query: &AuditQuery,
    limit: usize,
) -> (String, Vec<SqlValue>) {
    let number = |number: Option<u64>| number.map(|number| SqlValue::Int(number.cast_signed()));
    let mut filter = Conditions::new(dialect);
    filter.compare("last_seq", ">", number(query.after));
    filter.compare("first_seq", "<", number(query.before));
    filter.compare("last_at", ">=", query.since.map(|since| SqlValue::Int(unix_micros(since))));
    filter.compare("first_at", "<=", query.until.map(|until| SqlValue::Int(unix_micros(until))));
    if let Some(principal) = &query.principal {
        filter.may_hold("principals", StoredBatch::principal_text(principal));
    }
    let (clause, values) = filter.finish();
    let sql =
        format!("SELECT {BATCH_COLUMNS} FROM audit_batches{clause} ORDER BY first_seq DESC LIMIT {limit}");
    (sql, values)
}

/// Batches at the beginning of the log all of whose records are older than a time: how many records to delete.
pub(crate) const OLDEST_BATCHES: &str =
    "SELECT last_seq, last_at, last_hash FROM audit_batches ORDER BY first_seq LIMIT 50";

/// The end of the leading batches that are older than `before`, in microseconds since 1970: the chain up to which the
/// log may be deleted.
pub(crate) fn deletable_chain(
    oldest: impl IntoIterator<Item = (i64, i64, Vec<u8>)>,
    before: i64,
) -> Option<Chain> {
    let old = oldest.into_iter().take_while(|(_, last_at, _)| *last_at < before).last();
    old.map(|(sequence, _, hash)| Chain { sequence: sequence.unsigned_abs(), hash: hash_of(&hash) })
}
