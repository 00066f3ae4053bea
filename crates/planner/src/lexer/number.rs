//! Numbers in natural language: digits, words, Chinese numerals, millions, percentages and units.

use serde_json::{Number as JsonNumber, Value as Json};

use crate::lexer::number_words::{ordinal_word, read_chinese_number, read_english_number};
use crate::lexer::token::{Token, TokenKind};
use crate::lexer::units::{self, Unit};

/// A number in a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) value: f64,
    pub(crate) percent: bool,
    /// The unit that it counts or measures.
    pub(crate) unit: Option<Unit>,
    /// Whether it may be only an article: `one`, `一个`.
    pub(crate) may_be_article: bool,
    /// Whether it is an ordinal: `3rd`, `第三`.
    pub(crate) ordinal: bool,
}

/// A number and its token range, including its unit.
#[derive(Debug, Clone)]
pub(crate) struct ParsedNumber {
    pub(crate) number: Number,
    pub(crate) first: usize,
    pub(crate) after: usize,
}

const SCALES: [(&str, f64); 9] = [
    ("hundred", 1e2),
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("万", 1e4),
    ("亿", 1e8),
    ("百万", 1e6),
    ("千", 1e3),
];
const CURRENCIES: [&str; 4] = ["$", "¥", "€", "£"];

/// Reads the number that starts at token `at`.
pub(crate) fn read(text: &str, tokens: &[Token<'_>], at: usize) -> Option<ParsedNumber> {
    let token = tokens.get(at)?;
    let (mut value, mut after, mut may_be_article) = match token.kind {
        TokenKind::Number => (digits(token.text)?, at + 1, false),
        TokenKind::Word => match ordinal_word(tokens, at) {
            Some(rank) => (rank, at + 1, false),
            None => read_english_number(tokens, at)?,
        },
        TokenKind::Han => read_chinese_number(tokens, at)?,
        TokenKind::Mark => return None,
    };
    let mut first = at;
    let mut ordinal = ordinal_word(tokens, at).is_some();
    if token.kind == TokenKind::Number {
        (value, after) = read_exponent(tokens, value, after);
        if has_minus_sign(text, tokens, at) {
            value = -value;
            first = at - 1;
        }
        if let Some(next) = tokens.get(after)
            && next.start == token.end
            && next.is_any(&["st", "nd", "rd", "th"])
        {
            ordinal = true;
            after += 1;
        }
    }
    ordinal |= token_before(tokens, at).is_some_and(|before| before.text == "第");
    (value, after) = read_scale(tokens, value, after);
    let percent = is_percent(tokens, &mut after);
    let percent_before = at >= 3 && tokens[at - 3..at].iter().map(|token| token.text).eq(["百", "分", "之"]);
    if percent_before {
        first = at - 3;
    }
    let mut unit = None;
    if let Some(mark) = token_before(tokens, first)
        && CURRENCIES.contains(&mark.text)
    {
        unit = units::of(mark.text);
        first -= 1;
    }
    if unit.is_none() && !percent {
        (unit, after) = read_unit(tokens, after);
    }
    if token.kind == TokenKind::Han && after - at == 1 && unit.is_none() && !ordinal && !percent_before {
        // A single Chinese numeral is more often part of a word than a number: 一下, 万一, 三明治.
        return None;
    }
    may_be_article = may_be_article && !percent;
    let number = Number { value, percent: percent || percent_before, unit, may_be_article, ordinal };
    Some(ParsedNumber { number, first, after })
}

fn token_before<'a, 't>(tokens: &'a [Token<'t>], at: usize) -> Option<&'a Token<'t>> {
    tokens.get(at.checked_sub(1)?)
}

/// Whether a minus sign precedes the number at token `at`, and is not an operator between two operands.
fn has_minus_sign(text: &str, tokens: &[Token<'_>], at: usize) -> bool {
    token_before(tokens, at).is_some_and(|mark| {
        matches!(mark.text, "-" | "−")
            && mark.end == tokens[at].start
            && !text[..mark.start].ends_with(|c: char| c.is_alphanumeric() || c == ')')
    })
}

/// The unit of the number that ends before token `after`, and the index after both.
fn read_unit(tokens: &[Token<'_>], after: usize) -> (Option<Unit>, usize) {
    const ADJECTIVES: [&str; 9] =
        ["empty", "blank", "new", "more", "extra", "additional", "further", "fresh", "spare"];
    let next = tokens.get(after);
    // `three empty rows`: an adjective may stand between the number and the counted noun.
    let described = next.is_some_and(|next| next.is_any(&ADJECTIVES));
    let (unit, length) = units::at(tokens, after + usize::from(described));
    // A unit without a space before it belongs to the number; after a space it may be a separate word.
    let is_joined =
        || next.is_some_and(|next| next.kind != TokenKind::Word || next.start == tokens[after - 1].end);
    let is_part = unit.is_some() && !described && is_joined();
    (unit, if is_part { after + length } else { after })
}

fn digits(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// `1e-5` and `2.5 x 10^3`.
fn read_exponent(tokens: &[Token<'_>], value: f64, after: usize) -> (f64, usize) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let number = |at: usize| tokens.get(at).and_then(|token| token.text.parse::<i32>().ok());
    let joined = tokens.get(after).is_some_and(|next| after > 0 && next.start == tokens[after - 1].end);
    if joined
        && text(after).eq_ignore_ascii_case("e")
        && text(after + 1) == "-"
        && let Some(power) = number(after + 2)
    {
        return (value * 10f64.powi(-power), after + 3);
    }
    if joined
        && let Some(power) = text(after).strip_prefix(['e', 'E']).and_then(|power| power.parse::<i32>().ok())
    {
        return (value * 10f64.powi(power), after + 1);
    }
    if matches!(text(after), "x" | "×" | "*") && text(after + 1) == "10" && text(after + 2) == "^" {
        if let Some(power) = number(after + 3) {
            return (value * 10f64.powi(power), after + 4);
        }
        if text(after + 3) == "-"
            && let Some(power) = number(after + 4)
        {
            return (value * 10f64.powi(-power), after + 5);
        }
    }
    (value, after)
}

fn read_scale(tokens: &[Token<'_>], mut value: f64, mut after: usize) -> (f64, usize) {
    while let Some(token) = tokens.get(after) {
        let two = tokens.get(after + 1).filter(|_| token.text == "百").is_some_and(|next| next.text == "万");
        if two {
            (value, after) = (value * 1e6, after + 2);
        } else if let Some((_, scale)) = SCALES.iter().find(|(name, _)| token.is_word(name)) {
            (value, after) = (value * scale, after + 1);
        } else {
            break;
        }
    }
    (value, after)
}

fn is_percent(tokens: &[Token<'_>], after: &mut usize) -> bool {
    let found = tokens.get(*after).is_some_and(|token| token.is_any(&["%", "percent", "percents"]));
    *after += usize::from(found);
    found
}

/// Converts a number to JSON, as an integer if it has no fraction.
pub(crate) fn json(value: f64) -> Option<Json> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Json::from(value as i64));
    }
    JsonNumber::from_f64(value).map(Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn parses_numbers() {
        let check = |text: &str, value: f64, unit: &str| {
            let tokens = tokenize(text);
            let number = (0..tokens.len()).find_map(|at| read(text, &tokens, at)).unwrap().number;
            assert_eq!(number.value, value, "{text}");
            let expect = (!unit.is_empty()).then(|| units::of(unit).unwrap());
            assert_eq!(number.unit, expect, "{text}");
        };
        check("1,234.5 km", 1234.5, "kilometer");
        check("-3", -3.0, "");
        check("$2 million", 2e6, "dollar");
        check("five years", 5.0, "year");
        check("twenty-one", 21.0, "");
        check("two hundred", 200.0, "");
        check("三十二", 32.0, "");
        check("两百", 200.0, "");
        check("一千零五", 1005.0, "");
        check("十五天", 15.0, "day");
        check("二〇二四年", 2024.0, "year");
        check("3万元", 30_000.0, "yuan");
        check("1e-5", 1e-5, "");
        check("2.5 x 10^3", 2500.0, "");
        check("5kg", 5.0, "kilogram");
        check("三个", 3.0, "item");
    }

    #[test]
    fn parses_percentages_and_skips_ordinary_words() {
        let text = "15% 一下 three";
        let all = tokenize(text);
        let found: Vec<_> = (0..all.len()).filter_map(|at| read(text, &all, at)).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].number.percent && !found[1].number.percent);
        let text = "百分之二十";
        let all = tokenize(text);
        assert!(read(text, &all, 3).unwrap().number.percent);
    }
}
