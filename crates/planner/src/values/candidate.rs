//! Candidate values of a parameter, each with its text range and score.

use serde_json::Value as Json;

use crate::lexer::labels::{self, LabelSpan};
use crate::lexer::mention::ParsedText;

/// A candidate value of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct ValueCandidate {
    pub(crate) value: ArgumentValue,
    /// The byte range of the source text. Two parameters do not share a range.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) score: f32,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ArgumentValue {
    /// From the words of the request.
    FromRequest(Json),
    /// The result of an earlier step.
    Result,
}

/// The text and the tool for which candidates are searched.
pub(crate) struct MatchContext<'a> {
    pub(crate) parsed: &'a ParsedText<'a>,
    pub(crate) stems: Vec<String>,
    /// The stems of the tool's own words. They denote its action and are not values.
    pub(crate) tool_words: Vec<String>,
}

/// Score of a value that fits well without a label.
pub(crate) const GOOD: f32 = 2.0;
/// Score of a value that may fit.
pub(crate) const FAIR: f32 = 1.0;
/// Score of a value that is little more than a guess.
pub(crate) const POOR: f32 = 0.5;

impl MatchContext<'_> {
    /// The strength with which one of these labels marks a range of the text.
    pub(crate) fn labelled(&self, label_spans: &[LabelSpan], start: usize, end: usize) -> f32 {
        let near = label_spans.iter().map(|span| labels::closeness(*span, self.parsed, start, end));
        near.fold(0.0, f32::max)
    }
}
