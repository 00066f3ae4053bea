//! Past calls of tools as input of the ranking; they are counted outside of this crate.

use toolhub_core::{Source, ToolName};

/// The past calls of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolHistory {
    /// The source of the tool.
    pub source: Source,
    /// Its name.
    pub name: ToolName,
    /// The number of successful calls for similar requests; may be weighted by similarity.
    pub similar_successes: f32,
    /// The share of all its calls that succeeded, if there were any. Breaks ties.
    pub success_rate: Option<f32>,
}

impl ToolHistory {
    /// The weight of the successes, from 0 to 1, with diminishing returns.
    pub(crate) fn strength(&self) -> f32 {
        let successes = self.similar_successes.max(0.0);
        if successes.is_finite() { successes / (successes + 2.0) } else { 0.0 }
    }
}
