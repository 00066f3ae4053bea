//! Usage statistics of tools: successes and failures by day, and latency. The engine derives scores from them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::source::Source;
use crate::tool::ToolName;

/// A day since 1970-01-01, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day(pub i64);

impl Day {
    /// The day of a time.
    pub fn of(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX))
    }
}

/// Numbers of successes and failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTally {
    /// Successes.
    pub successes: u64,
    /// Failures.
    pub failures: u64,
}

impl CallTally {
    /// The sum.
    pub fn total(self) -> u64 {
        self.successes + self.failures
    }

    /// Counts one result.
    pub fn count(&mut self, success: bool) {
        if success {
            self.successes += 1;
        } else {
            self.failures += 1;
        }
    }
}

/// Latency histogram of successes with buckets of half an octave: percentiles are accurate to about 20 %.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyHistogram(BTreeMap<u8, u64>);

impl LatencyHistogram {
    /// The bucket of a duration.
    pub fn bucket(took: Duration) -> u8 {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let octave = micros.ilog2();
        // The upper half of the octave starts at √2 times its lower bound; squared to use integers.
        let half = u128::from(micros) * u128::from(micros) >= (1_u128 << (2 * octave + 1));
        u8::try_from(2 * octave + u32::from(half)).unwrap_or(u8::MAX)
    }

    /// The middle of a bucket.
    fn middle(bucket: u8) -> Duration {
        Duration::from_secs_f64(2_f64.powf(f64::from(bucket) / 2.0 + 0.25) / 1e6)
    }

    /// Counts one duration.
    pub fn count(&mut self, took: Duration) {
        self.add(Self::bucket(took), 1);
    }

    /// Adds to one bucket.
    pub fn add(&mut self, bucket: u8, count: u64) {
        *self.0.entry(bucket).or_default() += count;
    }

    /// The non-empty buckets with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.0.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// The duration that `share` (0 to 1) of the successes did not exceed; `None` without successes.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let total: u64 = self.0.values().sum();
        let target = (share * total as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += count;
            if seen as f64 >= target {
                return Some(Self::middle(*bucket));
            }
        }
        None
    }
}

/// The statistics of one tool at one source.
#[derive(Debug, Clone)]
pub struct ToolStatistics {
    /// The source.
    pub source: Source,
    /// The tool.
    pub tool: ToolName,
    /// Results by day.
    pub days: BTreeMap<Day, CallTally>,
    /// Latency of successes.
    pub latency: LatencyHistogram,
    /// Time of the last success.
    pub last_success: Option<SystemTime>,
    /// Time of the last failure.
    pub last_failure: Option<SystemTime>,
}

impl ToolStatistics {
    /// Statistics of an unused tool.
    pub fn new(source: Source, tool: ToolName) -> Self {
        let (days, latency) = (BTreeMap::new(), LatencyHistogram::default());
        Self { source, tool, days, latency, last_success: None, last_failure: None }
    }

    /// Counts one use.
    pub fn count(&mut self, success: bool, took: Duration, at: SystemTime) {
        self.days.entry(Day::of(at)).or_default().count(success);
        let last = if success { &mut self.last_success } else { &mut self.last_failure };
        *last = (*last).max(Some(at));
        if success {
            self.latency.count(took);
        }
    }

    /// The sum over all days.
    pub fn tally(&self) -> CallTally {
        self.days.values().fold(CallTally::default(), |sum, day| CallTally {
            successes: sum.successes + day.successes,
            failures: sum.failures + day.failures,
        })
    }

    /// Time of the last use.
    pub fn last_used(&self) -> Option<SystemTime> {
        self.last_success.max(self.last_failure)
    }
}

/// What a summary contains.
#[derive(Debug, Clone, Copy)]
pub struct SummaryQuery {
    /// The first day.
    pub since: Day,
    /// Maximum number of tools.
    pub tools: usize,
}

/// Sums over many tools.
#[derive(Debug, Clone, Default)]
pub struct StatisticsSummary {
    /// Results by day.
    pub days: BTreeMap<Day, CallTally>,
    /// Latency of all successes.
    pub latency: LatencyHistogram,
    /// The tools that were used most, on all days.
    pub most_used: Vec<ToolStatistics>,
}

impl StatisticsSummary {
    /// The summary of these tools, which are sorted by source and name.
    pub fn of(mut statistics: Vec<ToolStatistics>, query: SummaryQuery) -> Self {
        let mut summary = Self::default();
        statistics.iter().for_each(|entry| summary.add(entry, query.since));
        statistics.sort_by_key(|entry| std::cmp::Reverse(entry.tally().total()));
        statistics.truncate(query.tools);
        summary.most_used = statistics;
        summary
    }

    /// Adds the results of a tool from the day `since` on, and the latencies of all its successes, which are not kept by day.
    pub fn add(&mut self, entry: &ToolStatistics, since: Day) {
        for (day, tally) in entry.days.range(since..) {
            let sum = self.days.entry(*day).or_default();
            sum.successes += tally.successes;
            sum.failures += tally.failures;
        }
        entry.latency.buckets().for_each(|(bucket, count)| self.latency.add(bucket, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_twenty_percent() {
        let mut latency = LatencyHistogram::default();
        for millis in 1..=1000 {
            latency.count(Duration::from_millis(millis));
        }
        for (share, expect) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
            let found = latency.percentile(share).unwrap().as_secs_f64() * 1e3;
            assert!((found / expect - 1.0).abs() < 0.2, "{share}: {found}");
        }
        assert_eq!(LatencyHistogram::default().percentile(0.5), None);
        for extreme in [Duration::ZERO, Duration::MAX] {
            latency.count(extreme);
        }
        assert!(latency.percentile(1.0).unwrap() > Duration::from_secs(3600));
    }

    #[test]
    fn buckets_grow_with_latency() {
        let buckets: Vec<u8> =
            (0..40).map(|power| LatencyHistogram::bucket(Duration::from_micros(1 << power))).collect();
        assert!(buckets.is_sorted() && buckets[39] == 78, "{buckets:?}");
        assert_eq!(LatencyHistogram::bucket(Duration::from_micros(1449)), 21);
        assert_eq!(LatencyHistogram::bucket(Duration::from_micros(1448)), 20);
    }
}
