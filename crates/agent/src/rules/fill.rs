//! Gives each parameter of a tool the value that fits it best; no two share what was said once.

use super::candidate::{Candidate, GOOD, Scene, candidates};
use super::parameter::{Parameter, Shape};
use super::role::Role;

/// A required parameter takes nothing that fits less than this: it is asked for instead.
const LEAST: f32 = 0.9;
/// An optional one is rather left out.
const LEAST_OPTIONAL: f32 = GOOD;
/// What speaks for a required parameter where an optional one wants the same.
const REQUIRED: f32 = 0.3;

/// The arguments of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Filling {
    /// By the place of the parameter.
    pub(super) slots: Vec<Option<Candidate>>,
    /// Every candidate of each parameter, best first.
    pub(super) others: Vec<Vec<Candidate>>,
}

impl Filling {
    /// The required parameters that have no value.
    pub(super) fn missing<'a>(&'a self, parameters: &'a [Parameter]) -> impl Iterator<Item = usize> + 'a {
        parameters
            .iter()
            .zip(&self.slots)
            .enumerate()
            .filter(|(_, (parameter, slot))| parameter.required && slot.is_none())
            .map(|(place, _)| place)
    }

    /// Whether something that was said at this place is an argument.
    pub(super) fn uses(&self, start: usize, end: usize) -> bool {
        self.slots.iter().flatten().any(|slot| slot.start < end && start < slot.end)
    }

    /// How well the values fit, on average over the required parameters, from 0 to 1.
    pub(super) fn certainty(&self, parameters: &[Parameter]) -> f32 {
        let required = parameters.iter().zip(&self.slots).filter(|(parameter, _)| parameter.required);
        let scores: Vec<f32> = required
            .map(|(_, slot)| slot.as_ref().map_or(0.0, |slot| (slot.score / 3.0).clamp(0.0, 1.0)))
            .collect();
        if scores.is_empty() { 0.5 } else { scores.iter().sum::<f32>() / scores.len() as f32 }
    }
}

/// Fills the parameters from a text.
pub(super) fn fill(parameters: &[Parameter], scene: &Scene<'_>) -> Filling {
    let others: Vec<Vec<Candidate>> =
        parameters.iter().map(|parameter| candidates(parameter, scene)).collect();
    let mut order: Vec<(usize, &Candidate, f32)> = Vec::new();
    for (place, (parameter, found)) in parameters.iter().zip(&others).enumerate() {
        let least = if parameter.required { LEAST } else { LEAST_OPTIONAL };
        let bonus = if parameter.required { REQUIRED } else { 0.0 };
        order.extend(
            found
                .iter()
                .filter(|candidate| candidate.score >= least)
                .map(|candidate| (place, candidate, candidate.score + bonus)),
        );
    }
    order.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)).then(a.1.start.cmp(&b.1.start)));
    let mut filling = Filling { slots: vec![None; parameters.len()], others: Vec::new() };
    for (place, candidate, _) in order {
        if filling.slots[place].is_none() && !filling.uses(candidate.start, candidate.end) {
            filling.slots[place] = Some(candidate.clone());
        }
    }
    in_order(parameters, &mut filling);
    filling.others = others;
    filling
}

/// Parameters of one kind that nothing tells apart take their values in the order of the request.
fn in_order(parameters: &[Parameter], filling: &mut Filling) {
    let plain = |place: usize, filling: &Filling| {
        let parameter = &parameters[place];
        let kind = matches!(parameter.shape, Shape::Integer | Shape::Number) || parameter.role == Role::Cell;
        filling.slots[place].as_ref().is_some_and(|slot| kind && slot.score < 1.2 && slot.end > slot.start)
    };
    for first in 0..parameters.len() {
        for second in first + 1..parameters.len() {
            if parameters[first].shape == parameters[second].shape
                && plain(first, filling)
                && plain(second, filling)
            {
                let start = |place: usize| filling.slots[place].as_ref().map_or(0, |slot| slot.start);
                if start(first) > start(second) {
                    filling.slots.swap(first, second);
                }
            }
        }
    }
}
