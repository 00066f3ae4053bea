//! The ranking quality on each set, beside BM25 in the same run and cited figures.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use toolhub_search::metrics::{SearchReport, SearchTally};
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

use crate::bm25::{self, Terms};
use crate::columns::{columns, percent};
use crate::sets::Set;

/// A figure from another source, which this program does not measure.
struct CitedResult {
    set: &'static str,
    method: &'static str,
    /// Number of requests it was measured on.
    requests: usize,
    recall_10: f64,
    ndcg_10: f64,
}

/// The source of the cited figures.
const CITED_FROM: &str = "measured by those who prepared the sets, with all-MiniLM-L6-v2 (int8), alone and added to a BM25 of their own (score / best score + cosine), and with a Chinese-English dictionary";

const MINILM: &str = "MiniLM";
const MINILM_AND_BM25: &str = "MiniLM and BM25";
const BM25_AND_DICTIONARY: &str = "BM25 and dictionary";

const CITED: &[CitedResult] = &[
    cited("bfcl", MINILM, 1000, [87.8, 70.3]),
    cited("bfcl", MINILM_AND_BM25, 1000, [92.0, 78.1]),
    cited("metatool_single", MINILM, 2000, [83.8, 69.5]),
    cited("metatool_single", MINILM_AND_BM25, 2000, [77.3, 63.2]),
    cited("sealtools", MINILM, 2054, [68.2, 64.5]),
    cited("sealtools", MINILM_AND_BM25, 2054, [90.8, 88.1]),
    cited("ultratool, all domains, en", MINILM, 1000, [78.1, 63.1]),
    cited("ultratool, all domains, en", MINILM_AND_BM25, 1000, [86.8, 71.1]),
    cited("ultratool, all domains, zh2en", MINILM, 1000, [7.7, 5.0]),
    cited("ultratool, all domains, zh2en", BM25_AND_DICTIONARY, 1000, [74.5, 60.2]),
];

const fn cited(set: &'static str, method: &'static str, requests: usize, figures: [f64; 2]) -> CitedResult {
    let [recall_10, ndcg_10] = figures;
    CitedResult { set, method, requests, recall_10, ndcg_10 }
}

#[derive(Serialize)]
pub(crate) struct Row {
    set: String,
    tools: usize,
    #[serde(flatten)]
    report: SearchReport,
    /// BM25 on lower-cased words of name and description, in the same run.
    plain_bm25: Baseline,
    /// BM25 on the terms of the index, in the same run.
    bm25: Baseline,
}

/// The quality of another ranking on the same requests.
#[derive(Serialize)]
struct Baseline {
    #[serde(rename = "recall@10")]
    recall_10: f64,
    #[serde(rename = "ndcg@10")]
    ndcg_10: f64,
}

impl From<SearchReport> for Baseline {
    fn from(report: SearchReport) -> Self {
        Self { recall_10: report.recall_10, ndcg_10: report.ndcg_10 }
    }
}

pub(crate) fn measure(sets: &[Set], settings: &RankingSettings) -> Result<Vec<Row>> {
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

fn row(name: &str, queries: &Set, tools: &Set, settings: &RankingSettings) -> Row {
    let start = Instant::now();
    let index = ToolIndex::new(tools.tools(), settings.clone());
    let built = start.elapsed();
    // Data decompressed on first use must not count as request time.
    index.rank(&SearchRequest::new("warm up 预热"));
    let mut tally = SearchTally::default();
    for query in &queries.queries {
        let start = Instant::now();
        let ranking = index.rank(&SearchRequest::new(&query.query));
        let took = start.elapsed();
        let found: Vec<&str> = ranking.hits.iter().filter_map(|hit| tools.id_of(hit.tool)).collect();
        let right: Vec<&str> = query.relevant.iter().map(String::as_str).collect();
        tally.add(&found, &right, took);
    }
    Row {
        set: name.to_owned(),
        tools: tools.tools.len(),
        report: tally.report(built),
        plain_bm25: bm25::measure(queries, tools, Terms::Plain).into(),
        bm25: bm25::measure(queries, tools, Terms::Index).into(),
    }
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
        "BM25",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let report = &row.report;
        let mut line = vec![row.set.clone(), row.tools.to_string(), report.queries.to_string()];
        let shares = [report.recall_1, report.recall_5, report.recall_10, report.ndcg_10, report.mrr];
        line.extend(shares.map(percent));
        line.extend([report.latency_ms.p50, report.latency_ms.p99].map(|time| format!("{time:.2}")));
        for baseline in [&row.plain_bm25, &row.bm25] {
            line.push(format!("{} / {}", percent(baseline.recall_10), percent(baseline.ndcg_10)));
        }
        lines.push(line);
    }
    format!("{}\nCited, not measured by this run: {CITED_FROM}\n\n{}", columns(&lines), cited_table())
}

fn cited_table() -> String {
    let mut lines = vec![["set", "method", "requests", "R@10 / nDCG@10"].map(str::to_owned).to_vec()];
    for cited in CITED {
        let figures = format!("{:.1} / {:.1}", cited.recall_10, cited.ndcg_10);
        lines.push(vec![cited.set.to_owned(), cited.method.to_owned(), cited.requests.to_string(), figures]);
    }
    columns(&lines)
}
