//! A tool with its arguments.

use std::rc::Rc;

use toolhub_core::Tool;

use crate::assembly::assignment::Assignment;
use crate::selection::intent_match::Agreement;
use crate::values::parameter::Parameter;

/// A tool with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) tool: Tool,
    pub(crate) parameters: Rc<Vec<Parameter>>,
    pub(crate) assignment: Assignment,
    pub(crate) score: f32,
    /// Whether the tool performs the requested action, judged by verbs.
    pub(crate) does: Agreement,
    /// Score of the tool's own words.
    pub(crate) intent_score: f32,
    /// Share of the request's content words that the tool's own words contain.
    pub(crate) known: f32,
    /// Confidence of the search that some tool fits.
    pub(crate) confidence: f64,
    /// Other tools with a similar score.
    pub(crate) rivals: Rc<Vec<Choice>>,
}

impl Choice {
    /// Whether the text contains no value for the tool.
    pub(crate) fn is_empty(&self) -> bool {
        self.assignment.slots.iter().all(Option::is_none)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.assignment.missing(&self.parameters).next().is_none()
    }
}
