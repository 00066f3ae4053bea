//! What a score is made of, part by part.

use serde::Serialize;

use crate::field::Field;
use crate::query::Origin;

/// The parts of a score; their sum is the score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// The request names the tool.
    pub named: f32,
    /// Its words stand in the name or the title.
    pub name: f32,
    /// Its words stand in the description.
    pub description: f32,
    /// Its words stand in the names and texts of the parameters.
    pub parameters: f32,
    /// Its words stand in the tags.
    pub tags: f32,
    /// Its words stand in the name of the server.
    pub source: f32,
    /// Its words stand in the examples.
    pub examples: f32,
    /// Its words were found by way of the other language.
    pub cross_language: f32,
    /// Words close to those of the request stand in the definition.
    pub related: f32,
    /// One sentence of the request fits by itself, or the whole name was asked for.
    pub focus: f32,
    /// It succeeded for similar requests.
    pub history: f32,
    /// A model finds it close in meaning.
    pub meaning: f32,
}

impl Parts {
    /// The whole score.
    pub fn sum(&self) -> f32 {
        self.named
            + self.name
            + self.description
            + self.parameters
            + self.tags
            + self.source
            + self.examples
            + self.cross_language
            + self.related
            + self.focus
            + self.history
            + self.meaning
    }

    /// Adds what a term of this origin gained in this field.
    pub(crate) fn add(&mut self, origin: Origin, field: Field, gain: f32) {
        let part = match (origin, field) {
            (Origin::Translated, _) | (Origin::Said, Field::Translation) => &mut self.cross_language,
            (Origin::Related, _) => &mut self.related,
            (Origin::Said, Field::Name | Field::Title) => &mut self.name,
            (Origin::Said, Field::Description) => &mut self.description,
            (Origin::Said, Field::ParameterName | Field::ParameterText) => &mut self.parameters,
            (Origin::Said, Field::Tag) => &mut self.tags,
            (Origin::Said, Field::Source) => &mut self.source,
            (Origin::Said, Field::Example) => &mut self.examples,
        };
        *part += gain;
    }
}
