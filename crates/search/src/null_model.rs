//! The null model: the part of a request that a tool would match by chance if words were distributed over the tools
//! at random.

use crate::document::Document;
use crate::index::ToolIndex;
use crate::query::{Concept, Query};

/// Maximum number of words; bounds the time.
const MAX_WORDS: usize = 128;

/// Upper bound of a chance: a word that nearly every tool has carries no information.
const MAX_PROBABILITY: f32 = 0.95;

/// The tools of one server share a topic, so that its words occur in most of them and say little about the general
/// frequency of a word. With this many tools of other servers, each tool of the server counts half.
const OTHER_TOOLS_FOR_HALF_WEIGHT: f32 = 4.0;

/// The number of tilts that are tried, and the step between them.
const TILT_STEPS: u8 = 24;
const TILT_STEP_SIZE: f32 = 0.08;

/// For each word of a request, the chance that a tool has it, and its information: higher for rarer words.
pub(crate) struct NullModel {
    words: Vec<(f32, f32)>,
}

impl NullModel {
    /// The chances of a request's words among the tools of an index, for a tool of this source.
    fn of(index: &ToolIndex, query: &Query, document: &Document) -> Self {
        let siblings = index.of_source(&document.tool.source);
        let own = siblings.len() as f32;
        let others = index.documents.len() as f32 - own;
        let share = OTHER_TOOLS_FOR_HALF_WEIGHT / (OTHER_TOOLS_FOR_HALF_WEIGHT + others);
        let all = others + share * own;
        let having = |term| {
            let postings = index.tables.postings.of(term);
            let before = |number| postings.partition_point(|posting| posting.document < number);
            let own = (before(siblings.end) - before(siblings.start)) as f32;
            postings.len() as f32 - own + share * own
        };
        let chance = |concept: &Concept| {
            let any = || concept.any.iter().map(|(term, share)| having(*term) * share).sum();
            let whole = concept.all.iter().map(|term| having(*term)).reduce(f32::min);
            // Between two Chinese texts only the characters count; English translations would blur the result.
            let having = if document.chinese { whole.unwrap_or_else(any) } else { any() };
            let chance = ((having + 0.5) / (all + 1.0)).min(MAX_PROBABILITY);
            (chance, -concept.weight.min(1.0) * chance.ln())
        };
        Self { words: query.concepts.iter().take(MAX_WORDS).map(chance).collect() }
    }

    /// How unlikely it is to match as much of the request as this document: the negative logarithm of an upper bound
    /// on the chance (Chernoff bound for a sum of independent words).
    pub(crate) fn surprise(index: &ToolIndex, query: &Query, document: &Document) -> f32 {
        let chance = Self::of(index, query, document);
        let weight = query.concepts.iter().zip(&chance.words);
        chance.beyond(weight.map(|(concept, (_, weight))| presence(concept, document) * weight).sum())
    }

    fn beyond(&self, had: f32) -> f32 {
        let mut best = 0.0_f32;
        for step in 1..=TILT_STEPS {
            let tilt = f32::from(step) * TILT_STEP_SIZE;
            let expected =
                self.words.iter().map(|(chance, weight)| (chance * ((tilt * weight).exp() - 1.0)).ln_1p());
            let bound = tilt * had - expected.sum::<f32>();
            // The bound is concave in the tilt: after its maximum it only decreases.
            if bound < best {
                break;
            }
            best = best.max(bound);
        }
        best
    }
}

/// The highest presence of any word of the request in a document, from 0 to 1. Request words ("help", "show") and
/// related words count less than 1.
pub(crate) fn best_word_match(query: &Query, document: &Document) -> f32 {
    let fully = |concept: &Concept| presence(concept, document) * concept.weight.min(1.0);
    query.concepts.iter().map(fully).fold(0.0, f32::max)
}

/// How fully a document contains a word, from 0 to 1.
fn presence(concept: &Concept, document: &Document) -> f32 {
    let has = |term| document.counts(term).is_some();
    let any = concept.any.iter().filter(|(term, _)| has(*term)).map(|(_, share)| *share).fold(0.0, f32::max);
    let all = concept.all.iter().filter(|term| has(**term)).count() as f32 / concept.all.len().max(1) as f32;
    any.max(all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surprise(words: &[(f32, bool)]) -> f32 {
        let chance = NullModel { words: words.iter().map(|(chance, _)| (*chance, -chance.ln())).collect() };
        let had: f32 = words.iter().filter(|(_, has)| *has).map(|(chance, _)| -chance.ln()).sum();
        chance.beyond(had)
    }

    #[test]
    fn rare_words_together_raise_surprise() {
        assert_eq!(surprise(&[]), 0.0);
        assert_eq!(surprise(&[(0.5, false), (0.5, false)]), 0.0);
        let common = surprise(&[(0.9, true), (0.9, true)]);
        let rare = surprise(&[(0.01, true), (0.01, true)]);
        let one_of_many =
            surprise(&[(0.01, true), (0.01, false), (0.01, false), (0.01, false), (0.01, false)]);
        let one = surprise(&[(0.01, true)]);
        assert!(common < 1.0 && rare > 7.0, "{common} {rare}");
        assert!(one_of_many < one && one < rare, "{one_of_many} {one} {rare}");
    }
}
