//! Words that statements beside an order have in common: how they begin, and which of them bound the order and so are never left
//! out.

use super::rephrase::has_word;

/// Pronouns, articles and other words with which the subject of a statement begins.
pub(super) const SUBJECTS: [&str; 31] = [
    "i",
    "i'm",
    "i've",
    "we",
    "we're",
    "we've",
    "they",
    "they're",
    "he",
    "he's",
    "she",
    "she's",
    "it",
    "it's",
    "this",
    "that",
    "there",
    "there's",
    "the",
    "my",
    "our",
    "your",
    "his",
    "her",
    "their",
    "someone",
    "somebody",
    "everyone",
    "everybody",
    "people",
    "nobody",
];
/// Words that bound, forbid, delay or pick out.
const BINDING: [&str; 30] = [
    "not",
    "never",
    "no",
    "only",
    "except",
    "but",
    "unless",
    "if",
    "when",
    "until",
    "till",
    "before",
    "after",
    "then",
    "instead",
    "must",
    "mustn't",
    "shouldn't",
    "might",
    "maybe",
    "can't",
    "cannot",
    "don't",
    "doesn't",
    "won't",
    "wait",
    "keep",
    "or",
    "whether",
    "nothing",
];

/// Whether a statement bounds, forbids or delays the order beside it.
pub(super) fn binds(statement: &str) -> bool {
    BINDING.iter().any(|word| has_word(statement, word))
}
