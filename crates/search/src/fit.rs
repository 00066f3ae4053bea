//! Decides whether any tool is relevant: combines evidence about the best tool into a confidence.

use serde::Serialize;

use crate::document::Document;
use crate::explain::ScoreComponents;
use crate::field::Field;
use crate::index::ToolIndex;
use crate::null_model::{NullModel, best_word_match};
use crate::query::Query;

/// The index of the hit whose score is compared with the first.
const CROWD_RANK: usize = 4;

/// Requests of up to this many words must have one of them in the tool itself.
const SHORT: f32 = 3.0;
const STEEPEST: f32 = 1.5;

/// The number of features of the confidence.
const FEATURES: usize = 5;

/// Evidence for and against the best tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct FitEvidence {
    /// The negative logarithm of the chance that a tool matches this much of the request at random.
    pub surprise: f32,
    /// The logarithm of the number of tools: the best of many matches more by chance.
    pub tools: f32,
    /// The highest presence of any word of the request in the best tool: 1 if the tool contains the word itself.
    pub best_word_match: f32,
    /// The number of different words of the request.
    pub words: f32,
    /// The share of the best tool's name that the request covers, weighted by rarity.
    pub name: f32,
    /// The share of its name, title and description that the request covers, weighted by rarity.
    pub text: f32,
    /// The fifth score relative to the first: near 1 if no tool stands out.
    pub fifth_to_first_ratio: f32,
    /// Whether the request contains the best tool's name.
    pub named: bool,
}

/// Coefficients of a logistic regression over requests with and without a matching tool. `cargo xtask bench search
/// --calibrate` fits them again; `docs/explanation/search.md` documents their accuracy.
const CONSTANT: f32 = 1.678;
/// In the order of [`FitEvidence::features`].
const WEIGHTS: [f32; FEATURES] = [1.042, 1.153, 2.716, -2.082, -0.651];

impl FitEvidence {
    /// The evidence of the best documents, which are sorted best first.
    pub(crate) fn of(index: &ToolIndex, query: &Query, best: &[(&Document, ScoreComponents)]) -> Self {
        let tools = (index.documents.len().max(1) as f32).ln();
        let words = query.concepts.len() as f32;
        let Some((document, first)) = best.first() else {
            return Self { tools, words, ..Self::default() };
        };
        let by_words = |parts: &ScoreComponents| parts.sum() - parts.named - parts.history - parts.meaning;
        let first = by_words(first);
        let fifth = best.get(CROWD_RANK).map_or(0.0, |(_, parts)| by_words(parts));
        Self {
            surprise: NullModel::surprise(index, query, document),
            tools,
            best_word_match: best_word_match(query, document),
            words,
            name: covered_share(index, query, document, &[Field::Name]),
            text: covered_share(index, query, document, &[Field::Name, Field::Title, Field::Description]),
            fifth_to_first_ratio: if first > 0.0 { fifth / first } else { 0.0 },
            named: false,
        }
    }

    /// The features: the surprise beyond that of the best of so many tools by chance, the covered shares of name and
    /// text, the crowd, and the length of the request.
    pub fn features(&self) -> [f32; FEATURES] {
        let beyond = self.surprise.max(0.0).sqrt() - self.tools.max(0.0).sqrt();
        [beyond, self.name, self.text, self.fifth_to_first_ratio, self.words.ln_1p()]
    }

    /// A factor of the confidence: 1 if the tool contains a word of the request itself, less if it contains only
    /// related words. In a long request, several related words support each other; in one of two words, a single
    /// related word is weak evidence.
    pub fn support(&self) -> f32 {
        self.best_word_match.powf((SHORT / self.words.max(1.0)).min(STEEPEST))
    }

    /// The confidence that the best tool is relevant, from 0 to 1.
    pub(crate) fn confidence(&self) -> f32 {
        let sum: f32 = self.features().iter().zip(WEIGHTS).map(|(number, weight)| number * weight).sum();
        self.support() / (1.0 + (-(CONSTANT + sum)).exp())
    }
}

/// The share of a document's words in these fields that the request contains, weighted by rarity.
fn covered_share(index: &ToolIndex, query: &Query, document: &Document, fields: &[Field]) -> f32 {
    let (mut requested, mut all) = (0.0, 0.0);
    let stands_there =
        |counts: &[u8]| fields.iter().any(|field| counts.get(field.index()).is_some_and(|count| *count > 0));
    for occurrence in document.occurrences.iter().filter(|occurrence| stands_there(&occurrence.counts)) {
        let rarity = index.tables.postings.rarity_of(occurrence.term);
        all += rarity;
        let position = query.wanted.binary_search_by_key(&occurrence.term, |wanted| wanted.term);
        if let Some(wanted) = position.ok().and_then(|position| query.wanted.get(position)) {
            requested += rarity * wanted.weight.min(1.0);
        }
    }
    if all > 0.0 { requested / all } else { 0.0 }
}
