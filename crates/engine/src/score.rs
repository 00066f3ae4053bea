//! Ranks tools by their history: lower confidence bound of the success rate, then latency. Older days weigh less.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use toolhub_core::lang::LocalizedText;
use toolhub_core::statistics::{CallTally, Day, ToolStatistics};
use toolhub_core::{FastMap, Source, ToolName};

/// Half-life of a result's weight, in days.
const HALF_LIFE_DAYS: f64 = 14.0;
/// z-value of the 95 % confidence interval.
const Z: f64 = 1.96;
/// Weight of latency beside the success rate.
const SPEED_SHARE: f64 = 0.15;

/// Statistics of all tools. The lock is held for well under a microsecond.
#[derive(Debug, Default)]
pub struct Scores(Mutex<BySource>);

type BySource = FastMap<Source, FastMap<ToolName, ToolStatistics>>;

/// The score of one tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// From 0 to 1, higher is better.
    pub value: f64,
    /// Successes and failures, over all days.
    pub tally: CallTally,
    /// Time of the last success.
    pub last_success: Option<SystemTime>,
    /// Median duration of successful calls.
    pub median: Option<Duration>,
}

/// One use of a tool.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    pub(crate) success: bool,
    pub(crate) took: Duration,
    pub(crate) at: SystemTime,
}

impl Scores {
    fn lock(&self) -> MutexGuard<'_, BySource> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads stored statistics; replaces the current entries of the same tools.
    pub fn load(&self, statistics: Vec<ToolStatistics>) {
        let mut by_source = self.lock();
        for entry in statistics {
            by_source.entry(entry.source.clone()).or_default().insert(entry.tool.clone(), entry);
        }
    }

    /// Counts one use at the current time.
    pub fn count(&self, source: &Source, tool: &ToolName, success: bool, took: Duration) {
        self.note(source, tool, Use { success, took, at: SystemTime::now() });
    }

    /// Counts one use.
    pub(crate) fn note(&self, source: &Source, tool: &ToolName, Use { success, took, at }: Use) {
        let mut by_source = self.lock();
        // Lookup first: only the first use of a tool clones its name.
        if let Some(entry) = by_source.get_mut(source).and_then(|tools| tools.get_mut(tool)) {
            return entry.count(success, took, at);
        }
        let tools = by_source.entry(source.clone()).or_default();
        let entry =
            tools.entry(tool.clone()).or_insert_with(|| ToolStatistics::new(source.clone(), tool.clone()));
        entry.count(success, took, at);
    }

    /// The score of one tool.
    pub fn of(&self, source: &Source, tool: &ToolName) -> Score {
        let by_source = self.lock();
        match by_source.get(source).and_then(|tools| tools.get(tool)) {
            Some(entry) => Score::from(entry),
            None => Score::from(&ToolStatistics::new(source.clone(), tool.clone())),
        }
    }
}

impl From<&ToolStatistics> for Score {
    fn from(entry: &ToolStatistics) -> Self {
        let today = Day::of(SystemTime::now());
        let (mut successes, mut failures) = (0.0, 0.0);
        for (day, tally) in &entry.days {
            let age = (today.0 - day.0).max(0) as f64;
            let weight = 0.5_f64.powf(age / HALF_LIFE_DAYS);
            successes += weight * tally.successes as f64;
            failures += weight * tally.failures as f64;
        }
        let median = entry.latency.percentile(0.5);
        let speed = median.map_or(0.5, |median| 1.0 / (1.0 + median.as_secs_f64()));
        let success = wilson_lower_bound(successes, successes + failures);
        Self {
            value: (1.0 - SPEED_SHARE) * success + SPEED_SHARE * speed,
            tally: entry.tally(),
            last_success: entry.last_success,
            median,
        }
    }
}

impl Score {
    /// The score as text.
    pub fn text(&self) -> LocalizedText {
        let total = self.tally.total();
        if total == 0 {
            return LocalizedText::new("never used", "从未用过");
        }
        let (good, value) = (self.tally.successes, self.value);
        let speed = self.median.map(|median| format!(", {}", millis(median))).unwrap_or_default();
        LocalizedText::new(
            format!("score {value:.2}: {good} of {total} succeeded{speed}"),
            format!("评分 {value:.2}：{total} 次中成功 {good} 次{speed}"),
        )
    }
}

fn millis(time: Duration) -> String {
    match time.as_secs_f64() * 1e3 {
        small if small < 10.0 => format!("~{small:.1} ms"),
        large => format!("~{large:.0} ms"),
    }
}

/// Lower bound of the Wilson score interval, with one success and one failure added: so 1 of 1 ranks below 98 of 100,
/// and an unused tool above one that always failed.
pub fn wilson_lower_bound(successes: f64, total: f64) -> f64 {
    let (successes, total) = (successes + 1.0, total + 2.0);
    let rate = successes / total;
    let square = Z * Z / total;
    let spread = Z * (rate * (1.0 - rate) / total + square / (4.0 * total)).sqrt();
    ((rate + square / 2.0 - spread) / (1.0 + square)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(successes: u64, failures: u64) -> f64 {
        let mut entry = ToolStatistics::new(Source::Native, ToolName::new("t"));
        let tally = CallTally { successes, failures };
        entry.days.insert(Day::of(SystemTime::now()), tally);
        Score::from(&entry).value
    }

    #[test]
    fn few_successes_rank_below_many() {
        let best_first =
            [value(980, 20), value(98, 2), value(9, 1), value(1, 0), value(0, 0), value(0, 1), value(0, 9)];
        assert!(best_first.is_sorted_by(|left, right| left > right), "{best_first:?}");
    }

    #[test]
    fn weighs_old_days_less() {
        let mut entry = ToolStatistics::new(Source::Native, ToolName::new("t"));
        let today = Day::of(SystemTime::now());
        entry.days.insert(Day(today.0 - 60), CallTally { successes: 0, failures: 50 });
        entry.days.insert(today, CallTally { successes: 20, failures: 0 });
        let old_failures = Score::from(&entry).value;
        assert!(old_failures > value(20, 50) + 0.2, "{old_failures}");
    }

    #[test]
    fn speed_breaks_ties() {
        let scores = Scores::default();
        let (fast, slow) = (ToolName::new("fast"), ToolName::new("slow"));
        scores.count(&Source::Native, &fast, true, Duration::from_millis(5));
        scores.count(&Source::Native, &slow, true, Duration::from_secs(5));
        assert!(scores.of(&Source::Native, &fast).value > scores.of(&Source::Native, &slow).value);
    }
}
