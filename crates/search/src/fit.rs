//! Whether any tool fits at all: evidence about the best tool, weighed into a confidence.

use serde::Serialize;

use crate::document::Document;
use crate::explain::Parts;
use crate::query::{Notion, Query};

/// What speaks for and against the best tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The share of the request's words that the best tool has, itself, translated or nearly.
    pub coverage: f32,
    /// How many different words the request has.
    pub words: f32,
    /// What the words gave the best tool, measured by the worth of the rarest word there can be.
    pub strength: f32,
    /// The tenth tool's score beside the first's: near 1 where no tool stands out.
    pub crowd: f32,
    /// Whether the request names the best tool.
    pub named: bool,
}

/// The weights of a logistic regression over requests with and without their tools; `docs/search.md` tells how they
/// were found and how well they separate.
struct Weights {
    constant: f32,
    coverage: f32,
    coverage_of_many: f32,
    strength: f32,
    crowd: f32,
}

const WEIGHTS: Weights =
    Weights { constant: -1.666, coverage: 0.523, coverage_of_many: 1.440, strength: 0.606, crowd: -0.902 };

impl Evidence {
    /// What the best documents, best first, say. `rarest` is the worth of a word that no tool has.
    pub(crate) fn of(query: &Query, best: &[(&Document, Parts)], rarest: f32) -> Self {
        let words = query.notions.len() as f32;
        let Some((document, first)) = best.first() else { return Self { words, ..Self::default() } };
        let by_words = |parts: &Parts| parts.sum() - parts.named - parts.history - parts.meaning;
        let strength = by_words(first);
        let tenth = best.get(9).map_or(0.0, |(_, parts)| by_words(parts));
        Self {
            coverage: coverage(query, document),
            words,
            strength: strength / rarest.max(0.1),
            crowd: if strength > 0.0 { tenth / strength } else { 0.0 },
            named: false,
        }
    }

    /// How sure it is that the best tool fits, from 0 to 1.
    pub(crate) fn confidence(&self) -> f32 {
        let long = self.coverage * (1.0 + self.words).ln();
        let strength = self.strength / (2.0 + self.words).sqrt();
        let sum = WEIGHTS.constant
            + WEIGHTS.coverage * self.coverage
            + WEIGHTS.coverage_of_many * long
            + WEIGHTS.strength * strength
            + WEIGHTS.crowd * self.crowd;
        1.0 / (1.0 + (-sum).exp())
    }
}

fn coverage(query: &Query, document: &Document) -> f32 {
    let asked: f32 = query.notions.iter().map(|notion| notion.weight).sum();
    let had: f32 = query.notions.iter().map(|notion| notion.weight * presence(notion, document)).sum();
    if asked > 0.0 { had / asked } else { 0.0 }
}

/// How fully a document has a word, from 0 to 1.
fn presence(notion: &Notion, document: &Document) -> f32 {
    let has = |term| document.counts(term).is_some();
    let any = notion.any.iter().filter(|(term, _)| has(*term)).map(|(_, share)| *share).fold(0.0, f32::max);
    let all = notion.all.iter().filter(|term| has(**term)).count() as f32 / notion.all.len().max(1) as f32;
    any.max(all).min(1.0)
}
