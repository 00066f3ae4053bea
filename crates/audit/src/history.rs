//! The port to a stored log: queries, verification and exports.

use std::io::Write;
use std::time::SystemTime;

use toolhub_core::audit::{AuditKind, AuditLog};
use toolhub_core::ports::{BoxFuture, StoreError};

use crate::checkpoint::{PublicKey, TrustedKeys};
use crate::record::AuditRecord;
use crate::tampering::Tampering;
use crate::verify::Summary;

/// A filter for records.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// Only records of the principal with this id.
    pub principal: Option<String>,
    /// Only records of this kind.
    pub kind: Option<AuditKind>,
    /// Only records of this time or later.
    pub since: Option<SystemTime>,
    /// Only records before this time.
    pub until: Option<SystemTime>,
    /// Only records with a larger number.
    pub after: Option<u64>,
    /// Only records with a smaller number.
    pub before: Option<u64>,
    /// Maximum number of records, the newest ones; `None` for all.
    pub limit: Option<usize>,
}

impl AuditQuery {
    /// Whether a record matches, apart from the limit.
    pub fn matches(&self, record: &AuditRecord) -> bool {
        let event = &record.event;
        self.principal.as_deref().is_none_or(|principal| *event.principal == *principal)
            && self.kind.is_none_or(|kind| event.action.kind() == kind)
            && self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at < until)
            && self.after.is_none_or(|after| record.sequence > after)
            && self.before.is_none_or(|before| record.sequence < before)
    }
}

/// The result of a verification.
#[derive(Debug, Clone)]
pub struct LogVerification {
    /// What was found; `Ok(None)` if nothing was ever recorded.
    pub result: Result<Option<Summary>, Tampering>,
    /// The accepted keys.
    pub keys: TrustedKeys,
    /// Whether there is a head file. Without it, a truncation together with its checkpoints is not found.
    pub has_head: bool,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// One JSON object per line, with hashes and checkpoints: [`crate::verify_json_lines`] verifies it.
    JsonLines,
    /// One OCSF event per line: see [`crate::ocsf_event`].
    Ocsf,
}

/// A stored log.
pub trait AuditHistory: Send + Sync {
    /// The matching records, newest first.
    fn audit_records(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<AuditRecord>, StoreError>>;

    /// Verifies the whole log with these keys, or with the accepted keys of the store.
    fn verify_audit(&self, keys: Option<TrustedKeys>) -> BoxFuture<'_, Result<LogVerification, StoreError>>;

    /// Signs a checkpoint if there are records without one, after everything that happened before is in the log.
    fn sign_checkpoint(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Writes the whole log. Returns the number of records.
    fn export_audit<'a>(
        &'a self,
        format: ExportFormat,
        out: &'a mut (dyn Write + Send),
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// The public key of the store's signing key; `None` if it was opened without audit log.
    fn audit_key(&self) -> Option<PublicKey>;
}

/// A log that can be written and read.
pub trait AuditStore: AuditLog + AuditHistory {}

impl<T: AuditLog + AuditHistory> AuditStore for T {}
