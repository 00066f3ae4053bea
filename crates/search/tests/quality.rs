//! Minimum values for the quality of the ranking, one to one and a half percentage points below the current values: a
//! change that finds fewer relevant tools fails here.
//!
//! The requests of the project (`crates/agent/requests`) are always measured. Samples of the published data sets are
//! measured if `TOOLHUB_DATA` is set to a directory that contains them in `retrieval`; `docs/explanation/search.md`
//! lists them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toolhub_core::{RawJson, ServerId, Source, Tool, ToolDefinition};
use toolhub_search::metrics::SearchTally;
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| {
        let packed = File::open(path.with_added_extension("gz")).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        text
    });
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tool(definition: &Value) -> Tool {
    let definition = ToolDefinition::parse(RawJson::of(definition)).unwrap();
    Tool::new(Source::Server(ServerId::new("s")), definition)
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

/// Fails if a value is below its minimum, and prints both.
fn check(set: &str, figures: [f64; 2], floors: [f64; 2]) {
    let is_above = figures.iter().zip(floors).all(|(figure, floor)| *figure >= floor);
    assert!(is_above, "{set}: {figures:.1?} is below {floors:?}");
}

/// In percent: requests whose first tool is relevant, and requests that have a relevant tool for each call among the
/// first five.
#[test]
fn project_requests_meet_minimum_quality() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/requests");
    let sets = [
        ("tools", "tuning", [77.0, 91.0]),
        ("tools", "more", [63.5, 81.0]),
        ("tools", "fresh", [70.0, 90.0]),
        ("tools", "held", [61.5, 80.5]),
        ("servers_tools", "servers_a", [63.5, 81.0]),
        ("servers_tools", "servers_b", [65.5, 85.0]),
        ("servers_tools", "servers_c", [64.5, 83.5]),
    ];
    for (tools, requests, floors) in sets {
        let file = |name: &str| folder.join(name).with_extension("jsonl");
        let index = ToolIndex::new(lines(&file(tools)).iter().map(tool), RankingSettings::default());
        let (mut total, mut first, mut among_five) = (0, 0, 0);
        for line in lines(&file(requests)) {
            let calls = line["expected"].as_array().unwrap();
            if calls.is_empty() {
                continue;
            }
            let ranking = index.rank(&SearchRequest::new(line["request"].as_str().unwrap()).limit(5));
            let found: Vec<&str> = ranking.hits.iter().map(|hit| hit.tool.name().as_str()).collect();
            // Each call lists the tools that are equally suitable for it.
            let serves =
                |call: &Value, name: &str| call["tool"].as_array().unwrap().iter().any(|tool| tool == name);
            total += 1;
            first +=
                usize::from(found.first().is_some_and(|name| calls.iter().any(|call| serves(call, name))));
            among_five += usize::from(calls.iter().all(|call| found.iter().any(|name| serves(call, name))));
        }
        assert!(total > 50, "{requests}: {total} requests");
        check(requests, [share(first, total), share(among_five, total)], floors);
    }
}

/// Number of requests of each published set, evenly spaced.
const SAMPLE: usize = 200;

/// R@10 and nDCG@10 in percent.
#[test]
#[ignore = "needs data: set `TOOLHUB_DATA` and run `cargo xtask test`"]
fn public_benchmarks_meet_minimum_quality() {
    let data = std::env::var_os("TOOLHUB_DATA").map(PathBuf::from).expect("`TOOLHUB_DATA` is set");
    let sets = [
        ("acebench_en", [98.0, 94.0]),
        ("acebench_zh", [98.0, 94.5]),
        ("bfcl", [89.0, 75.0]),
        ("metatool_multi", [79.0, 63.5]),
        ("metatool_single", [79.5, 64.0]),
        ("sealtools", [92.0, 89.5]),
        ("ultratool_dev_en", [87.0, 72.5]),
        ("ultratool_dev_zh", [89.0, 75.0]),
        ("ultratool_dev_zh2en", [86.5, 76.0]),
    ];
    for (set, floors) in sets {
        let folder = data.join("retrieval").join(set);
        let mut ids = Vec::new();
        let mut tools = Vec::new();
        for line in lines(&folder.join("tools.jsonl")) {
            let mut definition =
                serde_json::json!({"name": line["name"], "description": line["description"]});
            if line["parameters"].is_object() {
                definition["inputSchema"] = line["parameters"].clone();
            }
            ids.push(line["id"].as_str().unwrap().to_owned());
            tools.push(Tool::new(Source::Native, ToolDefinition::parse(RawJson::of(&definition)).unwrap()));
        }
        let index = ToolIndex::new(tools.iter().cloned(), RankingSettings::default());
        let id_of = |found: &Tool| {
            let position =
                tools.iter().position(|own| std::sync::Arc::ptr_eq(&own.definition, &found.definition));
            ids[position.unwrap()].as_str()
        };
        let queries = lines(&folder.join("queries.jsonl"));
        let mut tally = SearchTally::default();
        for number in 0..SAMPLE {
            let query = &queries[number * queries.len() / SAMPLE];
            let ranking = index.rank(&SearchRequest::new(query["query"].as_str().unwrap()));
            let found: Vec<&str> = ranking.hits.iter().map(|hit| id_of(hit.tool)).collect();
            let right: Vec<&str> =
                query["relevant"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
            tally.add(&found, &right, Duration::ZERO);
        }
        let report = tally.report(Duration::ZERO);
        assert_eq!(report.queries, SAMPLE, "{set}");
        check(set, [report.recall_10 * 100.0, report.ndcg_10 * 100.0], floors);
    }
}
