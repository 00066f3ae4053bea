//! Whether any tool fits at all: evidence about the best tool, weighed into a confidence.

use serde::Serialize;

use crate::chance::{Chance, touch};
use crate::document::Document;
use crate::explain::Parts;
use crate::field::Field;
use crate::index::Index;
use crate::query::Query;

/// The place whose score is held against the first.
const FIFTH: usize = 4;

/// Requests of so many words have to have one of them in the tool itself.
const SHORT: f32 = 3.0;
const STEEPEST: f32 = 1.5;

/// How many numbers a confidence is made of.
const FEATURES: usize = 5;

/// What speaks for and against the best tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// How unlikely it is that a tool has so much of the request by chance: the negative logarithm of that chance.
    pub surprise: f32,
    /// The logarithm of the number of tools: the best of many has more by chance.
    pub tools: f32,
    /// How fully the best tool has the one word of the request that it has most fully: 1 where it has it itself.
    pub touch: f32,
    /// How many different words the request has.
    pub words: f32,
    /// The share of the best tool's name that was asked for, by rarity.
    pub name: f32,
    /// The share of its name, title and description that was asked for, by rarity.
    pub text: f32,
    /// The fifth tool's score beside the first's: near 1 where no tool stands out.
    pub crowd: f32,
    /// Whether the request names the best tool.
    pub named: bool,
}

/// A logistic regression over requests with and without their tools. `cargo xtask bench search --calibrate` fits it
/// again; `docs/explanation/search.md` tells how well it separates.
const CONSTANT: f32 = 1.678;
/// In the order of [`Evidence::features`].
const WEIGHTS: [f32; FEATURES] = [1.042, 1.153, 2.716, -2.082, -0.651];

impl Evidence {
    /// What the best documents, best first, say.
    pub(crate) fn of(index: &Index, query: &Query, best: &[(&Document, Parts)]) -> Self {
        let tools = (index.documents.len().max(1) as f32).ln();
        let words = query.notions.len() as f32;
        let Some((document, first)) = best.first() else {
            return Self { tools, words, ..Self::default() };
        };
        let by_words = |parts: &Parts| parts.sum() - parts.named - parts.history - parts.meaning;
        let first = by_words(first);
        let fifth = best.get(FIFTH).map_or(0.0, |(_, parts)| by_words(parts));
        Self {
            surprise: Chance::surprise(index, query, document),
            tools,
            touch: touch(query, document),
            words,
            name: asked_of(index, query, document, &[Field::Name]),
            text: asked_of(index, query, document, &[Field::Name, Field::Title, Field::Description]),
            crowd: if first > 0.0 { fifth / first } else { 0.0 },
            named: false,
        }
    }

    /// The numbers that are weighed: how far the surprise is past what the best of so many tools has by chance, how
    /// much of its name and of its text was asked for, how little it stands out, and how long the request is.
    pub fn features(&self) -> [f32; FEATURES] {
        let beyond = self.surprise.max(0.0).sqrt() - self.tools.max(0.0).sqrt();
        [beyond, self.name, self.text, self.crowd, self.words.ln_1p()]
    }

    /// How much of the trust stays: 1 where the tool has a word of the request itself, less where it has relatives alone. In
    /// a long request several relatives bear each other out; in one of two words a single one says next to nothing.
    pub fn footing(&self) -> f32 {
        self.touch.powf((SHORT / self.words.max(1.0)).min(STEEPEST))
    }

    /// How sure it is that the best tool fits, from 0 to 1.
    pub(crate) fn confidence(&self) -> f32 {
        let sum: f32 = self.features().iter().zip(WEIGHTS).map(|(number, weight)| number * weight).sum();
        self.footing() / (1.0 + (-(CONSTANT + sum)).exp())
    }
}

/// The share of a document's words in these fields that the request wants, by their rarity.
fn asked_of(index: &Index, query: &Query, document: &Document, fields: &[Field]) -> f32 {
    let (mut asked, mut all) = (0.0, 0.0);
    let stands_there =
        |counts: &[u8]| fields.iter().any(|field| counts.get(field.index()).is_some_and(|count| *count > 0));
    for occurrence in document.occurrences.iter().filter(|occurrence| stands_there(&occurrence.counts)) {
        let rarity = index.tables.postings.rarity_of(occurrence.term);
        all += rarity;
        let place = query.wanted.binary_search_by_key(&occurrence.term, |wanted| wanted.term);
        if let Some(wanted) = place.ok().and_then(|place| query.wanted.get(place)) {
            asked += rarity * wanted.weight.min(1.0);
        }
    }
    if all > 0.0 { asked / all } else { 0.0 }
}
