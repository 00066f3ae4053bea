//! Scores of the words of a request: approximate and fast for all documents, exact with components for a few.

use crate::document::Document;
use crate::explain::ScoreComponents;
use crate::field::{FIELD_COUNT, Field};
use crate::index::ToolIndex;
use crate::postings::norms;
use crate::query::{MAX_SENTENCES, Query, QueryTerm};

/// The contribution of each wanted term to the score of a document that fully contains it.
pub(crate) fn term_weights(index: &ToolIndex, query: &Query) -> Vec<f32> {
    let postings = &index.tables.postings;
    let weights =
        |wanted: &QueryTerm| wanted.weight * postings.rarity(postings.of(wanted.term).len(), wanted.script);
    query.wanted.iter().map(weights).collect()
}

pub(crate) fn scores_by_words(index: &ToolIndex, query: &Query, weights: &[f32]) -> Vec<f32> {
    let mut scores = vec![0.0_f32; index.documents.len()];
    for (wanted, weights) in query.wanted.iter().zip(weights) {
        for posting in index.tables.postings.of(wanted.term) {
            if let Some(score) = scores.get_mut(posting.document as usize) {
                *score += weights * posting.impact;
            }
        }
    }
    scores
}

/// The score components of a document for the words of the request. Both lists are sorted by term and merged.
pub(crate) fn components_by_words(
    index: &ToolIndex,
    document: &Document,
    wanted: &[QueryTerm],
    weights: &[f32],
) -> ScoreComponents {
    let norms = norms(document, index.tables.postings.average(), &index.settings);
    let mut parts = ScoreComponents::default();
    let mut sentences = [0.0_f32; MAX_SENTENCES];
    let (mut asked_of_name, mut name) = (0.0, 0.0);
    let mut wanted = wanted.iter().zip(weights).peekable();
    for occurrence in &document.occurrences {
        let in_name = occurrence.counts.first().is_some_and(|count| *count > 0);
        let rarity = if in_name { index.tables.postings.rarity_of(occurrence.term) } else { 0.0 };
        name += rarity;
        while wanted.next_if(|(wanted, _)| wanted.term < occurrence.term).is_some() {}
        let Some((wanted, weights)) = wanted.next_if(|(wanted, _)| wanted.term == occurrence.term) else {
            continue;
        };
        asked_of_name += rarity * wanted.weight.min(1.0);
        let gain = add_term(
            &mut parts,
            &occurrence.counts,
            &norms,
            Term { wanted, weights: *weights, saturation: index.settings.saturation },
        );
        for (number, sum) in sentences.iter_mut().enumerate() {
            if wanted.sentences >> number & 1 == 1 {
                *sum += gain;
            }
        }
    }
    let by_words = parts.sum();
    let best_sentence = sentences.iter().copied().fold(0.0, f32::max);
    let covered = if name > 0.0 { (asked_of_name / name).min(1.0) } else { 0.0 };
    let focused = by_words + index.settings.sentence * best_sentence;
    parts.focus = focused * (1.0 + index.settings.name_coverage * covered) - by_words;
    parts
}

#[derive(Clone, Copy)]
struct Term<'a> {
    wanted: &'a QueryTerm,
    weights: f32,
    saturation: f32,
}

/// Adds the gain of one term to the components of the fields that contain it, in proportion. Returns the gain.
fn add_term(
    parts: &mut ScoreComponents,
    counts: &[u8; FIELD_COUNT],
    norms: &[f32; FIELD_COUNT],
    term: Term<'_>,
) -> f32 {
    let shares = || counts.iter().zip(norms).map(|(count, norm)| f32::from(*count) * norm);
    let frequency: f32 = shares().sum();
    if frequency <= 0.0 {
        return 0.0;
    }
    let gain = term.weights * frequency / (term.saturation + frequency);
    for (field, share) in Field::ALL.into_iter().zip(shares()) {
        if share > 0.0 {
            parts.add(term.wanted.origin, field, gain * share / frequency);
        }
    }
    gain
}
