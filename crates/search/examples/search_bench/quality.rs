//! How good the ranking is on each set, beside the baselines that were measured on it.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use toolhub_search::metrics::{Report, Tally};
use toolhub_search::{Index, Request, Settings};

use crate::columns::{columns, percent};
use crate::sets::Set;

/// What others reach, as R@10 / nDCG@10: BM25 on lower-cased words; BM25 with identifiers split, stems and parameters
/// (Chinese by characters and pairs, or glossed by a dictionary); MiniLM-L6 int8; the sum of the last two. The rows of
/// metatool_single and bfcl were measured on samples of 2,000 and 1,000 requests, those of ultratool on all 1,000.
const BASELINES: &[(&str, [&str; 4])] = &[
    ("metatool_single", ["49.2 / 36.3", "69.5 / 55.6", "83.8 / 69.5", "77.3 / 63.2"]),
    ("bfcl", ["71.5 / 58.9", "87.8 / 73.6", "87.8 / 70.3", "92.0 / 78.1"]),
    ("sealtools", ["76.4 / 71.5", "90.2 / 87.3", "68.2 / 64.5", "90.8 / 88.1"]),
    ("acebench_zh", ["13.1 / 10.7", "93.0 / 83.3", "", ""]),
    ("ultratool_dev_en", ["44.6 / 30.7", "83.4 / 66.5", "78.1 / 63.1", "86.8 / 71.1"]),
    ("ultratool_dev_zh", ["", "85.9 / 70.8", "", ""]),
    ("ultratool_dev_zh2en", ["8.0 / 5.4", "74.5 / 60.2", "7.7 / 5.0", ""]),
];

#[derive(Serialize)]
pub(crate) struct Row {
    set: String,
    tools: usize,
    #[serde(flatten)]
    report: Report,
}

pub(crate) fn measure(sets: &[Set], settings: &Settings) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for set in sets.iter().filter(|set| !set.queries.is_empty()) {
        rows.push(row(&set.name, set, set, settings));
    }
    // English requests over Chinese tools: two aligned sets crossed.
    let named = |name: &str| sets.iter().find(|set| set.name == name);
    if let (Some(queries), Some(tools)) = (named("ultratool_dev_en"), named("ultratool_dev_zh")) {
        rows.push(row("ultratool_dev_en2zh (crossed)", queries, tools, settings));
    }
    Ok(rows)
}

fn row(name: &str, queries: &Set, tools: &Set, settings: &Settings) -> Row {
    let start = Instant::now();
    let index = Index::new(tools.tools(), settings.clone());
    let built = start.elapsed();
    // What is unpacked on first use is not part of any request's time.
    index.rank(&Request::new("warm up 预热"));
    let mut tally = Tally::default();
    for query in &queries.queries {
        let start = Instant::now();
        let ranking = index.rank(&Request::new(&query.query));
        let took = start.elapsed();
        let found: Vec<&str> = ranking.hits.iter().filter_map(|hit| tools.id_of(hit.tool)).collect();
        let right: Vec<&str> = query.relevant.iter().map(String::as_str).collect();
        tally.add(&found, &right, took);
    }
    Row { set: name.to_owned(), tools: tools.tools.len(), report: tally.report(built) }
}

pub(crate) fn table(rows: &[Row]) -> String {
    let head = [
        "set",
        "tools",
        "requests",
        "R@1",
        "R@5",
        "R@10",
        "nDCG@10",
        "MRR",
        "p50 ms",
        "p99 ms",
        "plain BM25",
        "BM25+",
        "MiniLM",
        "both",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let report = &row.report;
        let mut line = vec![row.set.clone(), row.tools.to_string(), report.queries.to_string()];
        let shares = [report.recall_1, report.recall_5, report.recall_10, report.ndcg_10, report.mrr];
        line.extend(shares.map(percent));
        line.extend([report.latency_ms.p50, report.latency_ms.p99].map(|time| format!("{time:.2}")));
        let baseline = BASELINES.iter().find(|(set, _)| *set == row.set);
        line.extend(baseline.map_or([""; 4], |(_, cells)| *cells).map(str::to_owned));
        lines.push(line);
    }
    columns(&lines)
}
