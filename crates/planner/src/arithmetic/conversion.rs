//! Reads conversions between units as an expression for a calculator: `5 km to miles`, `5 公里是多少英里`.

use crate::arithmetic::expression::{Expression, starts};
use crate::lexer::number_words::read_operand;
use crate::lexer::token::{Token, TokenKind};
use crate::lexer::units;

/// `5 km to miles`, `5 公里是多少英里`.
pub(crate) fn conversion(text: &str, tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let token = tokens.get(at)?;
    let (amount, operand_length) = read_operand(tokens, at)?;
    let (mut from, length) = scale(tokens, at + operand_length)?;
    let mut next = at + operand_length + length;
    // `5 天 3 小时`: an amount in two units.
    while let Some((more, operand_length)) = read_operand(tokens, next + and(tokens, next))
        && let Some((unit, length)) = scale(tokens, next + and(tokens, next) + operand_length)
    {
        next += and(tokens, next) + operand_length + length;
        from = format!("{from} + {more} {unit}");
    }
    let joint: [(&[&str], ()); 21] = [
        (&["is", "in"], ()),
        (&["有", "多", "少"], ()),
        (&["是", "几"], ()),
        (&["等", "于", "几"], ()),
        (&["换", "算", "到"], ()),
        (&["转", "为"], ()),
        (&["换", "为"], ()),
        (&["in"], ()),
        (&["to"], ()),
        (&["into"], ()),
        (&["等", "于", "多", "少"], ()),
        (&["是", "多", "少"], ()),
        (&["换", "算", "成"], ()),
        (&["换", "算", "为"], ()),
        (&["转", "换", "成"], ()),
        (&["转", "换", "为"], ()),
        (&["转", "成"], ()),
        (&["换", "成"], ()),
        (&["合", "多", "少"], ()),
        (&["equals", "how", "many"], ()),
        (&["is", "how", "many"], ()),
    ];
    next += starts(tokens, next, &joint)?.1;
    let (to, length) = scale(tokens, next)?;
    let after = next + length;
    let sign = if text[..token.start].ends_with('-') { "-" } else { "" };
    let expression = format!("{sign}{amount} {from} to {to}");
    let start = token.start - sign.len();
    Some((Expression { text: expression, start, end: tokens[after - 1].end, operators: 1 }, after))
}

/// The number of tokens that join two amounts: `2 hours and 15 minutes`.
fn and(tokens: &[Token<'_>], at: usize) -> usize {
    usize::from(tokens.get(at).is_some_and(|token| token.is_any(&["and", "零", "又"])))
}

/// `how many grams are in 2.5 lb`, `2.5 磅有多少克`.
pub(crate) fn how_many(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let small = |token: &&Token<'_>| {
        token.is_any(&["are", "is", "there", "in", "do", "does", "a", "make", "equal", "fit", "into"])
    };
    if tokens.get(at)?.is_word("how") && tokens.get(at + 1)?.is_word("many") {
        let (to, length) = scale(tokens, at + 2)?;
        let between = at + 2 + length;
        let number = between + tokens[between..].iter().take_while(small).count();
        let (value, operand_length) = read_operand(tokens, number).filter(|_| number > between)?;
        let (from, length) = scale(tokens, number + operand_length)?;
        let after = number + operand_length + length;
        let text = format!("{value} {from} to {to}");
        return Some((
            Expression { text, start: tokens[at].start, end: tokens[after - 1].end, operators: 1 },
            after,
        ));
    }
    None
}

/// `km/h`: a unit divided by another, without blanks.
fn rate(tokens: &[Token<'_>], at: usize) -> Option<String> {
    let (first, slash, second) = (tokens.get(at)?, tokens.get(at + 1)?, tokens.get(at + 2)?);
    let together = first.end == slash.start && slash.end == second.start && slash.text == "/";
    let known = units::of(first.text).is_some() && units::of(second.text).is_some();
    (together && known).then(|| format!("{}/{}", first.text, second.text))
}

/// The plural of a unit of length: 英里 is `miles`.
fn plural(name: &str) -> String {
    match name {
        "mile" | "kilometer" => format!("{name}s"),
        _ => name.to_owned(),
    }
}

/// A unit in the notation of the calculator.
fn scale(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let token = tokens.get(at)?;
    let degree = matches!(token.text, "°" | "degrees" | "degree");
    let letter = tokens.get(at + 1).filter(|next| next.is_any(&["C", "F", "celsius", "fahrenheit"]));
    if let Some(letter) = letter.filter(|_| degree) {
        let sign = if letter.text.starts_with(['C', 'c']) { "°C" } else { "°F" };
        return Some((sign.to_owned(), 2));
    }
    if let Some(rate) = rate(tokens, at) {
        return Some((rate, 3));
    }
    let (unit, length) = units::at(tokens, at);
    let unit = unit?;
    let name = match unit.name() {
        "celsius" => "°C",
        "fahrenheit" => "°F",
        _ if token.kind == TokenKind::Han => return Some((plural(unit.name()), length)),
        _ => token.text,
    };
    Some((name.to_owned(), length))
}
