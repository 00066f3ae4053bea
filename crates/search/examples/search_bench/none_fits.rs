//! How well the confidence detects requests without a fitting tool: the areas under the ROC curve, the shares that pass each
//! threshold, and the effect of the configured threshold.

use serde::Serialize;
use toolhub_search::RankingSettings;

use crate::cases::{Case, Kind, SIZES, Size};
use crate::columns::{columns, percent};

/// Confidence thresholds of the curve.
const THRESHOLDS: [f32; 15] =
    [0.05, 0.08, 0.10, 0.12, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.50, 0.60, 0.70, 0.80, 0.90];
/// Number of false positives that are printed.
const EXAMPLES: usize = 12;

#[derive(Serialize)]
pub(crate) struct Separation {
    set: String,
    requests: usize,
    /// The probability that a request with its relevant tools has a higher confidence than one whose tools are removed.
    auc_removed: f64,
    /// The same against requests of other sets.
    auc_foreign: f64,
    /// For each threshold, the shares of requests at or above it.
    curve: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    threshold: f32,
    /// Of the requests with their relevant tools.
    own: f64,
    /// Of the requests with a relevant tool among the first ten, which a threshold that is too high would hide.
    found: f64,
    removed: f64,
    foreign: f64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    rows: Vec<Separation>,
    /// Best hits of requests whose relevant tools are removed: request, tool, confidence.
    stand_ins: Vec<(String, String, f32)>,
}

pub(crate) fn measure(cases: &[Case], settings: &RankingSettings) -> Report {
    let whole: Vec<&Case> = cases.iter().filter(|case| case.size == Size::Whole).collect();
    let mut names: Vec<&str> = whole.iter().map(|case| case.set.as_str()).collect();
    names.dedup();
    let of = |name: &str| whole.iter().copied().filter(|case| case.set == name).collect::<Vec<_>>();
    let mut rows: Vec<Separation> = names.iter().map(|name| separation(name, &of(name), settings)).collect();
    rows.push(separation("all", &whole, settings));
    for size in SIZES {
        let drawn: Vec<&Case> = cases.iter().filter(|case| case.size == Size::Drawn(size)).collect();
        if !drawn.is_empty() {
            rows.push(separation(&format!("all, {size} tools drawn"), &drawn, settings));
        }
    }
    Report { rows, stand_ins: stand_ins(&whole) }
}

/// The requests with the highest confidence among those whose tools are removed, evenly over the sets.
fn stand_ins(whole: &[&Case]) -> Vec<(String, String, f32)> {
    let mut removed: Vec<&Case> = whole
        .iter()
        .copied()
        .filter(|case| case.kind == Kind::Removed && case.request.chars().count() < 100)
        .collect();
    removed.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let mut taken: Vec<&Case> = Vec::new();
    for case in removed {
        if taken.len() < EXAMPLES && taken.iter().filter(|other| other.set == case.set).count() < 2 {
            taken.push(case);
        }
    }
    taken.into_iter().map(|case| (case.request.clone(), case.best.clone(), case.confidence)).collect()
}

fn separation(set: &str, cases: &[&Case], settings: &RankingSettings) -> Separation {
    let of = |kind: Kind| cases.iter().filter(|case| case.kind == kind).map(|case| case.confidence).collect();
    let (own, removed, foreign): (Vec<f32>, Vec<f32>, Vec<f32>) =
        (of(Kind::Own), of(Kind::Removed), of(Kind::Foreign));
    let found: Vec<f32> = cases.iter().filter(|case| case.found).map(|case| case.confidence).collect();
    let mut thresholds = THRESHOLDS.to_vec();
    if !thresholds.contains(&settings.min_confidence) {
        thresholds.push(settings.min_confidence);
        thresholds.sort_by(f32::total_cmp);
    }
    let passing = |all: &[f32], threshold: f32| {
        all.iter().filter(|confidence| **confidence >= threshold).count() as f64 / all.len().max(1) as f64
    };
    let curve = thresholds.into_iter().map(|threshold| Point {
        threshold,
        own: passing(&own, threshold),
        found: passing(&found, threshold),
        removed: passing(&removed, threshold),
        foreign: passing(&foreign, threshold),
    });
    Separation {
        set: set.to_owned(),
        requests: own.len(),
        auc_removed: auc(&own, &removed),
        auc_foreign: auc(&own, &foreign),
        curve: curve.collect(),
    }
}

/// The area under the ROC curve: the share of pairs in which the first value is larger. A tie counts half.
pub(crate) fn auc(larger: &[f32], smaller: &[f32]) -> f64 {
    let won = |a: f32, b: f32| {
        if a > b {
            1.0
        } else if a < b {
            0.0
        } else {
            0.5
        }
    };
    let sum: f64 = larger.iter().map(|a| smaller.iter().map(|b| won(*a, *b)).sum::<f64>()).sum();
    sum / (larger.len() * smaller.len()).max(1) as f64
}

pub(crate) fn table(report: &Report, settings: &RankingSettings) -> String {
    let head = [
        "set",
        "requests",
        "AUC removed",
        "AUC foreign",
        "kept",
        "right kept",
        "removed refused",
        "foreign refused",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in &report.rows {
        let mut line = vec![row.set.clone(), row.requests.to_string()];
        line.extend([row.auc_removed, row.auc_foreign].map(|auc| format!("{auc:.3}")));
        if let Some(point) = row.curve.iter().find(|point| point.threshold == settings.min_confidence) {
            line.extend(shares(point));
        }
        lines.push(line);
    }
    let mut text = columns(&lines);
    if let Some(all) = report.rows.iter().find(|row| row.set == "all") {
        let mut curve = vec![
            ["threshold", "kept", "right kept", "removed refused", "foreign refused"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for point in &all.curve {
            let chosen = if point.threshold == settings.min_confidence { " (chosen)" } else { "" };
            let mut line = vec![format!("{:.2}{chosen}", point.threshold)];
            line.extend(shares(point));
            curve.push(line);
        }
        text.push_str(&format!("\n{}", columns(&curve)));
    }
    text.push_str("\nSurest where the right tools were taken away:\n");
    for (request, tool, confidence) in &report.stand_ins {
        text.push_str(&format!("  {confidence:.2}  {tool}  <- {request}\n"));
    }
    text
}

fn shares(point: &Point) -> [String; 4] {
    [point.own, point.found, 1.0 - point.removed, 1.0 - point.foreign].map(percent)
}
