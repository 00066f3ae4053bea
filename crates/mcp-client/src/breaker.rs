//! Circuit breaker for one server, without I/O. After a failure the next attempt is delayed; after five consecutive failures
//! the circuit opens, for longer after each further failure.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolhub_core::millis::unix_millis;

/// Number of consecutive failures that open the circuit.
const FAILURE_THRESHOLD: u32 = 5;
/// The delay after one failure; doubled for each further one.
const BASE_BACKOFF: Duration = Duration::from_millis(200);
/// How long the circuit stays open after that number of failures, and after each further one.
const OPEN_DURATIONS: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    MAX_OPEN_DURATION,
];
const MAX_OPEN_DURATION: Duration = Duration::from_secs(600);

/// Whether an attempt is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerDecision {
    /// Allowed now.
    Allow,
    /// After this delay.
    Delay(Duration),
    /// The circuit is open for this duration.
    Reject(Duration),
}

/// A point in time on the monotonic clock and on the wall clock, which other runs share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimePoint {
    pub(crate) monotonic: Instant,
    pub(crate) wall_clock: SystemTime,
}

impl TimePoint {
    pub(crate) fn now() -> Self {
        Self { monotonic: Instant::now(), wall_clock: SystemTime::now() }
    }
}

/// A circuit breaker: consecutive failures, and when the next attempt is allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    failures: u32,
    failed_at: Option<SystemTime>,
    next_attempt: Option<Instant>,
    /// Set by an explicit request of the user: the next attempt is allowed at once.
    retry_allowed: bool,
}

impl Breaker {
    /// Restores the state from an earlier run. A new run applies no delay before its first attempt, but respects an open
    /// circuit.
    pub(crate) fn restore(failures: u32, failed_at: SystemTime, now: TimePoint) -> Self {
        let restored = Self { failures, failed_at: Some(failed_at), ..Self::default() };
        let age = match now.wall_clock.duration_since(failed_at) {
            Ok(age) => age,
            // The clock of another machine may be slightly ahead; a larger difference means that the clock was set back.
            Err(ahead) if ahead.duration() < MAX_OPEN_DURATION => Duration::ZERO,
            Err(_) => return restored,
        };
        if failures < FAILURE_THRESHOLD {
            return restored;
        }
        Self {
            next_attempt: Some(now.monotonic + backoff(failures, failed_at).saturating_sub(age)),
            ..restored
        }
    }

    /// Whether an attempt is allowed now.
    pub(crate) fn decision(&self, now: Instant) -> BreakerDecision {
        let remaining_time = self.next_attempt.and_then(|next| next.checked_duration_since(now));
        match remaining_time.filter(|remaining_time| !remaining_time.is_zero() && !self.retry_allowed) {
            // Half open: one attempt, which all waiting callers share.
            None => BreakerDecision::Allow,
            Some(remaining_time) if self.failures >= FAILURE_THRESHOLD => {
                BreakerDecision::Reject(remaining_time)
            }
            Some(remaining_time) => BreakerDecision::Delay(remaining_time),
        }
    }

    /// Allows the next attempt despite earlier failures.
    pub(crate) fn allow_retry(&mut self) {
        self.retry_allowed = self.failures > 0;
    }

    /// Resets the breaker after an answer.
    pub(crate) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Records a failure.
    pub(crate) fn record_failure(&mut self, now: TimePoint) {
        self.failures = self.failures.saturating_add(1);
        self.retry_allowed = false;
        self.failed_at = Some(now.wall_clock);
        self.next_attempt = Some(now.monotonic + backoff(self.failures, now.wall_clock));
    }

    /// Whether one more failure opens the circuit.
    pub(crate) fn opens_with_next_failure(&self) -> bool {
        self.failures.saturating_add(1) >= FAILURE_THRESHOLD
    }

    /// Number of consecutive failures.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// When the last failure occurred.
    pub(crate) fn failed_at(&self) -> Option<SystemTime> {
        self.failed_at
    }
}

/// The delay after this number of failures, with a jitter of up to 25 %, so that attempts are spread. The jitter is derived
/// from the time of the last failure, so that every run computes the same value.
fn backoff(failures: u32, failed_at: SystemTime) -> Duration {
    let further = failures.checked_sub(FAILURE_THRESHOLD).and_then(|further| usize::try_from(further).ok());
    let usual = match further {
        Some(further) => OPEN_DURATIONS.get(further).copied().unwrap_or(MAX_OPEN_DURATION),
        None => BASE_BACKOFF.saturating_mul(1 << failures.saturating_sub(1)),
    };
    // Times are stored in milliseconds.
    let jitter = fastrand::Rng::with_seed(unix_millis(failed_at)).f64();
    usual.mul_f64(0.75 + jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn start() -> TimePoint {
        TimePoint { monotonic: Instant::now(), wall_clock: UNIX_EPOCH + Duration::from_secs(1_800_000_000) }
    }

    fn later(moment: TimePoint, time: Duration) -> TimePoint {
        TimePoint { monotonic: moment.monotonic + time, wall_clock: moment.wall_clock + time }
    }

    fn is_within_jitter(usual: Duration, found: Duration) -> bool {
        (usual.mul_f64(0.75)..=usual.mul_f64(1.25)).contains(&found)
    }

    #[test]
    fn opens_after_five_failures_and_stays_open_longer_each_time() {
        let mut now = start();
        let mut breaker = Breaker::default();
        assert_eq!(breaker.decision(now.monotonic), BreakerDecision::Allow);
        for failure in 0..4 {
            breaker.record_failure(now);
            let BreakerDecision::Delay(backoff) = breaker.decision(now.monotonic) else {
                panic!("after {} failures", failure + 1)
            };
            assert!(is_within_jitter(BASE_BACKOFF * (1 << failure), backoff), "{backoff:?}");
            now = later(now, backoff);
            assert_eq!(breaker.decision(now.monotonic), BreakerDecision::Allow);
        }
        // Half open: one attempt; if it fails, the circuit opens for longer, up to the maximum.
        for seconds in [30, 60, 120, 300, 600, 600, 600] {
            breaker.record_failure(now);
            let BreakerDecision::Reject(rest) = breaker.decision(now.monotonic) else { panic!("{seconds}") };
            assert!(is_within_jitter(Duration::from_secs(seconds), rest), "{seconds}: {rest:?}");
            now = later(now, rest);
            assert_eq!(breaker.decision(now.monotonic), BreakerDecision::Allow);
        }
        breaker.record_success();
        assert_eq!((breaker.decision(now.monotonic), breaker.failures()), (BreakerDecision::Allow, 0));
    }

    #[test]
    fn restored_breaker_stays_open_as_long() {
        let failed = start();
        for failures in 1..12 {
            let mut breaker = Breaker::default();
            (0..failures).for_each(|_| breaker.record_failure(failed));
            for seconds in [0, 1, 29, 61, 599, 900] {
                let now = later(failed, Duration::from_secs(seconds));
                let next = Breaker::restore(failures, failed.wall_clock, now);
                let expect = match breaker.decision(now.monotonic) {
                    BreakerDecision::Delay(_) => BreakerDecision::Allow,
                    other => other,
                };
                assert_eq!(next.decision(now.monotonic), expect, "{failures} failures, {seconds} s later");
                assert_eq!((next.failures(), next.failed_at()), (failures, Some(failed.wall_clock)));
            }
        }
        let check = |ahead: u64, expect: bool| {
            let failed_at = failed.wall_clock + Duration::from_secs(ahead);
            let decision = Breaker::restore(9, failed_at, failed).decision(failed.monotonic);
            assert_eq!(matches!(decision, BreakerDecision::Reject(_)), expect, "{ahead}: {decision:?}");
        };
        check(5, true);
        check(3600, false);
    }

    #[test]
    fn explicit_request_allows_one_attempt() {
        let now = start();
        let mut breaker = Breaker::default();
        breaker.allow_retry();
        for _ in 0..9 {
            breaker.record_failure(now);
        }
        assert!(
            matches!(breaker.decision(now.monotonic), BreakerDecision::Reject(_)),
            "asked for before there was a reason"
        );
        breaker.allow_retry();
        assert_eq!(breaker.decision(now.monotonic), BreakerDecision::Allow);
        breaker.record_failure(now);
        assert!(matches!(breaker.decision(now.monotonic), BreakerDecision::Reject(_)));
    }
}
