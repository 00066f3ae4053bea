//! An arithmetic expression, and the matching of word tables at a token.

use crate::lexer::token::Token;

/// An expression and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The number of operators.
    pub(crate) operators: usize,
}

pub(crate) fn starts<'a, T: Copy>(
    tokens: &[Token<'_>],
    at: usize,
    table: &[(&'a [&'a str], T)],
) -> Option<(T, usize)> {
    let fits = |words: &[&str]| {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.is_word(word)))
    };
    let best = table.iter().filter(|(words, _)| fits(words)).max_by_key(|(words, _)| words.len())?;
    Some((best.1, best.0.len()))
}
