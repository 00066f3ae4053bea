//! When to try a server again: pure. A failure makes the next try wait a little; after five in a row the server is left
//! alone, for longer each time a try fails again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Failures in a row after which a server is left alone.
const PATIENCE: u32 = 5;
/// How long a try waits after one failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long a server is left alone after so many failures, and after each further one.
const RESTS: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
    LONGEST_REST,
];
const LONGEST_REST: Duration = Duration::from_secs(600);

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

/// A moment, on the clock that only goes forward, and on the one that other runs of the program share.
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

/// A server's past, as far as it matters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    failures: u32,
    failed_at: Option<SystemTime>,
    next_try: Option<Instant>,
    /// Somebody asked for it by name, so the next try waits for nothing.
    asked_for: bool,
}

impl Breaker {
    /// What an earlier run left. A new run makes no pause before it tries, as whoever started it did; but it, too,
    /// leaves alone what is to be left alone.
    pub(crate) fn restore(failures: u32, failed_at: SystemTime, now: Moment) -> Self {
        let past = Self { failures, failed_at: Some(failed_at), ..Self::default() };
        let age = match now.clock.duration_since(failed_at) {
            Ok(age) => age,
            // Another machine's clock may be ahead a little; one that was set back says nothing.
            Err(ahead) if ahead.duration() < LONGEST_REST => Duration::ZERO,
            Err(_) => return past,
        };
        if failures < PATIENCE {
            return past;
        }
        Self { next_try: Some(now.run + pause(failures, failed_at).saturating_sub(age)), ..past }
    }

    /// Whether to try now.
    pub(crate) fn advice(&self, now: Instant) -> Advice {
        let left = self.next_try.and_then(|next| next.checked_duration_since(now));
        match left.filter(|left| !left.is_zero() && !self.asked_for) {
            // After the rest one try is let through: the connect that all who wait share.
            None => Advice::Go,
            Some(left) if self.failures >= PATIENCE => Advice::LeaveAlone(left),
            Some(left) => Advice::Wait(left),
        }
    }

    /// Lets the next try go ahead, whatever happened before.
    pub(crate) fn ask_for(&mut self) {
        self.asked_for = self.failures > 0;
    }

    /// It answered: the past is forgotten.
    pub(crate) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// It failed.
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

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// When the last of them was.
    pub(crate) fn failed_at(&self) -> Option<SystemTime> {
        self.failed_at
    }
}

/// How long to wait after so many failures, up to a quarter more or less, so that many do not try at one moment.
/// How much is drawn from when the last one was: every run comes to the same.
fn pause(failures: u32, failed_at: SystemTime) -> Duration {
    let further = failures.checked_sub(PATIENCE).and_then(|further| usize::try_from(further).ok());
    let usual = match further {
        Some(further) => RESTS.get(further).copied().unwrap_or(LONGEST_REST),
        None => FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1)),
    };
    // Moments are kept in milliseconds.
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
        // Half open: one try; where it fails, the rest is longer, up to the longest.
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
