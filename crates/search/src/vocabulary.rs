//! The words of tool names, for correcting misspelled words.

use std::collections::HashSet;
use std::sync::Arc;

use crate::document::Document;
use crate::text::{TextRun, letters_of, runs};

/// Minimum length: in shorter words a typo yields another word.
const MIN_WORD_CHARS: usize = 5;
/// Maximum length: longer words are identifiers.
const MAX_WORD_CHARS: usize = 24;

#[derive(Debug)]
struct Word {
    letters: u64,
    text: Box<str>,
}

/// The words of all names.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    words: Vec<Word>,
}

impl Vocabulary {
    /// Collects the words in the names of these documents.
    pub(crate) fn build(documents: &[Arc<Document>]) -> Self {
        let mut seen: HashSet<Box<str>> = HashSet::new();
        for document in documents {
            runs(document.tool.name().as_str(), |run| {
                if let TextRun::Word(word) = run
                    && (MIN_WORD_CHARS..=MAX_WORD_CHARS).contains(&word.len())
                    && word.is_ascii()
                    && !seen.contains(word)
                {
                    seen.insert(word.into());
                }
            });
        }
        let mut words: Vec<Word> =
            seen.into_iter().map(|text| Word { letters: letters_of(&text), text }).collect();
        words.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        Self { words }
    }

    /// The word of a name at an edit distance of one from `word`.
    pub(crate) fn similar(&self, word: &str) -> Option<&str> {
        if !(MIN_WORD_CHARS..=MAX_WORD_CHARS).contains(&word.len())
            || !word.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            return None;
        }
        let letters = letters_of(word);
        let similar = self.words.iter().filter(|other| {
            other.text.len().abs_diff(word.len()) <= 1 && (other.letters ^ letters).count_ones() <= 2
        });
        let mut similar = similar.filter(|other| strsim::osa_distance(&other.text, word) == 1);
        similar.next().map(|other| &*other.text)
    }
}
