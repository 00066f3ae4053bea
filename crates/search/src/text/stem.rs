//! Stemming: `searching`, `searches` and `searched` become one term.

use std::collections::HashMap;
use std::fmt;

use rust_stemmers::{Algorithm, Stemmer as Snowball};

use super::{Term, is_stop_word};

/// Maximum size of the cache; a larger one contains mostly words that occur once.
const CACHED_WORDS: usize = 200_000;

/// A stemmer with a cache: a catalog repeats the same few thousand words.
pub(crate) struct Stemmer {
    snowball: Snowball,
    /// `None` for a stop word.
    known: HashMap<String, Option<Term>>,
}

impl fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stemmer").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Default for Stemmer {
    fn default() -> Self {
        Self { snowball: Snowball::create(Algorithm::English), known: HashMap::new() }
    }
}

impl Stemmer {
    /// The stem of a lowercase word.
    pub(crate) fn stem(&self, word: &str) -> String {
        if word.len() <= 3 || !word.is_ascii() {
            return word.to_owned();
        }
        self.snowball.stem(word).into_owned()
    }

    /// The term of a word's stem; `None` for a stop word.
    pub(crate) fn term(&mut self, word: &str) -> Option<Term> {
        if let Some(term) = self.known.get(word) {
            return *term;
        }
        let term = (!is_stop_word(word)).then(|| Term::of(&self.stem(word)));
        if self.known.len() >= CACHED_WORDS {
            self.known.clear();
        }
        self.known.insert(word.to_owned(), term);
        term
    }
}
