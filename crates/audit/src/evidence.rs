//! What a store keeps of a log beside its records.

use crate::chain::{Hash, LogId};
use crate::checkpoint::Checkpoint;

/// The end of a log as its store states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The number of the last record.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

/// What is stored about a log beside its records.
#[derive(Debug, Clone, Default)]
pub struct LogEvidence {
    /// The id of the log; `None` if nothing was ever recorded.
    pub log: Option<LogId>,
    /// Its end.
    pub end: Option<LogEnd>,
    /// The checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// The last checkpoint, as the head file beside the key states it.
    pub head: Option<Checkpoint>,
}
