//! The elements of an expression without parentheses, and its keywords.

use toolhub_core::lang::LocalizedText;

use super::currencies::is_currency;
use super::functions;
use super::steps::Precision;

/// An operand or operator of an expression without parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A number or a generated variable.
    Operand(String),
    /// A unit, a constant, a function without parentheses, or an operator in letters.
    Word(String),
    Sign(&'static str),
    /// `%` as a percentage.
    Percent,
}

const MAX_PLACES: usize = 1_000;

pub(super) const OPERATORS: [&str; 15] = [
    "to", "in", "as", "of", "mod", "xor", "and", "or", "choose", "permute", "per", "nCr", "nPr", "ncr", "npr",
];
/// Operators with lower precedence than `+`: an expression with one of them is not split.
pub(super) const LOOSE: [&str; 9] = ["xor", "and", "or", "choose", "permute", "nCr", "nPr", "ncr", "npr"];
pub(super) const CONVERSIONS: [&str; 3] = ["to", "in", "as"];
const FORMATS: [&str; 12] = [
    "hex",
    "hexadecimal",
    "binary",
    "octal",
    "base",
    "fraction",
    "mixed_fraction",
    "words",
    "roman",
    "float",
    "exact",
    "string",
];
pub(super) const CONSTANTS: [&str; 7] = ["pi", "π", "tau", "e", "phi", "i", "c"];

impl Piece {
    pub(super) fn word(text: &str) -> Self {
        Self::Word(text.to_owned())
    }

    /// Whether an operand ends here, so that an operator may follow.
    pub(super) fn ends_operand(&self) -> bool {
        match self {
            Self::Operand(_) | Self::Percent | Self::Sign("!") => true,
            Self::Word(word) => !is_operator(word) && !functions::is_prefix(word),
            Self::Sign(_) => false,
        }
    }

    pub(super) fn is_word_of(&self, words: &[&str]) -> bool {
        matches!(self, Self::Word(word) if words.contains(&word.as_str()))
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Operand(text) | Self::Word(text) => text,
            Self::Sign(sign) => sign,
            Self::Percent => "%",
        }
    }
}

pub(super) fn is_operator(word: &str) -> bool {
    OPERATORS.contains(&word)
}

/// Adds an operand, with an implicit multiplication if it follows another operand.
pub(super) fn push_operand(pieces: &mut Vec<Piece>, operand: Piece) {
    if pieces.last().is_some_and(Piece::ends_operand) {
        pieces.push(Piece::Sign("*"));
    }
    pieces.push(operand);
}

/// Adds a number; a preceding currency is moved after it, like other units.
pub(super) fn push_number(pieces: &mut Vec<Piece>, number: String) {
    let currency = match pieces.as_slice() {
        [.., Piece::Operand(_), Piece::Word(_)] => None,
        [.., Piece::Word(word)] if is_currency(word) => pieces.pop(),
        _ => None,
    };
    pieces.push(Piece::Operand(number));
    pieces.extend(currency);
}

/// Removes `to 3 dp` from the end: fend rounds incorrectly if the last digit is a zero.
pub(super) fn take_precision(pieces: &mut Vec<Piece>) -> Result<Precision, LocalizedText> {
    if let [.., to, Piece::Operand(number), Piece::Word(unit)] = pieces.as_slice()
        && to.is_word_of(&CONVERSIONS)
        && matches!(unit.as_str(), "dp" | "sf")
    {
        let count = number.parse().ok().filter(|count| *count <= MAX_PLACES);
        let count = count.ok_or_else(|| {
            LocalizedText::new(
                format!("`{number} {unit}` is too many: {MAX_PLACES} at most"),
                format!("`{number} {unit}` 太多：最多 {MAX_PLACES}"),
            )
        })?;
        let precision =
            if unit == "dp" { Precision::Decimal(count) } else { Precision::Significant(count.max(1)) };
        pieces.truncate(pieces.len() - 3);
        return Ok(precision);
    }
    let formatted = pieces.iter().enumerate().any(|(at, piece)| match piece {
        Piece::Word(_) => piece.is_word_of(&FORMATS) && at > 0 && pieces[at - 1].is_word_of(&CONVERSIONS),
        Piece::Operand(number) => {
            number.starts_with("0x") || number.starts_with("0b") || number.starts_with("0o")
        }
        _ => false,
    });
    Ok(if formatted { Precision::Formatted } else { Precision::Unspecified })
}
