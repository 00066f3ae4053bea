//! Circuit breaker for one server, without I/O. After a failure the next attempt is delayed; after five consecutive failures
//! the circuit opens, for longer after each further failure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Number of consecutive failures that open the circuit.
const PATIENCE: u32 = 5;
/// The delay after one failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long the circuit stays open after that number of failures, and after each further one.
const RESTS: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    LONGEST_REST,
];
const LONGEST_REST: Duration = Duration::from_secs(600);

/// Whether an attempt is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Allowed now.
    Go,
    /// After this delay.
    Wait(Duration),
    /// The circuit is open for this duration.
    LeaveAlone(Duration),
}

/// A point in time on the monotonic clock and on the wall clock, which other runs share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) run: Instant,
    pub(crate) clock: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { run: Instant::now(), clock: SystemTime::now() }
    }
}

/// The failure history of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    failures: u32,
    failed_at: Option<SystemTime>,
    next_try: Option<Instant>,
    /// Set by an explicit request of the user: the next attempt is allowed at once.
    asked_for: bool,
}

impl Breaker {
    /// Restores the state from an earlier run. A new run applies no delay before its first attempt, but respects an open
    /// circuit.
    pub(crate) fn restore(failures: u32, failed_at: SystemTime, now: Moment) -> Self {
        let past = Self { failures, failed_at: Some(failed_at), ..Self::default() };
        let age = match now.clock.duration_since(failed_at) {
            Ok(age) => age,
            // The clock of another machine may be slightly ahead; a larger difference means that the clock was set back.
            Err(ahead) if ahead.duration() < LONGEST_REST => Duration::ZERO,
            Err(_) => return past,
        };
        if failures < PATIENCE {
            return past;
        }
        Self { next_try: Some(now.run + pause(failures, failed_at).saturating_sub(age)), ..past }
    }

    /// Whether an attempt is allowed now.
    pub(crate) fn advice(&self, now: Instant) -> Advice {
        let left = self.next_try.and_then(|next| next.checked_duration_since(now));
        match left.filter(|left| !left.is_zero() && !self.asked_for) {
            // Half open: one attempt, which all waiting callers share.
            None => Advice::Go,
            Some(left) if self.failures >= PATIENCE => Advice::LeaveAlone(left),
            Some(left) => Advice::Wait(left),
        }
    }

    /// Allows the next attempt despite earlier failures.
    pub(crate) fn ask_for(&mut self) {
        self.asked_for = self.failures > 0;
    }

    /// Resets the breaker after an answer.
    pub(crate) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Records a failure.
    pub(crate) fn fail(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        self.asked_for = false;
        self.failed_at = Some(now.clock);
        self.next_try = Some(now.run + pause(self.failures, now.clock));
    }

    /// Whether one more failure opens the circuit.
    pub(crate) fn opens_with_next_failure(&self) -> bool {
        self.failures.saturating_add(1) >= PATIENCE
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
fn pause(failures: u32, failed_at: SystemTime) -> Duration {
    let further = failures.checked_sub(PATIENCE).and_then(|further| usize::try_from(further).ok());
    let usual = match further {
        Some(further) => RESTS.get(further).copied().unwrap_or(LONGEST_REST),
        None => FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1)),
    };
    // Times are stored in milliseconds.
    let millis = failed_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let jitter = fastrand::Rng::with_seed(u64::try_from(millis).unwrap_or_default()).f64();
    usual.mul_f64(0.75 + jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Moment {
        Moment { run: Instant::now(), clock: UNIX_EPOCH + Duration::from_secs(1_800_000_000) }
    }

    fn later(moment: Moment, time: Duration) -> Moment {
        Moment { run: moment.run + time, clock: moment.clock + time }
    }

    fn around(usual: Duration, found: Duration) -> bool {
        (usual.mul_f64(0.75)..=usual.mul_f64(1.25)).contains(&found)
    }

    #[test]
    fn five_failures_and_it_is_left_alone_then_probed_for_longer_each_time() {
        let mut now = start();
        let mut breaker = Breaker::default();
        assert_eq!(breaker.advice(now.run), Advice::Go);
        for failure in 0..4 {
            breaker.fail(now);
            let Advice::Wait(pause) = breaker.advice(now.run) else {
                panic!("after {} failures", failure + 1)
            };
            assert!(around(FIRST_PAUSE * (1 << failure), pause), "{pause:?}");
            now = later(now, pause);
            assert_eq!(breaker.advice(now.run), Advice::Go);
        }
        // Half open: one attempt; if it fails, the circuit opens for longer, up to the maximum.
        for seconds in [30, 60, 120, 300, 600, 600, 600] {
            breaker.fail(now);
            let Advice::LeaveAlone(rest) = breaker.advice(now.run) else { panic!("{seconds}") };
            assert!(around(Duration::from_secs(seconds), rest), "{seconds}: {rest:?}");
            now = later(now, rest);
            assert_eq!(breaker.advice(now.run), Advice::Go);
        }
        breaker.succeed();
        assert_eq!((breaker.advice(now.run), breaker.failures()), (Advice::Go, 0));
    }

    #[test]
    fn the_next_run_leaves_it_alone_just_as_long() {
        let failed = start();
        for failures in 1..12 {
            let mut breaker = Breaker::default();
            (0..failures).for_each(|_| breaker.fail(failed));
            for seconds in [0, 1, 29, 61, 599, 900] {
                let now = later(failed, Duration::from_secs(seconds));
                let next = Breaker::restore(failures, failed.clock, now);
                let expect = match breaker.advice(now.run) {
                    Advice::Wait(_) => Advice::Go,
                    other => other,
                };
                assert_eq!(next.advice(now.run), expect, "{failures} failures, {seconds} s later");
                assert_eq!((next.failures(), next.failed_at()), (failures, Some(failed.clock)));
            }
        }
        let check = |ahead: u64, expect: bool| {
            let failed_at = failed.clock + Duration::from_secs(ahead);
            let advice = Breaker::restore(9, failed_at, failed).advice(failed.run);
            assert_eq!(matches!(advice, Advice::LeaveAlone(_)), expect, "{ahead}: {advice:?}");
        };
        check(5, true);
        check(3600, false);
    }

    #[test]
    fn who_is_asked_for_is_tried_once() {
        let now = start();
        let mut breaker = Breaker::default();
        breaker.ask_for();
        for _ in 0..9 {
            breaker.fail(now);
        }
        assert!(
            matches!(breaker.advice(now.run), Advice::LeaveAlone(_)),
            "asked for before there was a reason"
        );
        breaker.ask_for();
        assert_eq!(breaker.advice(now.run), Advice::Go);
        breaker.fail(now);
        assert!(matches!(breaker.advice(now.run), Advice::LeaveAlone(_)));
    }
}
