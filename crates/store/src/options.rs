//! What may be chosen about a store: how safe a write is, and how long things are kept.

use std::time::Duration;

/// What a store may be told; the defaults suit a user's own machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreOptions {
    /// What an acknowledged write outlives, in SQLite. A PostgreSQL server has a setting of its own for that.
    pub durability: Durability,
    /// Which calls are stored with their details.
    pub detail: Detail,
    /// How long things are kept.
    pub retention: Retention,
}

/// Which calls are stored with their details: arguments, attempts and outputs. The statistics count every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Every call. Callers wait when the database cannot keep up.
    #[default]
    All,
    /// Every call that may change something or fails, and up to 2,000 others a second.
    Sample,
}

/// What an acknowledged write outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the program, however sudden. A loss of power may cost the last moments before it.
    #[default]
    Program,
    /// A loss of power too: each group of writes that somebody waits for waits for the disk.
    Power,
}

/// How long things are kept. Statistics, conversations and approvals are kept for ever.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Calls.
    pub calls: Duration,
    /// Full results; no longer than calls.
    pub results: Duration,
    /// All full results together, in bytes; the oldest go first.
    pub result_bytes: u64,
    /// Calls and results together, in bytes; the oldest results go first, then the oldest calls.
    pub max_bytes: u64,
    /// How often what is too old is looked for, by whichever hub comes to it.
    pub every: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Retention {
    /// How long full results are kept: no longer than their calls, which are deleted only without a result.
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
