//! One tool in the index: its terms by field, and the lengths of the fields.

use std::mem;

use toolhub_core::Tool;

use crate::definition;
use crate::dictionary::Dictionary;
use crate::field::{FIELD_COUNT, Field};
use crate::text::{Stemmer, Term, TermMap, TermScript, TextRun, is_stop_gram, runs};

/// Maximum number of glosses per Chinese word.
const MAX_TRANSLATIONS: usize = 3;

/// A term of a document, with its number of occurrences in each field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) term: Term,
    /// Saturates at 255, far beyond the point where more occurrences matter.
    pub(crate) counts: [u8; FIELD_COUNT],
}

/// An analysed tool.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) tool: Tool,
    /// The name in lowercase without punctuation.
    pub(crate) name_key: Box<str>,
    /// Sorted by term.
    pub(crate) occurrences: Box<[Occurrence]>,
    /// Number of terms in each field, including repetitions.
    pub(crate) lengths: [u32; FIELD_COUNT],
    /// Whether it contains Chinese text.
    pub(crate) chinese: bool,
}

impl Document {
    /// The number of occurrences of `term` in each field.
    pub(crate) fn counts(&self, term: Term) -> Option<&[u8; FIELD_COUNT]> {
        let index = self.occurrences.binary_search_by_key(&term, |occurrence| occurrence.term).ok()?;
        self.occurrences.get(index).map(|occurrence| &occurrence.counts)
    }
}

/// Converts tools to documents.
#[derive(Default)]
pub(crate) struct Analyzer {
    stemmer: Stemmer,
    counts: TermMap<[u8; FIELD_COUNT]>,
    lengths: [u32; FIELD_COUNT],
    chinese: bool,
}

impl Analyzer {
    /// The document of a tool.
    pub(crate) fn document(&mut self, tool: Tool) -> Document {
        self.counts.clear();
        definition::texts(&tool, |field, text| {
            self.add(field, text);
            if matches!(field, Field::Name | Field::Title | Field::Description | Field::Tag) {
                self.add_translation(text);
            }
        });
        let mut occurrences: Vec<Occurrence> =
            self.counts.iter().map(|(term, counts)| Occurrence { term: *term, counts: *counts }).collect();
        occurrences.sort_unstable_by_key(|occurrence| occurrence.term);
        let name_key = key_of(tool.name().as_str()).into();
        Document {
            tool,
            name_key,
            occurrences: occurrences.into(),
            lengths: mem::take(&mut self.lengths),
            chinese: mem::take(&mut self.chinese),
        }
    }

    /// Chinese texts are also indexed in English, so that English requests find them.
    fn add_translation(&mut self, text: &str) {
        let Self { stemmer, counts, lengths, .. } = self;
        let index = Field::Translation.index();
        runs(text, |run| {
            let TextRun::Han(han) = run else { return };
            for segment in Dictionary::get().segment(han) {
                if is_stop_gram(segment.word) {
                    continue;
                }
                if let Some(l) = lengths.get_mut(index) {
                    *l += 1;
                }
                for word in segment.glosses.iter().take(MAX_TRANSLATIONS).flat_map(|gloss| gloss.split(' ')) {
                    if let Some(term) = stemmer.term(word)
                        && let Some(count) = counts.entry(term).or_default().get_mut(index)
                    {
                        *count = count.saturating_add(1);
                    }
                }
            }
        });
    }

    fn add(&mut self, field: Field, text: &str) {
        let Self { stemmer, counts, lengths, chinese } = self;
        let (Some(length), index) = (lengths.get_mut(field.index()), field.index()) else { return };
        let mut count = |term: Term| {
            *length = length.saturating_add(1);
            if let Some(count) = counts.entry(term).or_default().get_mut(index) {
                *count = count.saturating_add(1);
            }
        };
        terms(text, stemmer, |term, script| {
            *chinese |= script == TermScript::Han;
            count(term);
        });
    }
}

/// Calls `sink` with every term of a text: stems of words, whole identifiers, Chinese characters and pairs of them.
/// Stop words are omitted.
pub(crate) fn terms(text: &str, stemmer: &mut Stemmer, mut sink: impl FnMut(Term, TermScript)) {
    runs(text, |run| match run {
        TextRun::Word(word) => stemmer.term(word).into_iter().for_each(|term| sink(term, TermScript::Spaced)),
        TextRun::Compound(compound) => sink(Term::of(compound), TermScript::Spaced),
        TextRun::Han(han) => grams(han, |gram| {
            if !is_stop_gram(gram) {
                sink(Term::of(gram), TermScript::Han);
            }
        }),
    });
}

/// All characters and all pairs of adjacent characters.
pub(crate) fn grams(han: &str, mut sink: impl FnMut(&str)) {
    let starts: Vec<usize> = han.char_indices().map(|(index, _)| index).chain([han.len()]).collect();
    for window in starts.windows(2) {
        if let [start, end] = window {
            han.get(*start..*end).into_iter().for_each(&mut sink);
        }
    }
    for window in starts.windows(3) {
        if let [start, _, end] = window {
            han.get(*start..*end).into_iter().for_each(&mut sink);
        }
    }
}

/// Normalises a name: lowercase without punctuation, equal for all spellings.
pub(crate) fn key_of(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
