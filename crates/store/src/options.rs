//! Options of a store: durability and retention.

use std::path::PathBuf;
use std::time::Duration;

use toolhub_core::millis::DAY;

/// Options of a store; the defaults suit a personal machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreOptions {
    /// Durability of acknowledged writes in SQLite. For PostgreSQL, this is a setting of the server.
    pub durability: Durability,
    /// Which calls are stored with their details.
    pub detail: DetailLevel,
    /// Retention times and sizes.
    pub retention: Retention,
}

/// Options of the audit log. A store that is opened with them appends every call to the log; without, none.
///
/// The log is complete: [`DetailLevel::Sample`] has no effect, since calls that are only counted would be missing, and
/// callers wait instead of losing details if the database cannot keep up.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The file of the signing key, created with mode 0600 if it does not exist. Beside it are the accepted public keys
    /// (`.pub`, one per line, to which those of other hubs on the same database may be added) and the last checkpoint
    /// (`.head`).
    pub key: PathBuf,
    /// How long records are kept.
    pub retention: Duration,
}

impl AuditOptions {
    /// Options with a key in this file; records are kept for 400 days.
    pub fn new(key: impl Into<PathBuf>) -> Self {
        Self { key: key.into(), retention: 400 * DAY }
    }
}

/// Which calls are stored with their details: arguments, attempts and outputs. Statistics count every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailLevel {
    /// Every call. Callers wait if the database cannot keep up.
    #[default]
    All,
    /// Every call that may change state or fails, and up to 2,000 others per second.
    Sample,
}

/// The failures that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A crash of the process. A power loss may lose the last writes before it.
    #[default]
    Program,
    /// A power loss too: each group of writes with a waiting caller is synced to the disk (fsync).
    Power,
}

/// Retention times and sizes. Statistics, conversations and approvals are kept forever; responses have their own limits.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Calls.
    pub calls: Duration,
    /// Full results; at most as long as calls.
    pub results: Duration,
    /// Maximum size of all full results, in bytes; the oldest are deleted first.
    pub result_bytes: u64,
    /// Maximum size of calls and results, in bytes; the oldest results are deleted first, then the oldest calls.
    pub max_bytes: u64,
    /// Interval of the cleanup, which one of the hubs performs.
    pub every: Duration,
}

impl Retention {
    /// Retention of full results: at most that of their calls, which are only deleted without a result.
    pub(crate) fn result_age(&self) -> Duration {
        self.results.min(self.calls)
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            calls: 90 * DAY,
            results: 30 * DAY,
            result_bytes: 1 << 30,
            max_bytes: 4 << 30,
            every: Duration::from_secs(3600),
        }
    }
}
