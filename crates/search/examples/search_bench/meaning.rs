//! The gain of a sentence encoder on a sample of each set, and its cost.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use toolhub_search::metrics::{SearchReport, SearchTally};
use toolhub_search::{RankingSettings, SearchRequest, SentenceEncoder, ToolIndex};

use crate::columns::{columns, percent};
use crate::sets::{Query, Set};

/// Maximum number of requests per set, evenly distributed.
const SAMPLE: usize = 1000;
/// The same for the largest set, `metatool_single`: as many requests as its baselines were measured on.
const LARGE_SAMPLE: usize = 2000;

#[derive(Serialize)]
pub(crate) struct Row {
    set: String,
    tools: usize,
    without: SearchReport,
    with: SearchReport,
    /// Wall time in seconds to compute the vectors of all tools, on all threads.
    vectors_s: f64,
}

pub(crate) fn measure(sets: &[Set], folder: &Path, settings: &RankingSettings) -> Result<Vec<Row>> {
    let model = Arc::new(SentenceEncoder::open(folder)?);
    let mut rows = Vec::new();
    for set in sets.iter().filter(|set| !set.queries.is_empty()) {
        let sample_size = if set.name == "metatool_single" { LARGE_SAMPLE } else { SAMPLE };
        let count = set.queries.len().min(sample_size);
        let sample: Vec<&Query> =
            (0..count).filter_map(|at| set.queries.get(at * set.queries.len() / count)).collect();
        let plain = ToolIndex::new(set.tools(), settings.clone());
        let start = Instant::now();
        let index = plain.clone().with_embedder(Arc::<SentenceEncoder>::clone(&model))?;
        let vectors_s = start.elapsed().as_secs_f64();
        rows.push(Row {
            set: set.name.clone(),
            tools: set.tools.len(),
            without: report(&plain, set, &sample),
            with: report(&index, set, &sample),
            vectors_s,
        });
    }
    Ok(rows)
}

fn report(index: &ToolIndex, set: &Set, sample: &[&Query]) -> SearchReport {
    index.rank(&SearchRequest::new("warm up 预热"));
    let mut tally = SearchTally::default();
    for query in sample {
        let start = Instant::now();
        let ranking = index.rank(&SearchRequest::new(&query.query));
        let took = start.elapsed();
        let found: Vec<&str> = ranking.hits.iter().filter_map(|hit| set.id_of(hit.tool)).collect();
        let right: Vec<&str> = query.relevant.iter().map(String::as_str).collect();
        tally.add(&found, &right, took);
    }
    tally.report(std::time::Duration::ZERO)
}

pub(crate) fn table(rows: &[Row]) -> String {
    let head =
        ["set", "tools", "requests", "without", "with", "ms per tool", "p50 ms without", "p50 ms", "p99 ms"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let quality =
            |report: &SearchReport| format!("{} / {}", percent(report.recall_10), percent(report.ndcg_10));
        lines.push(vec![
            row.set.clone(),
            row.tools.to_string(),
            row.with.queries.to_string(),
            quality(&row.without),
            quality(&row.with),
            format!("{:.1}", row.vectors_s * 1000.0 / row.tools.max(1) as f64),
            format!("{:.2}", row.without.latency_ms.p50),
            format!("{:.1}", row.with.latency_ms.p50),
            format!("{:.1}", row.with.latency_ms.p99),
        ]);
    }
    columns(&lines)
}
