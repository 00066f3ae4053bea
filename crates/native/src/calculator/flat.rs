//! Converts expressions without parentheses (percentages, powers, long chains) to texts that fend parses quickly.

use toolhub_core::lang::LocalizedText;

use super::piece::{CONSTANTS, LOOSE, OPERATORS, Piece};
use super::planner::{Planner, check_length};
use super::steps::{Direction, Operation};
use super::{errors, function_call, functions};

/// Maximum number of terms or factors per fend expression: parsing time is quadratic.
const MAX_CHAIN_FACTORS: usize = 12;

/// Converts an expression to text; parts of it become variables.
pub(super) fn reduce(planner: &mut Planner<'_>, mut pieces: Vec<Piece>) -> Result<String, LocalizedText> {
    check_operands(&pieces)?;
    fold_functions(planner, &mut pieces)?;
    fold_powers(planner, &mut pieces);
    fold_divisors(planner, &mut pieces)?;
    fold_remainders(planner, &mut pieces)?;
    let loose = pieces.iter().any(|piece| match piece {
        Piece::Sign(sign) => matches!(*sign, "==" | "!=" | "=" | "&" | "|"),
        piece => piece.is_word_of(&LOOSE),
    });
    let text = if loose {
        fold_percents(planner, &mut pieces)?;
        join(&pieces)
    } else {
        sum(planner, &pieces)?
    };
    check_length(&text)?;
    Ok(text)
}

fn join(pieces: &[Piece]) -> String {
    pieces.iter().map(Piece::text).collect::<Vec<_>>().join(" ")
}

/// Rejects missing operands: fend would read `3 * / 4` as `3 * (1 / 4)`.
fn check_operands(pieces: &[Piece]) -> Result<(), LocalizedText> {
    let lacks_one = |at: usize| at == 0 || at + 1 == pieces.len() || !pieces[at - 1].ends_operand();
    match (0..pieces.len()).any(|at| is_product(&pieces[at]) && lacks_one(at)) {
        true => Err(errors::missing_operator_or_operand()),
        false => Ok(()),
    }
}

/// Whether a piece is an operator with the precedence of `*`.
fn is_product(piece: &Piece) -> bool {
    matches!(piece, Piece::Sign("*" | "/" | "//" | "per" | "mod"))
}

/// A function without parentheses applies to the next factor, including the unit of an angle: `sin 30° * 2`, `sin^2 x`.
fn fold_functions(planner: &mut Planner<'_>, pieces: &mut Vec<Piece>) -> Result<(), LocalizedText> {
    for at in (0..pieces.len()).rev() {
        let Piece::Word(word) = &pieces[at] else { continue };
        let Some(name) = functions::known(word).filter(|_| functions::is_prefix(word)) else { continue };
        let has_exponent = matches!(&pieces[at + 1..], [Piece::Sign("^"), Piece::Operand(_), ..]);
        let from = at + if has_exponent { 3 } else { 1 };
        let end = factor_end(pieces, from, matches!(name, "sin" | "cos" | "tan"));
        if end > from {
            let argument = pieces.drain(from..end).collect();
            let argument = planner.operand(argument)?;
            pieces[at] = Piece::Operand(function_call::apply(planner, name, &[argument])?);
        }
    }
    Ok(())
}

/// The end of the factor at `from`; `from` itself if there is none.
fn factor_end(pieces: &[Piece], from: usize, with_units: bool) -> usize {
    let operand_end = |mut end: usize| {
        while matches!(pieces.get(end), Some(Piece::Sign("+" | "-"))) {
            end += 1;
        }
        matches!(pieces.get(end), Some(piece @ (Piece::Operand(_) | Piece::Word(_))) if piece.ends_operand())
            .then_some(end + 1)
    };
    let Some(mut end) = operand_end(from) else { return from };
    loop {
        end = match pieces.get(end) {
            Some(Piece::Sign("!") | Piece::Percent) => end + 1,
            Some(Piece::Sign("^")) => match operand_end(end + 1) {
                Some(end) => end,
                None => return end,
            },
            Some(piece @ Piece::Word(_)) if with_units && piece.ends_operand() => end + 1,
            _ => return end,
        };
    }
}

/// Computes `7 // 2` and `-7 mod 3` for any numbers; both have the precedence of `*` and `/`.
fn fold_remainders(planner: &mut Planner<'_>, pieces: &mut Vec<Piece>) -> Result<(), LocalizedText> {
    // Whether the operator at a position has lower precedence than `*`.
    let is_loose = |pieces: &[Piece], at: usize| {
        at > 0
            && pieces[at - 1].ends_operand()
            && match &pieces[at] {
                Piece::Sign("^" | "!") => false,
                piece @ Piece::Sign(_) => !is_product(piece),
                piece => piece.is_word_of(&OPERATORS) && !piece.is_word_of(&["of"]),
            }
    };
    while let Some(at) = pieces.iter().position(|piece| matches!(piece, Piece::Sign("//" | "mod"))) {
        let start = (0..at).rev().find(|at| is_loose(pieces, *at)).map_or(0, |before| before + 1);
        let end = (at + 1..pieces.len()).find(|at| is_product(&pieces[*at]) || is_loose(pieces, *at));
        let end = end.unwrap_or(pieces.len());
        let is_division = pieces[at] == Piece::Sign("//");
        let mut operand = |from, end| {
            let mut part = pieces[from..end].to_vec();
            fold_percents(planner, &mut part)?;
            planner.operand(part)
        };
        let (dividend, divisor) = (operand(start, at)?, operand(at + 1, end)?);
        let value = if is_division {
            let ratio = planner.assign(format!("{dividend} / {divisor}"))?;
            planner.operation(Operation::Round(Direction::Down, ratio))
        } else {
            planner.operation(Operation::Remainder(dividend, divisor))
        };
        pieces.splice(start..end, [Piece::Operand(value)]);
    }
    Ok(())
}

/// Extracts powers from right to left, except integer exponents with at most two digits or with an integer base:
/// `2^3^x` is `2^(3^x)`.
fn fold_powers(planner: &mut Planner<'_>, pieces: &mut Vec<Piece>) {
    for at in (1..pieces.len()).rev() {
        if pieces.get(at) != Some(&Piece::Sign("^")) {
            continue;
        }
        let sign = |piece: Option<&Piece>| matches!(piece, Some(Piece::Sign("+" | "-")));
        let mut end = at + 1;
        while sign(pieces.get(end)) {
            end += 1;
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let base_is_whole = digits(pieces[at - 1].text());
        let simple = match pieces.get(end) {
            Some(Piece::Operand(number)) => digits(number) && (number.len() < 3 || base_is_whole),
            Some(piece @ Piece::Word(_)) if piece.ends_operand() => false,
            _ => continue,
        };
        while pieces.get(end + 1) == Some(&Piece::Sign("!")) {
            end += 1;
        }
        let mut before = at - 1;
        while before > 0 && sign(pieces.get(before - 1)) {
            before -= 1;
        }
        let in_chain = before > 0 && pieces.get(before - 1) == Some(&Piece::Sign("^"));
        if simple && !in_chain {
            continue;
        }
        let base = match &pieces[at - 1] {
            piece @ (Piece::Operand(_) | Piece::Word(_)) if piece.ends_operand() => piece.text().to_owned(),
            _ => continue,
        };
        let name = planner.operation(Operation::Power(base, join(&pieces[at + 1..=end])));
        pieces.splice(at - 1..=end, [Piece::Operand(name)]);
    }
}

/// `100 km / 2 hours` and `100 km / 50 km/h`: the divisor includes the following units. `1/2 cup` is half a cup.
fn fold_divisors(planner: &mut Planner<'_>, pieces: &mut Vec<Piece>) -> Result<(), LocalizedText> {
    let is_unit = |piece: Option<&Piece>| match piece {
        Some(piece @ Piece::Word(word)) => piece.ends_operand() && !CONSTANTS.contains(&word.as_str()),
        _ => false,
    };
    let mut at = 1;
    while at + 2 < pieces.len() {
        let divides = matches!(pieces[at], Piece::Sign("/" | "per"));
        let number = matches!(pieces[at + 1], Piece::Operand(_));
        if divides && number && is_unit(pieces.get(at - 1)) && is_unit(pieces.get(at + 2)) {
            let mut end = at + 2;
            loop {
                if let [Piece::Sign("^"), Piece::Operand(_), ..] = &pieces[end + 1..] {
                    end += 2;
                }
                if pieces.get(end + 1) != Some(&Piece::Sign("per")) || !is_unit(pieces.get(end + 2)) {
                    break;
                }
                end += 2;
            }
            let divisor = planner.assign(join(&pieces[at + 1..=end]))?;
            pieces.splice(at + 1..=end, [Piece::Operand(divisor)]);
        }
        at += 1;
    }
    Ok(())
}

/// A percentage beside other numbers is divided by 100: `15% * 200` is 30, where fend returns `3000%`.
fn fold_percents(planner: &mut Planner<'_>, pieces: &mut Vec<Piece>) -> Result<(), LocalizedText> {
    for at in (1..pieces.len()).rev() {
        let followed_by_of = pieces.get(at + 1).is_some_and(|next| next.is_word_of(&["of"]));
        if pieces[at] == Piece::Percent && !followed_by_of && pieces[at - 1].ends_operand() {
            let hundredth = planner.assign(format!("{} / 100", pieces[at - 1].text()))?;
            pieces.splice(at - 1..=at, [Piece::Operand(hundredth)]);
        }
    }
    Ok(())
}

/// Converts a sum, split if it is long.
fn sum(planner: &mut Planner<'_>, pieces: &[Piece]) -> Result<String, LocalizedText> {
    let terms = terms(pieces);
    let all_percent = terms.iter().all(|(_, term)| percentage(term).is_some());
    let mut total = String::new();
    let mut count = 0;
    for (sign, term) in terms {
        let text = match percentage(term) {
            // `200 + 15%` is 230, as on pocket calculators.
            Some(percent) if !all_percent && !total.is_empty() => {
                let before = planner.assign(total)?;
                let share = planner.assign(format!("{percent} / 100"))?;
                let factor = planner.assign(format!("1 {sign} {share}"))?;
                total = format!("{before} * {factor}");
                count = 1;
                continue;
            }
            Some(_) if all_percent => join(term),
            _ => product(planner, term)?,
        };
        if count == MAX_CHAIN_FACTORS {
            total = planner.assign(total)?;
            count = 1;
        }
        if !total.is_empty() {
            total.push_str(&format!(" {sign} "));
        }
        total.push_str(&text);
        count += 1;
    }
    Ok(total)
}

/// The terms of a sum, each with its sign.
fn terms(pieces: &[Piece]) -> Vec<(&'static str, &[Piece])> {
    let mut terms = Vec::new();
    let (mut start, mut sign) = (0, "+");
    for (at, piece) in pieces.iter().enumerate() {
        if let Piece::Sign(next @ ("+" | "-")) = piece
            && at > start
            && pieces[at - 1].ends_operand()
        {
            terms.push((sign, &pieces[start..at]));
            (start, sign) = (at + 1, next);
        }
    }
    terms.push((sign, &pieces[start..]));
    terms
}

/// The number of a term that consists only of a percentage.
fn percentage(term: &[Piece]) -> Option<&str> {
    match term {
        [Piece::Operand(number), Piece::Percent] => Some(number),
        _ => None,
    }
}

/// Converts a product, split if it is long.
fn product(planner: &mut Planner<'_>, term: &[Piece]) -> Result<String, LocalizedText> {
    let mut pieces = term.to_vec();
    fold_percents(planner, &mut pieces)?;
    if pieces.iter().any(|piece| piece.is_word_of(&OPERATORS)) {
        return Ok(join(&pieces));
    }
    let mut total = String::new();
    let mut factors = 0;
    for piece in &pieces {
        let between = is_product(piece);
        factors += usize::from(between);
        if between && factors == MAX_CHAIN_FACTORS {
            total = planner.assign(total)?;
            factors = 0;
        }
        if !total.is_empty() {
            total.push(' ');
        }
        total.push_str(piece.text());
    }
    if factors > 1 && total.split_whitespace().count() > MAX_CHAIN_FACTORS {
        total = planner.assign(total)?;
    }
    Ok(total)
}
