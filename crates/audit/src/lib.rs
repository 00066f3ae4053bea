//! A tamper-evident audit log: records chained by hash, with signed checkpoints. Pure: a store keeps the batches, and
//! implements [`AuditHistory`].
//!
//! A record is encoded in one way only ([`AuditRecord::encode`]). The hash of a record is
//! `SHA-256(hash of the previous record ‖ encoding)`; the first one follows the hash of the log's random id. A
//! [`Checkpoint`] signs the hash of a record with Ed25519, and so all records before it.
//!
//! What is found ([`Tampering`]): records that were changed, removed, added or reordered, also if all later hashes were
//! recomputed, and a log whose end was cut off before the last checkpoint. What cannot be found: the removal of the
//! newest records after the last checkpoint (at most [`CHECKPOINT_RECORDS`] records or [`CHECKPOINT_INTERVAL`]), and
//! the replacement of the database together with the head file by older copies of both. With the signing key
//! everything can be forged: keep exports or checkpoints on another machine.

mod chain;
mod checkpoint;
mod encoding;
mod evidence;
mod history;
mod json_lines;
mod ocsf;
mod record;
mod tampering;
mod verify;

pub use chain::{Chain, Hash, LogId, PendingRecords, StoredBatch};
pub use checkpoint::{
    CHECKPOINT_INTERVAL, CHECKPOINT_RECORDS, Checkpoint, CheckpointKind, KeyError, PublicKey, SigningKey,
    TrustedKeys,
};
pub use evidence::{LogEnd, LogEvidence};
pub use history::{AuditHistory, AuditQuery, AuditStore, ExportFormat, LogVerification};
pub use json_lines::{JsonLinesExport, verify_json_lines};
pub use ocsf::ocsf_event;
pub use record::{AuditRecord, CallFields};
pub use tampering::{SignatureProblem, Tampering};
pub use verify::{Summary, Verifier, verify};
