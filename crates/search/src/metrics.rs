//! Ranking quality: recall, nDCG, mean reciprocal rank and latencies over many requests.

use std::time::Duration;

use serde::Serialize;

/// The number of ranks for nDCG and the mean reciprocal rank.
const DEPTH: usize = 10;

/// Accumulates the results of requests.
#[derive(Debug, Default, Clone)]
pub struct SearchTally {
    queries: usize,
    recall: [f64; 3],
    ndcg: f64,
    reciprocal: f64,
    unanswerable: usize,
    refused: usize,
    latencies: Vec<Duration>,
}

/// The metrics of a set of requests. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchReport {
    /// The number of requests.
    pub queries: usize,
    /// The share of relevant tools that are first.
    #[serde(rename = "recall@1")]
    pub recall_1: f64,
    /// The share of relevant tools among the first five.
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    /// The share of relevant tools among the first ten.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// Normalised discounted cumulative gain of the first ten.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// The mean reciprocal rank of the first relevant tool.
    pub mrr: f64,
    /// Latency of a request.
    pub latency_ms: Latencies,
    /// Time to build the index.
    pub index_ms: f64,
    /// The number of additional requests without a relevant tool, if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswerable: usize,
    /// The share of these that were answered with no tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The answer to a request without a relevant tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnanswerableResult {
    /// No tool, which is correct.
    Refused,
    /// Some tools, which is wrong.
    Shown,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latencies {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl SearchTally {
    /// Adds one request: the found tools, best first, the relevant ones, and the latency. A request without a
    /// relevant tool says nothing about the ranking and is ignored here; see [`Self::add_unanswerable`].
    pub fn add<T: PartialEq>(&mut self, found: &[T], relevant: &[T], took: Duration) {
        if relevant.is_empty() {
            return;
        }
        self.queries += 1;
        self.latencies.push(took);
        let is_relevant = |tool: &&T| relevant.contains(tool);
        for (recall, depth) in self.recall.iter_mut().zip([1, 5, DEPTH]) {
            *recall += found.iter().take(depth).filter(is_relevant).count() as f64 / relevant.len() as f64;
        }
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let top = || {
            found.iter().take(DEPTH).enumerate().filter(|(_, tool)| is_relevant(tool)).map(|(rank, _)| rank)
        };
        let ideal: f64 = (0..relevant.len().min(DEPTH)).map(gain).sum();
        self.ndcg += top().map(gain).sum::<f64>() / ideal;
        self.reciprocal += top().next().map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0));
    }

    /// Adds a request without a relevant tool.
    pub fn add_unanswerable(&mut self, result: UnanswerableResult, took: Duration) {
        self.unanswerable += 1;
        self.refused += usize::from(result == UnanswerableResult::Refused);
        self.latencies.push(took);
    }

    /// The means over all requests so far.
    pub fn report(&self, index: Duration) -> SearchReport {
        let share = |sum: f64| if self.queries == 0 { 0.0 } else { sum / self.queries as f64 };
        let [recall_1, recall_5, recall_10] = self.recall.map(share);
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        let percentile = |part: f64| {
            let rank = (part * latencies.len() as f64).ceil() as usize;
            latencies.get(rank.saturating_sub(1)).map_or(0.0, |took| milliseconds(*took))
        };
        SearchReport {
            queries: self.queries,
            recall_1,
            recall_5,
            recall_10,
            ndcg_10: share(self.ndcg),
            mrr: share(self.reciprocal),
            latency_ms: Latencies { p50: percentile(0.50), p99: percentile(0.99) },
            index_ms: milliseconds(index),
            unanswerable: self.unanswerable,
            refused: (self.unanswerable > 0).then(|| self.refused as f64 / self.unanswerable as f64),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approx_equal(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn averages_over_requests() {
        let mut tally = SearchTally::default();
        tally.add(&["a", "b", "c"], &["a"], Duration::from_millis(1));
        tally.add(&["x", "b", "c"], &["c", "z"], Duration::from_millis(3));
        let report = tally.report(Duration::from_millis(7));
        assert_eq!(report.queries, 2);
        assert!(approx_equal(report.recall_1, 0.5));
        assert!(approx_equal(report.recall_5, 0.75));
        assert!(approx_equal(report.mrr, (1.0 + 1.0 / 3.0) / 2.0));
        let second = (1.0 / 4_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!(approx_equal(report.ndcg_10, (1.0 + second) / 2.0));
        assert!(approx_equal(report.latency_ms.p50, 1.0) && approx_equal(report.latency_ms.p99, 3.0));
    }

    #[test]
    fn report_without_queries_is_zero() {
        let mut tally = SearchTally::default();
        tally.add(&["a"], &[], Duration::from_millis(1));
        let report = tally.report(Duration::ZERO);
        assert_eq!(report.queries, 0);
        assert!(approx_equal(report.recall_10, 0.0));
    }

    #[test]
    fn counts_unanswerable_requests_separately() {
        let mut tally = SearchTally::default();
        tally.add(&["a"], &["a"], Duration::from_millis(1));
        for result in [
            UnanswerableResult::Refused,
            UnanswerableResult::Shown,
            UnanswerableResult::Refused,
            UnanswerableResult::Refused,
        ] {
            tally.add_unanswerable(result, Duration::from_millis(2));
        }
        let report = tally.report(Duration::ZERO);
        assert_eq!((report.queries, report.unanswerable, report.refused), (1, 4, Some(0.75)));
        assert!(approx_equal(report.recall_1, 1.0));
        let json = serde_json::to_value(report).unwrap();
        assert_eq!((&json["unanswerable"], &json["refused"]), (&4.into(), &0.75.into()));
    }

    #[test]
    fn report_serializes_to_published_json() {
        let report = serde_json::to_value(SearchTally::default().report(Duration::ZERO)).unwrap();
        let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["queries", "recall@1", "recall@5", "recall@10", "ndcg@10", "mrr", "latency_ms", "index_ms"]
        );
    }
}
