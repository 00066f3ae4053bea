//! The two clocks of token verification, replaced in tests.

use std::time::{Instant, SystemTime};

/// The current time.
pub(super) trait Clock: Send + Sync {
    /// The time that claims are compared with.
    fn wall_time(&self) -> SystemTime;

    /// The time for intervals, which is never set back.
    fn monotonic(&self) -> Instant;
}

/// The clocks of the system.
pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn wall_time(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}
