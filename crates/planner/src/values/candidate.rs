//! Candidate values of a parameter, each with its text range and score.

use serde_json::Value as Json;

use crate::lexer::labels::{self, Place};
use crate::lexer::mention::ParsedText;
use crate::values::flag;
use crate::values::list_value;
use crate::values::number_value;
use crate::values::parameter::{Parameter, Shape};
use crate::values::text_value;

/// A candidate value of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
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

/// All candidate values of a parameter.
pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<Candidate> {
    let places = labels::places(&parameter.labels, context.parsed, &context.stems);
    let mut found = match &parameter.shape {
        _ if !parameter.choices.is_empty() && !matches!(parameter.shape, Shape::List(_)) => {
            text_value::chosen(parameter, context, &places)
        }
        Shape::Text => text_value::candidates(parameter, context, &places),
        Shape::Integer | Shape::Number => number_value::candidates(parameter, context, &places),
        Shape::Boolean => flag::candidates(parameter, context),
        Shape::List(item) => list_value::lists(parameter, item, context, &places),
        Shape::Object(members) => list_value::objects(members, context, &places),
        Shape::Any => text_value::candidates(parameter, context, &places),
    };
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.start.cmp(&b.start)));
    found.truncate(MAX_CANDIDATES);
    found
}

/// Maximum number of candidates; later ones are guesses.
const MAX_CANDIDATES: usize = 24;

impl MatchContext<'_> {
    /// The strength with which one of these labels marks a range of the text.
    pub(crate) fn labelled(&self, places: &[Place], start: usize, end: usize) -> f32 {
        let near = places.iter().map(|place| labels::closeness(*place, self.parsed, start, end));
        near.fold(0.0, f32::max)
    }
}
