//! Candidate values of a parameter, each with its text range and score.

use serde_json::Value as Json;

use crate::lexer::labels::{self, Place};
use crate::lexer::mention::Reading;
use crate::values::flag;
use crate::values::number_value;
use crate::values::parameter::{Parameter, Shape};
use crate::values::plural;
use crate::values::text_value;

/// A candidate value of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) value: Given,
    /// The byte range of the source text. Two parameters do not share a range.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) score: f32,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// From the words of the request.
    Said(Json),
    /// The result of an earlier step.
    Result,
}

/// The text and the tool for which candidates are searched.
pub(crate) struct Scene<'a> {
    pub(crate) reading: &'a Reading<'a>,
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
pub(crate) fn candidates(parameter: &Parameter, scene: &Scene<'_>) -> Vec<Candidate> {
    let places = labels::places(&parameter.labels, scene.reading, &scene.stems);
    let mut found = match &parameter.shape {
        _ if !parameter.choices.is_empty() && !matches!(parameter.shape, Shape::List(_)) => {
            text_value::chosen(parameter, scene, &places)
        }
        Shape::Text => text_value::candidates(parameter, scene, &places),
        Shape::Integer | Shape::Number => number_value::candidates(parameter, scene, &places),
        Shape::Boolean => flag::candidates(parameter, scene),
        Shape::List(item) => plural::lists(parameter, item, scene, &places),
        Shape::Object(members) => plural::objects(members, scene, &places),
        Shape::Any => text_value::candidates(parameter, scene, &places),
    };
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.start.cmp(&b.start)));
    found.truncate(MOST);
    found
}

/// Maximum number of candidates; later ones are guesses.
const MOST: usize = 24;

impl Scene<'_> {
    /// The strength with which one of these labels marks a range of the text.
    pub(crate) fn labelled(&self, places: &[Place], start: usize, end: usize) -> f32 {
        let near = places.iter().map(|place| labels::closeness(*place, self.reading, start, end));
        near.fold(0.0, f32::max)
    }
}
