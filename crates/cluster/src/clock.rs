//! The clock of the database, as this process knows it. Deadlines in messages use it, so that the clocks of machines may differ and
//! jump.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A span in milliseconds.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The time of the database at a moment of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct DatabaseClock(Mutex<Option<(i64, Instant)>>);

impl DatabaseClock {
    /// Sets it: the database had this time, in milliseconds since 1970, at some moment between `asked` and now.
    pub(crate) fn set(&self, millis: i64, asked: Instant) {
        let middle = asked + asked.elapsed() / 2;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((millis, middle));
    }

    /// The time now; `None` if the database was not reached yet.
    pub(crate) fn now(&self) -> Option<i64> {
        let (millis, at) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(millis + i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}
