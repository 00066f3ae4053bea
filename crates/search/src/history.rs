//! What past calls say of a tool, as plain data; who counts them is not this crate's business.

use toolhub_core::{Source, ToolName};

/// One tool's past.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// Where the tool comes from.
    pub source: Source,
    /// Its name.
    pub name: ToolName,
    /// How many calls succeeded for requests like this one; the likeness of each may be counted in.
    pub similar_successes: f32,
    /// The share of all its calls that succeeded, where there were any. Breaks ties.
    pub success_rate: Option<f32>,
}

impl Past {
    /// How strongly the successes speak, from 0 to 1: the first says most.
    pub(crate) fn strength(&self) -> f32 {
        let successes = self.similar_successes.max(0.0);
        if successes.is_finite() { successes / (successes + 2.0) } else { 0.0 }
    }
}
