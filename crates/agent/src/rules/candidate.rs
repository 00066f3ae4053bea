//! Values that a parameter could have, each with where it was said and how well it fits.

use serde_json::Value as Json;

use super::labels::{self, Place};
use super::mention::Reading;
use super::parameter::{Parameter, Shape};
use super::{flag, number_value, plural, text_value};

/// A value that a parameter could have.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) value: Given,
    /// What it was read from; two parameters do not share it.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) score: f32,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// From the words of the request.
    Said(Json),
    /// From what an earlier step will come to.
    Result,
}

/// What is known of the tool and the text while candidates are looked for.
pub(super) struct Scene<'a> {
    pub(super) reading: &'a Reading<'a>,
    pub(super) stems: Vec<String>,
    /// The stems of the tool's own words: they tell what it does and not what with.
    pub(super) tool_words: Vec<String>,
}

/// What a value that fits well scores without any label.
pub(super) const GOOD: f32 = 2.0;
/// What a value that may fit scores.
pub(super) const FAIR: f32 = 1.0;
/// What a value that is hardly more than a guess scores.
pub(super) const POOR: f32 = 0.5;

/// Everything that could be the value of a parameter.
pub(super) fn candidates(parameter: &Parameter, scene: &Scene<'_>) -> Vec<Candidate> {
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

/// Candidates past this many are guesses.
const MOST: usize = 24;

impl Scene<'_> {
    /// How plainly a place of the text is labelled with one of these labels.
    pub(super) fn labelled(&self, places: &[Place], start: usize, end: usize) -> f32 {
        let near = places.iter().map(|place| labels::closeness(*place, self.reading, start, end));
        near.fold(0.0, f32::max)
    }
}
