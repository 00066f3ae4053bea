//! Fits the confidence: a logistic regression over all cases, cross-validated on families of sets left out of the fit.

use std::collections::HashMap;

use crate::cases::{Case, Kind, Size, family};
use crate::none_fits::auc;

const FEATURES: usize = 5;
/// Steps of Newton's method; it converges after six or seven.
const STEPS: usize = 25;
/// L2 regularization: keeps weights small for which the cases give little evidence.
const RIDGE: f64 = 1e-3;

/// The intercept, then the weights.
type Weights = [f64; FEATURES + 1];

/// The weights over all cases, and the areas under the curve within and outside the sample.
pub(crate) fn report(cases: &[Case]) -> String {
    let all: Vec<&Case> = cases.iter().collect();
    let weights = fit(&all);
    let seen: Vec<f32> = all.iter().map(|case| trust(&weights, case)).collect();
    let mut text = format!("constant and weights: {weights:.3?}\n");
    text.push_str(&format!("seen:     {}\n", areas(&all, &seen)));
    let mut fitted: HashMap<&str, Weights> = HashMap::new();
    let mut unseen = Vec::with_capacity(all.len());
    for case in &all {
        let weights = fitted.entry(&case.query_set).or_insert_with(|| without(&all, &case.query_set));
        unseen.push(trust(weights, case));
    }
    text.push_str(&format!("left out: {}\n", areas(&all, &unseen)));
    text
}

/// The weights fitted without the requests and the tools of one family.
fn without(cases: &[&Case], left_out: &str) -> Weights {
    let rest: Vec<&Case> = cases
        .iter()
        .copied()
        .filter(|case| case.query_set != left_out && family(&case.set) != left_out)
        .collect();
    fit(&rest)
}

fn areas(cases: &[&Case], sums: &[f32]) -> String {
    let of = |kind: Kind, whole: bool| -> Vec<f32> {
        let chosen = cases.iter().zip(sums).filter(|(case, _)| case.kind == kind);
        chosen.filter(|(case, _)| !whole || case.size == Size::Whole).map(|(_, sum)| *sum).collect()
    };
    let area = |kind: Kind, whole: bool| auc(&of(Kind::Own, whole), &of(kind, whole));
    format!(
        "AUC removed {:.3}, foreign {:.3}; whole sets alone {:.3}, {:.3}",
        area(Kind::Removed, false),
        area(Kind::Foreign, false),
        area(Kind::Removed, true),
        area(Kind::Foreign, true)
    )
}

fn row(case: &Case) -> Weights {
    let mut row = [1.0; FEATURES + 1];
    for (place, number) in row.iter_mut().skip(1).zip(case.evidence.features()) {
        *place = f64::from(number);
    }
    row
}

/// The confidence of a case with these weights.
fn trust(weights: &Weights, case: &Case) -> f32 {
    let sum: f64 = weights.iter().zip(row(case)).map(|(weight, number)| weight * number).sum();
    (f64::from(case.evidence.support()) / (1.0 + (-sum).exp())) as f32
}

/// Newton's method. Cases without a fitting tool are twice as many, so that they have half the weight.
fn fit(cases: &[&Case]) -> Weights {
    let mut weights = Weights::default();
    for _ in 0..STEPS {
        let mut slope = Weights::default();
        let mut bend = [Weights::default(); FEATURES + 1];
        for case in cases {
            let row = row(case);
            let logit: f64 = weights.iter().zip(&row).map(|(weight, number)| weight * number).sum();
            let chance = 1.0 / (1.0 + (-logit).exp());
            let (target, counts) = if case.kind == Kind::Own { (1.0, 2.0) } else { (0.0, 1.0) };
            for ((slope, bend), number) in slope.iter_mut().zip(&mut bend).zip(row) {
                *slope += counts * (target - chance) * number;
                for (bend, other) in bend.iter_mut().zip(row) {
                    *bend += counts * chance * (1.0 - chance) * number * other;
                }
            }
        }
        for (place, ((slope, bend), weight)) in slope.iter_mut().zip(&mut bend).zip(&weights).enumerate() {
            *slope -= RIDGE * weight;
            if let Some(own) = bend.get_mut(place) {
                *own += RIDGE;
            }
        }
        for (weight, step) in weights.iter_mut().zip(solve(bend, slope)) {
            *weight += step;
        }
    }
    weights
}

/// Gaussian elimination; the regularization keeps the pivots away from zero.
fn solve(mut left: [Weights; FEATURES + 1], mut right: Weights) -> Weights {
    for pivot in 0..=FEATURES {
        let (row, value) = (left[pivot], right[pivot]);
        for below in pivot + 1..=FEATURES {
            let factor = left[below][pivot] / row[pivot];
            for (cell, above) in left[below].iter_mut().zip(row) {
                *cell -= factor * above;
            }
            right[below] -= factor * value;
        }
    }
    let mut found = Weights::default();
    for place in (0..=FEATURES).rev() {
        let known: f64 = (place + 1..=FEATURES).map(|later| left[place][later] * found[later]).sum();
        found[place] = (right[place] - known) / left[place][place];
    }
    found
}
