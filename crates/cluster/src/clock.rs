//! The clock of the database, as this process knows it. Deadlines in messages use it, so that the clocks of machines may differ and
//! jump.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A span in milliseconds.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The longest round trip whose answer replaces a known time: the time is uncertain by half of it. It takes longer if this process
/// was stopped meanwhile, and a late request must not seem to be in time then.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(500);

/// The time of the database at a moment of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct DatabaseClock(Mutex<Option<(i64, Instant)>>);

impl DatabaseClock {
    /// Sets it: the database had this time, in milliseconds since 1970, at some moment between `asked` and now.
    pub(crate) fn set(&self, millis: i64, asked: Instant) {
        self.set_at(millis, asked, Instant::now());
    }

    fn set_at(&self, millis: i64, asked: Instant, answered: Instant) {
        let round_trip = answered.saturating_duration_since(asked);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() || round_trip <= MAX_ROUND_TRIP {
            *known = Some((millis, asked + round_trip / 2));
        }
    }

    /// The time now; `None` if the database was not reached yet.
    pub(crate) fn now(&self) -> Option<i64> {
        let (millis, at) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(millis + self::millis(at.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_answers_that_took_long() {
        let clock = DatabaseClock::default();
        // Moments in the past: the clock counts from them.
        let started = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        let after = |seconds: u64| started + Duration::from_secs(seconds);
        let is_at = |millis: i64| {
            let error = clock.now().unwrap() - millis - i64::try_from(started.elapsed().as_millis()).unwrap();
            assert!((-1..=1).contains(&error), "{error} ms");
        };
        // A first answer is used in any case.
        clock.set_at(1_000, started, after(10));
        clock.set_at(1_000, started, started);
        is_at(1_000);
        // The process was stopped for 4 s after its question.
        clock.set_at(5_000, after(4), after(8));
        is_at(1_000);
        clock.set_at(6_000, after(4), after(4) + Duration::from_millis(200));
        is_at(6_000 - 4_100);
    }
}
