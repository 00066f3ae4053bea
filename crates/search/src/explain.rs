//! The components of a score.

use serde::Serialize;

use crate::field::Field;
use crate::query::TermOrigin;

/// The components of a score, which is their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ScoreComponents {
    /// The request contains the name of the tool.
    pub named: f32,
    /// Its words match the name or the title.
    pub name: f32,
    /// Its words match the description.
    pub description: f32,
    /// Its words match the names and texts of the parameters.
    pub parameters: f32,
    /// Its words match the tags.
    pub tags: f32,
    /// Its words match the name of the server.
    pub source: f32,
    /// Its words match the examples.
    pub examples: f32,
    /// Its words match by translation.
    pub cross_language: f32,
    /// Related words match the definition.
    pub related: f32,
    /// A single sentence of the request matches, or the request covers the whole name.
    pub focus: f32,
    /// The tool succeeded for similar requests.
    pub history: f32,
    /// The encoder model finds it similar in meaning.
    pub meaning: f32,
}

impl ScoreComponents {
    /// The total score.
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

    /// Adds the gain of a term of this origin in this field.
    pub(crate) fn add(&mut self, origin: TermOrigin, field: Field, gain: f32) {
        let part = match (origin, field) {
            (TermOrigin::Translated, _) | (TermOrigin::Literal, Field::Translation) => {
                &mut self.cross_language
            }
            (TermOrigin::Related, _) => &mut self.related,
            (TermOrigin::Literal, Field::Name | Field::Title) => &mut self.name,
            (TermOrigin::Literal, Field::Description) => &mut self.description,
            (TermOrigin::Literal, Field::ParameterName | Field::ParameterText) => &mut self.parameters,
            (TermOrigin::Literal, Field::Tag) => &mut self.tags,
            (TermOrigin::Literal, Field::Source) => &mut self.source,
            (TermOrigin::Literal, Field::Example) => &mut self.examples,
        };
        *part += gain;
    }
}
