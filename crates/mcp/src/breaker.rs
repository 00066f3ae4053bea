//! When to try a server again: pure. A failure makes the next try wait a little; five in a row, and it is left alone.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row after which a server is left alone.
const PATIENCE: u32 = 5;
/// How long a try waits after one failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a server is left alone at first; doubled each time a probe fails.
const FIRST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// What a server's past says about trying it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Now.
    Go,
    /// After this pause.
    Wait(Duration),
    /// Not before this much time has passed.
    LeaveAlone(Duration),
}

/// A server's past, as far as it matters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    failures: u32,
    rest_until: Option<Instant>,
    next_try: Option<Instant>,
}

impl Breaker {
    /// Whether to try now.
    pub(crate) fn advice(&self, now: Instant) -> Advice {
        let left = |until: Option<Instant>| until.and_then(|until| until.checked_duration_since(now));
        match (left(self.rest_until), left(self.next_try)) {
            (Some(rest), _) if !rest.is_zero() => Advice::LeaveAlone(rest),
            // After the rest one try is let through: the connect that all who wait share.
            (_, Some(pause)) if !pause.is_zero() && self.rest_until.is_none() => Advice::Wait(pause),
            _ => Advice::Go,
        }
    }

    /// It answered: the past is forgotten.
    pub(crate) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// It failed; `jitter` from 0 to 1 spreads the next tries.
    pub(crate) fn fail(&mut self, now: Instant, jitter: f64) {
        self.failures = self.failures.saturating_add(1);
        let spread = 0.75 + jitter / 2.0;
        let doubled = |first: Duration, times: u32, longest: Duration| {
            first.saturating_mul(1 << times.min(16)).min(longest).mul_f64(spread)
        };
        self.next_try = Some(now + doubled(FIRST_PAUSE, self.failures - 1, LONGEST_PAUSE));
        if self.failures >= PATIENCE {
            self.rest_until = Some(now + doubled(FIRST_REST, self.failures - PATIENCE, LONGEST_REST));
        }
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_and_it_is_left_alone_then_probed() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        assert_eq!(breaker.advice(start), Advice::Go);
        for failure in 0..4 {
            breaker.fail(start, 0.5);
            let pause = FIRST_PAUSE * (1 << failure);
            assert_eq!(breaker.advice(start), Advice::Wait(pause), "after {} failures", failure + 1);
            assert_eq!(breaker.advice(start + pause), Advice::Go);
        }
        breaker.fail(start, 0.5);
        assert_eq!(breaker.advice(start), Advice::LeaveAlone(FIRST_REST));
        // Half open: one try; where it fails, the rest is longer.
        let later = start + FIRST_REST;
        assert_eq!(breaker.advice(later), Advice::Go);
        breaker.fail(later, 0.5);
        assert_eq!(breaker.advice(later), Advice::LeaveAlone(FIRST_REST * 2));
        breaker.succeed();
        assert_eq!(breaker.advice(later), Advice::Go);
    }

    #[test]
    fn pauses_are_bounded_and_spread() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..1000 {
            breaker.fail(start, 1.0);
        }
        assert_eq!(breaker.advice(start), Advice::LeaveAlone(LONGEST_REST.mul_f64(1.25)));
    }
}
