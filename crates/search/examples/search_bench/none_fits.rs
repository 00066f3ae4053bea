//! How well "none fits" is told: requests with their tools, without them, and in front of another set's tools.

use serde::Serialize;
use toolhub_search::{Index, Request, Settings};

use crate::columns::{columns, percent};
use crate::sets::{Query, Set};

/// Requests of each set that are tried.
const REQUESTS: usize = 120;
/// Larger sets are left out, as an index is made for every request whose tools are taken away.
const MOST_TOOLS: usize = 5_000;
/// Thresholds for the curve.
const THRESHOLDS: [f32; 9] = [0.20, 0.25, 0.27, 0.30, 0.33, 0.36, 0.40, 0.50, 0.60];

#[derive(Serialize)]
pub(crate) struct Separation {
    set: String,
    requests: usize,
    /// The chance that a request with its tool is trusted more than one whose tools were taken away.
    auc_removed: f64,
    /// The same against requests of other sets.
    auc_foreign: f64,
    /// For each threshold, the shares that pass: with the tool, without it, of other sets.
    curve: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    threshold: f32,
    own: f64,
    removed: f64,
    foreign: f64,
}

#[derive(Default)]
struct Confidences {
    own: Vec<f32>,
    removed: Vec<f32>,
    foreign: Vec<f32>,
}

pub(crate) fn measure(sets: &[Set], settings: &Settings) -> Vec<Separation> {
    let usable = || sets.iter().filter(|set| !set.queries.is_empty() && set.tools.len() <= MOST_TOOLS);
    let mut all = Confidences::default();
    let mut rows = Vec::new();
    for set in usable() {
        let strangers: Vec<&Set> = usable().filter(|other| family(other) != family(set)).collect();
        let found = confidences(set, &strangers, settings);
        rows.push(separation(&set.name, &found, settings));
        all.own.extend(found.own);
        all.removed.extend(found.removed);
        all.foreign.extend(found.foreign);
    }
    rows.push(separation("all", &all, settings));
    rows
}

/// Sets of one origin have tools and requests in common.
fn family(set: &Set) -> &str {
    set.name.split('_').next().unwrap_or(&set.name)
}

fn spread(queries: &[Query], count: usize) -> impl Iterator<Item = &Query> {
    queries.iter().step_by((queries.len() / count.max(1)).max(1)).take(count)
}

fn confidences(set: &Set, strangers: &[&Set], settings: &Settings) -> Confidences {
    let mut found = Confidences::default();
    let index = Index::new(set.tools(), settings.clone());
    for query in spread(&set.queries, REQUESTS) {
        let request = Request::new(&query.query);
        found.own.push(index.rank(&request).confidence);
        let others =
            set.tools.iter().filter(|(id, _)| !query.relevant.contains(id)).map(|(_, tool)| tool.clone());
        found.removed.push(Index::new(others, settings.clone()).rank(&request).confidence);
    }
    let each = REQUESTS / strangers.len().max(1);
    for query in strangers.iter().flat_map(|other| spread(&other.queries, each)) {
        found.foreign.push(index.rank(&Request::new(&query.query)).confidence);
    }
    found
}

fn separation(set: &str, found: &Confidences, settings: &Settings) -> Separation {
    let mut thresholds = THRESHOLDS.to_vec();
    if !thresholds.contains(&settings.fit) {
        thresholds.push(settings.fit);
    }
    let passing = |all: &[f32], threshold: f32| {
        all.iter().filter(|confidence| **confidence >= threshold).count() as f64 / all.len().max(1) as f64
    };
    let curve = thresholds.into_iter().map(|threshold| Point {
        threshold,
        own: passing(&found.own, threshold),
        removed: passing(&found.removed, threshold),
        foreign: passing(&found.foreign, threshold),
    });
    Separation {
        set: set.to_owned(),
        requests: found.own.len(),
        auc_removed: auc(&found.own, &found.removed),
        auc_foreign: auc(&found.own, &found.foreign),
        curve: curve.collect(),
    }
}

/// The share of pairs in which the first is larger; a tie counts half.
fn auc(larger: &[f32], smaller: &[f32]) -> f64 {
    let won = |a: f32| -> f64 {
        smaller
            .iter()
            .map(|b| {
                if a > *b {
                    1.0
                } else if a < *b {
                    0.0
                } else {
                    0.5
                }
            })
            .sum()
    };
    larger.iter().map(|a| won(*a)).sum::<f64>() / (larger.len() * smaller.len()).max(1) as f64
}

pub(crate) fn table(rows: &[Separation]) -> String {
    let head = [
        "set",
        "requests",
        "AUC without its tools",
        "AUC of other sets",
        "shown / shown wrongly at the chosen point",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let chosen = Settings::default().fit;
    let shown = |point: &Point| {
        format!("{} / {}, {}", percent(point.own), percent(point.removed), percent(point.foreign))
    };
    for row in rows {
        let point = row.curve.iter().find(|point| point.threshold == chosen).map(shown).unwrap_or_default();
        let aucs = [row.auc_removed, row.auc_foreign].map(|auc| format!("{auc:.3}"));
        let [removed, foreign] = aucs;
        lines.push(vec![row.set.clone(), row.requests.to_string(), removed, foreign, point]);
    }
    let mut text = columns(&lines);
    if let Some(all) = rows.last() {
        text.push_str("\nthreshold: shown with the tool / without it, of other sets\n");
        for point in &all.curve {
            text.push_str(&format!("{:.2}: {}\n", point.threshold, shown(point)));
        }
    }
    text
}
