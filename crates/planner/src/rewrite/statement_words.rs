//! Words that are common to statements beside an order: subjects, and words that restrict the order. A statement with such a
//! word is never removed.

use crate::rewrite::masked_text::has_word;

/// Pronouns, articles and other words that start the subject of a statement.
pub(crate) const SUBJECTS: [&str; 31] = [
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
/// Words that restrict, forbid, delay or select.
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

/// Phrases that contain one of these words without restricting.
const LOOSE: [&str; 14] = [
    "just an",
    "just a",
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

/// Replaces phrases that only seem to restrict: `last week`, `keeps timing out`.
pub(crate) fn loosened(statement: &str) -> String {
    let plain = LOOSE.iter().fold(statement.to_owned(), |text, phrase| text.replace(phrase, "so"));
    let words: Vec<&str> = plain.split(' ').collect();
    let continues = |at: usize| words.get(at + 1).is_some_and(|next| next.len() > 4 && next.ends_with("ing"));
    let replaced = words.iter().enumerate().map(|(at, word)| match *word {
        "keep" | "keeps" | "kept" if continues(at) => "is",
        word => word,
    });
    replaced.collect::<Vec<_>>().join(" ")
}

/// Whether a statement restricts, forbids or delays the order beside it.
pub(crate) fn binds(statement: &str) -> bool {
    let statement = loosened(statement);
    BINDING.iter().any(|word| has_word(&statement, word))
}

/// Words of a remark that takes an order back, corrects it, doubts it or speaks against it.
const RETRACTS: [&str; 24] = [
    "joke", "joking", "kidding", "meant", "mean", "rather", "sorry", "mind", "forget", "actually", "yet",
    "still", "needed", "needs", "need", "think", "handle", "decide", "confirm", "agree", "ask", "sure",
    "later on", "tell",
];
/// The next action of the author in place of the order.
const AUTHOR_ACTIONS: [&str; 6] = ["do it", "do that", "do this", "take care", "let you know", "get back"];

/// Whether a remark after an order takes it back, doubts it or speaks against it.
pub(crate) fn retracts(clause: &str) -> bool {
    RETRACTS.iter().chain(&AUTHOR_ACTIONS).any(|word| has_word(clause, word))
}

/// Whether a part after an order adds items: `…, they asked for it too`.
pub(crate) fn asks_for_more(clause: &str) -> bool {
    let clause = clause.trim_end_matches(['.', '!', ' ']);
    clause.ends_with(" too") || clause.ends_with(" as well") || has_word(clause, "also")
}
