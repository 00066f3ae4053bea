//! Statistics of many calls, added up in memory, so that a group of calls costs a handful of writes.

use std::time::{Duration, SystemTime};

use toolhub_core::call_log::{AttemptStatus, StoredAttempt};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::statistics::{CallTally, ToolStatistics};
use toolhub_core::{FastMap, Source, ToolName};

/// Statistics that are not yet written.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingStatistics(FastMap<Source, FastMap<ToolName, ToolStatistics>>);

impl PendingStatistics {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts the attempts of a call.
    pub(crate) fn count(&mut self, attempts: &[StoredAttempt], at: SystemTime) {
        for attempt in attempts {
            self.count_attempt(&attempt.source, &attempt.tool, attempt.status, attempt.took, at);
        }
    }

    /// Counts the attempts of a call that is not recorded.
    pub(crate) fn count_tried(&mut self, attempts: &[AttemptRecord], at: SystemTime) {
        for attempt in attempts {
            self.count_attempt(&attempt.source, &attempt.tool, (&attempt.end).into(), attempt.took, at);
        }
    }

    /// Adds other statistics.
    pub(crate) fn add(&mut self, other: Self) {
        for more in other.0.into_values().flat_map(FastMap::into_values) {
            let sum = self.of(&more.source, &more.tool);
            for (day, tally) in more.days {
                let day: &mut CallTally = sum.days.entry(day).or_default();
                day.successes += tally.successes;
                day.failures += tally.failures;
            }
            for (step, count) in more.latency.buckets() {
                sum.latency.add(step, count);
            }
            sum.last_success = sum.last_success.max(more.last_success);
            sum.last_failure = sum.last_failure.max(more.last_failure);
        }
    }

    /// The statistics in a fixed order: writers that lock rows in the same order cannot deadlock.
    pub(crate) fn sorted(&self) -> Vec<&ToolStatistics> {
        let mut entries: Vec<&ToolStatistics> = self.0.values().flat_map(FastMap::values).collect();
        entries.sort_by_key(|entry| (entry.source.to_string(), entry.tool.clone()));
        entries
    }

    /// Converts to the statistics in a fixed order.
    pub(crate) fn into_sorted(self) -> Vec<ToolStatistics> {
        let mut entries: Vec<ToolStatistics> = self.0.into_values().flat_map(FastMap::into_values).collect();
        entries.sort_by_key(|entry| (entry.source.to_string(), entry.tool.clone()));
        entries
    }

    /// Counts one attempt.
    fn count_attempt(
        &mut self,
        source: &Source,
        tool: &ToolName,
        status: AttemptStatus,
        took: Duration,
        at: SystemTime,
    ) {
        let Some(success) = status.success() else { return };
        // Lookup first: only the first use of a tool clones its name.
        match self.0.get_mut(source).and_then(|tools| tools.get_mut(tool)) {
            Some(entry) => entry.count(success, took, at),
            None => self.of(source, tool).count(success, took, at),
        }
    }

    /// The statistics of one tool, created if necessary.
    pub(crate) fn of(&mut self, source: &Source, tool: &ToolName) -> &mut ToolStatistics {
        self.0
            .entry(source.clone())
            .or_default()
            .entry(tool.clone())
            .or_insert_with(|| ToolStatistics::new(source.clone(), tool.clone()))
    }
}
