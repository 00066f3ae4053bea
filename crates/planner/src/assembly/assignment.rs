//! The values that are assigned to the parameters of a tool.

use crate::values::candidate::ValueCandidate;
use crate::values::parameter::Parameter;

/// The arguments of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignment {
    /// Indexed like the parameters.
    pub(crate) slots: Vec<Option<ValueCandidate>>,
    /// All candidates of each parameter, best first.
    pub(crate) others: Vec<Vec<ValueCandidate>>,
}

impl Assignment {
    /// The indices of the required parameters without a value.
    pub(crate) fn missing<'a>(&'a self, parameters: &'a [Parameter]) -> impl Iterator<Item = usize> + 'a {
        parameters
            .iter()
            .zip(&self.slots)
            .enumerate()
            .filter(|(_, (parameter, slot))| parameter.required && slot.is_none())
            .map(|(index, _)| index)
    }

    /// Whether an argument overlaps this byte range.
    pub(crate) fn uses(&self, start: usize, end: usize) -> bool {
        self.slots.iter().flatten().any(|slot| slot.start < end && start < slot.end)
    }

    /// The number of optional parameters with a value.
    pub(crate) fn extras(&self, parameters: &[Parameter]) -> usize {
        parameters
            .iter()
            .zip(&self.slots)
            .filter(|(parameter, slot)| !parameter.required && slot.is_some())
            .count()
    }

    /// Average score of the required parameters, from 0 to 1.
    pub(crate) fn certainty(&self, parameters: &[Parameter]) -> f32 {
        let required = parameters.iter().zip(&self.slots).filter(|(parameter, _)| parameter.required);
        let scores: Vec<f32> = required
            .map(|(_, slot)| slot.as_ref().map_or(0.0, |slot| (slot.score / 3.0).clamp(0.0, 1.0)))
            .collect();
        if scores.is_empty() {
            if self.slots.iter().any(Option::is_some) { 0.6 } else { 0.0 }
        } else {
            scores.iter().sum::<f32>() / scores.len() as f32
        }
    }
}
