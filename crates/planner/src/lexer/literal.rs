//! Literals of a request: quoted texts, URLs, mail addresses, paths, cells, formulas, JSON and codes.

use serde_json::Value;

use crate::lexer::token::is_han;

/// A literal by kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Quoted(String),
    Url(String),
    Mail(String),
    Path(String),
    /// `A1` or `B1:B10`.
    Cells(String),
    /// `=SUM(B1:B10)`.
    Formula(String),
    Json(Value),
    /// Letters and digits mixed: `INV-2024-7`, `#42`.
    Code(String),
}

/// A literal and its byte range.
#[derive(Debug, Clone)]
pub(crate) struct LiteralSpan {
    pub(crate) literal: Literal,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

pub(crate) fn begins_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() && !is_han(c))
}

/// A cell or a range of cells, in the notation of spreadsheets.
pub(crate) fn cells(word: &str) -> Option<&str> {
    let one = |text: &str| {
        let text = text.replace('$', "");
        let letters = text.bytes().take_while(u8::is_ascii_uppercase).count();
        let digits = &text[letters..];
        (1..=3).contains(&letters)
            && (1..=7).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0')
    };
    let column =
        |text: &str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase());
    let fits = match word.split_once(':') {
        Some((first, second)) => one(first) && one(second) || column(first) && column(second),
        None => one(word),
    };
    fits.then_some(word)
}
