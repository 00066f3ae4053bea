//! Synonyms: words that requests and tool definitions use for the same action or object, from a table of this
//! project.

use std::sync::LazyLock;

use crate::text::{Stemmer, Term, TermMap};

/// The file documents its own format.
const TABLE: &str = include_str!("../data/synonyms.txt");

static SYNONYMS: LazyLock<Synonyms> = LazyLock::new(|| Synonyms::read(TABLE));

/// Stems with their synonyms.
#[derive(Debug, Default)]
pub(crate) struct Synonyms {
    by_stem: TermMap<Vec<Term>>,
}

impl Synonyms {
    /// The shared table.
    pub(crate) fn get() -> &'static Self {
        &SYNONYMS
    }

    fn read(table: &str) -> Self {
        let stemmer = Stemmer::default();
        let mut by_stem: TermMap<Vec<Term>> = TermMap::default();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let group: Vec<Term> = line.split(' ').map(|word| Term::of(&stemmer.stem(word))).collect();
            for stem in &group {
                let known = by_stem.entry(*stem).or_default();
                for other in &group {
                    if other != stem && !known.contains(other) {
                        known.push(*other);
                    }
                }
            }
        }
        Self { by_stem }
    }

    /// The synonyms of a stem.
    pub(crate) fn of(&self, stem: Term) -> &[Term] {
        self.by_stem.get(&stem).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(table: &Synonyms, word: &str) -> Vec<Term> {
        table.of(Term::of(&Stemmer::default().stem(word))).to_vec()
    }

    #[test]
    fn maps_each_word_to_the_rest_of_its_group() {
        let table = Synonyms::read("# a comment\nfind search query\nfind discover\n");
        let terms = |words: &[&str]| -> Vec<Term> {
            words.iter().map(|word| Term::of(&Stemmer::default().stem(word))).collect()
        };
        assert_eq!(of(&table, "find"), terms(&["search", "query", "discover"]));
        assert_eq!(of(&table, "searching"), terms(&["find", "query"]));
        assert!(of(&table, "comment").is_empty());
    }

    #[test]
    fn synonym_table_is_well_formed() {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.split(' ').count() > 1 && line.split(' ').all(is_word), "{line}");
        }
        assert!(!of(Synonyms::get(), "ppt").is_empty());
    }
}
