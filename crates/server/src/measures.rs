//! What the server counts, for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolhub_core::lane::PerLane;

/// The upper bounds of the steps in which durations are counted, in microseconds.
const STEPS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000, 60_000_000];

/// Counts requests, those of each lane for themselves.
#[derive(Debug, Default)]
pub struct Measures(PerLane<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By the first digit of their status.
    statuses: [AtomicU64; 6],
    under_way: AtomicU64,
    steps: [AtomicU64; STEPS.len()],
    sum: AtomicU64,
}

impl Measures {
    pub(crate) fn begin(&self) {
        self.0.here().under_way.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, status: u16, took: Duration) {
        let counts = self.0.here();
        counts.under_way.fetch_sub(1, Ordering::Relaxed);
        let place = usize::from(status / 100).min(counts.statuses.len() - 1);
        counts.statuses[place].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.sum.fetch_add(micros, Ordering::Relaxed);
        if let Some(step) = STEPS.iter().position(|bound| micros <= *bound) {
            counts.steps[step].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What all lanes have counted of something.
    fn sum(&self, of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.0.all().fold(0, |sum, counts| sum.wrapping_add(of(counts).load(Ordering::Relaxed)))
    }

    /// Requests that are being answered.
    pub fn under_way(&self) -> u64 {
        self.sum(|counts| &counts.under_way)
    }

    /// Adds all of it in Prometheus' text format.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("# TYPE toolhub_http_requests_total counter\n");
        let mut all = 0;
        for digit in 1..6 {
            let count = self.sum(|counts| &counts.statuses[digit]);
            all += count;
            let _ = writeln!(out, "toolhub_http_requests_total{{status=\"{digit}xx\"}} {count}");
        }
        let _ = writeln!(out, "# TYPE toolhub_http_requests_under_way gauge");
        let _ = writeln!(out, "toolhub_http_requests_under_way {}", self.under_way());
        out.push_str("# TYPE toolhub_http_request_seconds histogram\n");
        let mut below = 0;
        for (step, bound) in STEPS.iter().enumerate() {
            below += self.sum(|counts| &counts.steps[step]);
            let seconds = *bound as f64 / 1e6;
            let _ = writeln!(out, "toolhub_http_request_seconds_bucket{{le=\"{seconds}\"}} {below}");
        }
        let _ = writeln!(out, "toolhub_http_request_seconds_bucket{{le=\"+Inf\"}} {all}");
        let sum = self.sum(|counts| &counts.sum) as f64 / 1e6;
        let _ = writeln!(out, "toolhub_http_request_seconds_sum {sum}");
        let _ = writeln!(out, "toolhub_http_request_seconds_count {all}");
    }
}
