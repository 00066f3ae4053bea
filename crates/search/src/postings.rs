//! The inverted index: the documents of each term, with the part of the score that is independent of the request.

use std::sync::Arc;

use crate::document::{Document, Occurrence};
use crate::field::FIELD_COUNT;
use crate::settings::RankingSettings;
use crate::text::{Term, TermMap, TermScript};

/// A document that contains a term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// The weight of the term in the document, from 0 to 1, including field lengths and field weights.
    pub(crate) impact: f32,
}

/// The postings of all terms.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    ranges: TermMap<(u32, u32)>,
    list: Vec<Posting>,
    documents: usize,
    /// The number of documents with Chinese text.
    chinese: usize,
    average: [f32; FIELD_COUNT],
}

impl Postings {
    /// Builds the index of these documents.
    pub(crate) fn build(documents: &[Arc<Document>], settings: &RankingSettings) -> Self {
        let average = average_lengths(documents);
        let mut slots: TermMap<u32> = TermMap::default();
        let mut sizes: Vec<u32> = Vec::new();
        let mut slot_of =
            Vec::with_capacity(documents.iter().map(|document| document.occurrences.len()).sum());
        for occurrence in documents.iter().flat_map(|document| &document.occurrences) {
            let fresh = sizes.len() as u32;
            let slot = *slots.entry(occurrence.term).or_insert(fresh);
            if slot == fresh {
                sizes.push(0);
            }
            if let Some(size) = sizes.get_mut(slot as usize) {
                *size += 1;
            }
            slot_of.push(slot);
        }
        let mut next: Vec<u32> = Vec::with_capacity(sizes.len());
        let mut total = 0;
        for size in &sizes {
            next.push(total);
            total += size;
        }
        let ranges = slots
            .into_iter()
            .filter_map(|(term, slot)| {
                let start = *next.get(slot as usize)?;
                Some((term, (start, start + sizes.get(slot as usize)?)))
            })
            .collect();
        let mut list = vec![Posting { document: 0, impact: 0.0 }; total as usize];
        let mut slot_of = slot_of.into_iter();
        for (number, document) in documents.iter().enumerate() {
            let norms = norms(document, &average, settings);
            for (occurrence, slot) in document.occurrences.iter().zip(&mut slot_of) {
                if let Some(cursor) = next.get_mut(slot as usize)
                    && let Some(posting) = list.get_mut(*cursor as usize)
                {
                    *posting =
                        Posting { document: number as u32, impact: impact(occurrence, &norms, settings) };
                    *cursor += 1;
                }
            }
        }
        let chinese = documents.iter().filter(|document| document.chinese).count();
        Self { ranges, list, documents: documents.len(), chinese, average }
    }

    /// The documents that contain a term.
    pub(crate) fn of(&self, term: Term) -> &[Posting] {
        let Some((start, end)) = self.ranges.get(&term) else { return &[] };
        self.list.get(*start as usize..*end as usize).unwrap_or_default()
    }

    /// The rarity of a term with `having` documents: 0 if every document has it. For Chinese terms only documents
    /// with Chinese text count, or a single Chinese word among English tools would outweigh everything else.
    pub(crate) fn rarity(&self, having: usize, script: TermScript) -> f32 {
        let all = match script {
            TermScript::Han => self.chinese,
            TermScript::Spaced => self.documents,
        };
        let (having, all) = (having.min(all) as f32, all as f32);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// The rarity of a term of a name.
    pub(crate) fn rarity_of(&self, term: Term) -> f32 {
        self.rarity(self.of(term).len(), TermScript::Spaced)
    }

    /// The mean length of each field.
    pub(crate) fn average(&self) -> &[f32; FIELD_COUNT] {
        &self.average
    }
}

/// Sums are integers, so that the result does not depend on the order of the documents.
fn average_lengths(documents: &[Arc<Document>]) -> [f32; FIELD_COUNT] {
    let mut totals = [0_u64; FIELD_COUNT];
    let mut counts = [0_u64; FIELD_COUNT];
    for document in documents {
        for ((total, count), length) in totals.iter_mut().zip(&mut counts).zip(document.lengths) {
            *total += u64::from(length);
            *count += u64::from(length > 0);
        }
    }
    let mut average = [1.0; FIELD_COUNT];
    for ((average, total), count) in average.iter_mut().zip(totals).zip(counts) {
        if count > 0 {
            *average = total as f32 / count as f32;
        }
    }
    average
}

/// The value of one occurrence in each field of this document.
pub(crate) fn norms(
    document: &Document,
    average: &[f32; FIELD_COUNT],
    settings: &RankingSettings,
) -> [f32; FIELD_COUNT] {
    let mut norms = [0.0; FIELD_COUNT];
    for (index, norm) in norms.iter_mut().enumerate() {
        let length = document.lengths.get(index).copied().unwrap_or_default() as f32;
        let average = average.get(index).copied().unwrap_or(1.0);
        let weight = settings.field_weights.get(index).copied().unwrap_or_default();
        let share = settings.field_lengths.get(index).copied().unwrap_or_default();
        *norm = weight / (1.0 - share + share * length / average);
    }
    norms
}

fn impact(occurrence: &Occurrence, norms: &[f32; FIELD_COUNT], settings: &RankingSettings) -> f32 {
    let frequency: f32 =
        occurrence.counts.iter().zip(norms).map(|(count, norm)| f32::from(*count) * norm).sum();
    frequency / (settings.saturation + frequency)
}
