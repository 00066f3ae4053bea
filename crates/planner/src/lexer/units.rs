//! Units of measurement and counting, in all their spellings.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::lexer::token::{Token, TokenKind};

const TABLE: &str = include_str!("../../data/units.tsv");

/// The maximum length of a Chinese unit in characters.
const MAX_UNIT_CHARS: usize = 4;

/// A unit. All spellings of a unit are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit(&'static str);

static UNITS: LazyLock<HashMap<&'static str, Unit>> = LazyLock::new(|| {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    let mut units = HashMap::new();
    for row in rows {
        let names: Vec<&'static str> = row.split_whitespace().collect();
        if let Some(first) = names.first() {
            for name in &names {
                units.entry(*name).or_insert(Unit(first));
            }
        }
    }
    units
});

impl Unit {
    /// Whether it measures a length, a mass, a volume or a temperature.
    pub(crate) fn is_measure(self) -> bool {
        const MEASURES: [&str; 18] = [
            "meter",
            "kilometer",
            "centimeter",
            "millimeter",
            "mile",
            "foot",
            "inch",
            "yard",
            "kilogram",
            "gram",
            "milligram",
            "ounce",
            "ton",
            "celsius",
            "fahrenheit",
            "liter",
            "milliliter",
            "gallon",
        ];
        MEASURES.contains(&self.0)
    }

    /// The English name.
    pub(crate) fn name(self) -> &'static str {
        self.0
    }
}

/// The unit with this name.
pub(crate) fn of(name: &str) -> Option<Unit> {
    UNITS.get(name).or_else(|| UNITS.get(name.to_lowercase().as_str())).copied()
}

/// The unit at a token and the number of its tokens.
pub(crate) fn at(tokens: &[Token<'_>], at: usize) -> (Option<Unit>, usize) {
    let Some(token) = tokens.get(at) else { return (None, 0) };
    if token.kind != TokenKind::Han {
        // A single letter is a unit only directly after its number, without a space.
        let joined = at > 0 && tokens[at - 1].end == token.start;
        return match of(token.text) {
            // `300 K`: some capital letters are units after a space, too, unless a capitalised word follows.
            Some(unit)
                if joined
                    || token.text.chars().nth(1).is_some()
                    || (matches!(token.text, "K" | "V" | "W" | "J" | "N")
                        && tokens.get(at + 1).is_none_or(|next| !next.is_capital())) =>
            {
                (Some(unit), 1)
            }
            _ => (None, 0),
        };
    }
    let han: Vec<&str> = tokens[at..]
        .iter()
        .take(MAX_UNIT_CHARS)
        .take_while(|token| token.kind == TokenKind::Han)
        .map(|token| token.text)
        .collect();
    (1..=han.len())
        .rev()
        .find_map(|length| Some((of(&han[..length].concat())?, length)))
        .map_or((None, 0), |(unit, length)| (Some(unit), length))
}
