//! The time limits of calls.

use std::time::Duration;

/// Time limits of calls.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Limit of a call, counted from the moment the request is sent to the tool; progress notifications extend it.
    pub call: Duration,
    /// Upper bound of the extended limit.
    pub cap: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { call: Duration::from_secs(30), cap: Duration::from_secs(300) }
    }
}
