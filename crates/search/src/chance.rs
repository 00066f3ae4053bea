//! The null model: how much of a request a tool would have by chance, were words strewn over the tools at random.

use crate::document::Document;
use crate::index::Index;
use crate::query::{Notion, Query};

/// Words past this many are not looked at, as the time must stay bounded.
const MOST_WORDS: usize = 128;

/// A word that nearly every tool has says nothing, and its chance is kept below one.
const LIKELIEST: f32 = 0.95;

/// The tools of one server speak of one thing, so that its words stand in most of them, and say little about how usual
/// a word is. Beside this many tools of other servers each of them counts half.
const OTHERS_FOR_HALF: f32 = 4.0;

/// The tilts that are tried, and the step between them.
const TILTS: u8 = 24;
const TILT: f32 = 0.08;

/// For each word of a request the chance that a tool has it, and what having it says: the more, the rarer.
pub(crate) struct Chance {
    words: Vec<(f32, f32)>,
}

impl Chance {
    /// The chances of a request's words among the tools of an index, for a tool like this one.
    fn of(index: &Index, query: &Query, document: &Document) -> Self {
        let siblings = index.of_source(&document.tool.source);
        let own = siblings.len() as f32;
        let others = index.documents.len() as f32 - own;
        let share = OTHERS_FOR_HALF / (OTHERS_FOR_HALF + others);
        let all = others + share * own;
        let having = |term| {
            let postings = index.tables.postings.of(term);
            let before = |number| postings.partition_point(|posting| posting.document < number);
            let own = (before(siblings.end) - before(siblings.start)) as f32;
            postings.len() as f32 - own + share * own
        };
        let chance = |notion: &Notion| {
            let any = || notion.any.iter().map(|(term, share)| having(*term) * share).sum();
            let whole = notion.all.iter().map(|term| having(*term)).reduce(f32::min);
            // Between two Chinese texts the characters count; what their words mean in English would only blur them.
            let having = if document.chinese { whole.unwrap_or_else(any) } else { any() };
            let chance = ((having + 0.5) / (all + 1.0)).min(LIKELIEST);
            (chance, -notion.weight.min(1.0) * chance.ln())
        };
        Self { words: query.notions.iter().take(MOST_WORDS).map(chance).collect() }
    }

    /// How unlikely it is to have as much of the request as this document: the negative logarithm of a bound on the
    /// chance (Chernoff's, for a sum of independent words).
    pub(crate) fn surprise(index: &Index, query: &Query, document: &Document) -> f32 {
        let chance = Self::of(index, query, document);
        let says = query.notions.iter().zip(&chance.words);
        chance.beyond(says.map(|(notion, (_, says))| presence(notion, document) * says).sum())
    }

    fn beyond(&self, had: f32) -> f32 {
        let mut best = 0.0_f32;
        for step in 1..=TILTS {
            let tilt = f32::from(step) * TILT;
            let expected =
                self.words.iter().map(|(chance, says)| (chance * ((tilt * says).exp() - 1.0)).ln_1p());
            let bound = tilt * had - expected.sum::<f32>();
            // The bound is concave in the tilt: past its top it only falls.
            if bound < best {
                break;
            }
            best = best.max(bound);
        }
        best
    }
}

/// How fully a document has the word of the request that it has most fully, from 0 to 1. A word of asking is no full one,
/// nor is one that only has a relative there.
pub(crate) fn touch(query: &Query, document: &Document) -> f32 {
    let fully = |notion: &Notion| presence(notion, document) * notion.weight.min(1.0);
    query.notions.iter().map(fully).fold(0.0, f32::max)
}

/// How fully a document has a word, from 0 to 1.
fn presence(notion: &Notion, document: &Document) -> f32 {
    let has = |term| document.counts(term).is_some();
    let any = notion.any.iter().filter(|(term, _)| has(*term)).map(|(_, share)| *share).fold(0.0, f32::max);
    let all = notion.all.iter().filter(|term| has(**term)).count() as f32 / notion.all.len().max(1) as f32;
    any.max(all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surprise(words: &[(f32, bool)]) -> f32 {
        let chance = Chance { words: words.iter().map(|(chance, _)| (*chance, -chance.ln())).collect() };
        let had: f32 = words.iter().filter(|(_, has)| *has).map(|(chance, _)| -chance.ln()).sum();
        chance.beyond(had)
    }

    #[test]
    fn rare_words_together_surprise() {
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
