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

/// Phrases that hold one of these words, and bound nothing.
const LOOSE: [&str; 12] = [
    "no longer",
    "no one",
    "last week",
    "last month",
    "last year",
    "last night",
    "last time",
    "after all",
    "not any more",
    "all day",
    "all week",
    "first thing",
];

/// A statement without the phrases that only seem to bound: `last week`, `keeps timing out`.
pub(super) fn loosened(statement: &str) -> String {
    let plain = LOOSE.iter().fold(statement.to_owned(), |text, phrase| text.replace(phrase, "so"));
    let words: Vec<&str> = plain.split(' ').collect();
    let goes_on = |at: usize| words.get(at + 1).is_some_and(|next| next.len() > 4 && next.ends_with("ing"));
    let kept = words.iter().enumerate().map(|(at, word)| match *word {
        "keep" | "keeps" | "kept" if goes_on(at) => "is",
        word => word,
    });
    kept.collect::<Vec<_>>().join(" ")
}

/// Whether a statement bounds, forbids or delays the order beside it.
pub(super) fn binds(statement: &str) -> bool {
    let statement = loosened(statement);
    BINDING.iter().any(|word| has_word(&statement, word))
}

/// Whether a part after an order asks for more of the same: `…, they asked for it too`.
pub(super) fn asks_for_more(said: &str) -> bool {
    let said = said.trim_end_matches(['.', '!', ' ']);
    said.ends_with(" too") || said.ends_with(" as well") || has_word(said, "also")
}
