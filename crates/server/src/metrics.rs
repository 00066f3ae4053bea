//! The metrics of the HTTP server, for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolhub_core::access_record::AccessRecord;
use toolhub_core::io_thread::PerIoThread;

use crate::metrics_text::{MetricKind, MetricsText};

/// The upper bounds of the histogram buckets, in microseconds.
const BUCKET_BOUNDS_MICROS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000, 60_000_000];

/// Counts requests, separately for each I/O thread.
#[derive(Debug, Default)]
pub struct ServerMetrics(PerIoThread<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By the first digit of the status.
    statuses: [AtomicU64; 6],
    in_flight: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS_MICROS.len()],
    sum: AtomicU64,
}

impl ServerMetrics {
    /// Counts a request that began at `began`, until the returned timer is dropped.
    pub(crate) fn begin(&self, began: Instant) -> RequestTimer<'_> {
        self.0.current().in_flight.fetch_add(1, Ordering::Relaxed);
        RequestTimer { metrics: self, began, status: AccessRecord::CLIENT_CLOSED_REQUEST }
    }

    fn end(&self, status: u16, took: Duration) {
        let counts = self.0.current();
        counts.in_flight.fetch_sub(1, Ordering::Relaxed);
        let index = usize::from(status / 100).min(counts.statuses.len() - 1);
        counts.statuses[index].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.sum.fetch_add(micros, Ordering::Relaxed);
        if let Some(step) = BUCKET_BOUNDS_MICROS.iter().position(|bound| micros <= *bound) {
            counts.buckets[step].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the sum of a counter over all threads.
    fn sum(&self, of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.0.all().fold(0, |sum, counts| sum.wrapping_add(of(counts).load(Ordering::Relaxed)))
    }

    /// Returns the number of requests in progress.
    pub fn in_flight(&self) -> u64 {
        self.sum(|counts| &counts.in_flight)
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, out: &mut MetricsText) {
        let mut all = 0;
        let mut requests = out.family(
            "toolhub_http_requests_total",
            MetricKind::Counter,
            "Requests that were answered, by status.",
        );
        for digit in 1..6 {
            let count = self.sum(|counts| &counts.statuses[digit]);
            all += count;
            requests.labelled("status", &format!("{digit}xx"), count);
        }
        out.family("toolhub_http_requests_under_way", MetricKind::Gauge, "Requests that are being answered.")
            .value(self.in_flight());
        let mut seconds = out.family(
            "toolhub_http_request_seconds",
            MetricKind::Histogram,
            "How long requests took to be answered; streams, until they ended.",
        );
        let mut below = 0;
        for (step, bound) in BUCKET_BOUNDS_MICROS.iter().enumerate() {
            below += self.sum(|counts| &counts.buckets[step]);
            seconds.part_labelled("_bucket", "le", &(*bound as f64 / 1e6).to_string(), below);
        }
        seconds.part_labelled("_bucket", "le", "+Inf", all);
        seconds.part("_sum", self.sum(|counts| &counts.sum) as f64 / 1e6);
        seconds.part("_count", all);
    }
}

/// Counts a request as it ends, also if its client disconnects before the response.
pub(crate) struct RequestTimer<'a> {
    metrics: &'a ServerMetrics,
    began: Instant,
    status: u16,
}

impl RequestTimer<'_> {
    /// Ends the request with the status of its response.
    pub(crate) fn end_with(mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        self.metrics.end(self.status, self.began.elapsed());
    }
}
