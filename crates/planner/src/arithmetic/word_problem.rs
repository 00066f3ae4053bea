//! Arithmetic word problems: discounts, percentages, equal shares, logarithms with a base.

use crate::arithmetic::expression::Expression;
use crate::lexer::number_words::{chinese_digit, read_operand};
use crate::lexer::token::{Token, TokenKind};

/// The maximum distance between the two numbers of a problem in tokens.
const MAX_NUMBER_DISTANCE: usize = 12;

/// Words before a percentage that is added or subtracted.
const INCREASE_WORDS: [&str; 14] = [
    "涨价",
    "上涨",
    "涨了",
    "上调",
    "提高",
    "增加",
    "增长",
    "涨",
    "up by",
    "increased by",
    "raised by",
    "grows by",
    "plus",
    "increase of",
];
const DECREASE_WORDS: [&str; 14] = [
    "降价",
    "下降",
    "降了",
    "下调",
    "减少",
    "便宜",
    "优惠",
    "降",
    "down by",
    "reduced by",
    "decreased by",
    "drops by",
    "less",
    "decrease of",
];

/// The problem that starts at a token: a number, a keyword and another number.
pub(crate) fn word_problem(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    logarithm(tokens, at).or_else(|| operation_on_number(tokens, at))
}

fn build_expression(tokens: &[Token<'_>], at: usize, after: usize, text: String) -> (Expression, usize) {
    (Expression { text, start: tokens[at].start, end: tokens[after - 1].end, operators: 1 }, after)
}

/// `log base 2 of 4096`.
fn logarithm(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let is = |at: usize, listed: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(listed));
    if !is(at, &["log", "logarithm"]) || !is(at + 1, &["base"]) {
        return None;
    }
    let (base, length) = read_operand(tokens, at + 2)?;
    let of = at + 2 + length;
    let (number, length) = read_operand(tokens, of + 1).filter(|_| is(of, &["of"]))?;
    Some(build_expression(tokens, at, of + 1 + length, format!("log({number}, {base})")))
}

/// A number and an operation on it within the same sentence.
fn operation_on_number(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let (first, length) =
        read_operand(tokens, at).filter(|(_, length)| tokens[at].kind == TokenKind::Number || *length > 1)?;
    // 第 makes the number an ordinal, not an amount.
    if at > 0 && tokens[at - 1].text == "第" {
        return None;
    }
    for next in at + length..(at + length + MAX_NUMBER_DISTANCE).min(tokens.len()) {
        let text = |step: usize| tokens.get(next + step).map_or("", |token| token.text);
        if matches!(text(0), "." | "?" | "!" | "。" | "？" | "！" | ";" | "；")
            && tokens[next].kind == TokenKind::Mark
        {
            return None;
        }
        // 打七折, 打八五折.
        if text(0) == "打"
            && let Some(length) = (1..=2).find(|length| text(1 + length) == "折")
        {
            let digits: Option<String> = (0..length)
                .map(|offset| chinese_digit(text(1 + offset)).map(|digit| digit.to_string()))
                .collect();
            let digits = digits.or_else(|| (length == 1).then(|| text(1).replace('.', "")));
            let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            return Some(build_expression(tokens, at, next + 2 + length, format!("{first} * 0.{digits}")));
        }
        if let Some((second, length)) = read_operand(tokens, next) {
            let after = next + length;
            let is = |at: usize, listed: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(listed));
            // `129 … 30% off`: subtracts a percentage.
            if is(after, &["%", "percent"]) && is(after + 1, &["off", "discount", "cheaper", "less"]) {
                return Some(build_expression(tokens, at, after + 2, format!("{first} - {second}%")));
            }
            // 涨价 8%, `goes up by 8%`: adds or subtracts a percentage.
            if is(after, &["%", "percent"]) {
                let before: String =
                    tokens[at + 1..next].iter().map(|token| token.text.to_lowercase() + " ").collect();
                let contains_any = |listed: &[&str]| {
                    listed.iter().any(|word| before.replace(' ', "").ends_with(&word.replace(' ', "")))
                };
                if contains_any(&INCREASE_WORDS) {
                    return Some(build_expression(tokens, at, after + 1, format!("{first} + {second}%")));
                }
                if contains_any(&DECREASE_WORDS) {
                    return Some(build_expression(tokens, at, after + 1, format!("{first} - {second}%")));
                }
            }
            // `45 … an 18% tip`: a percentage of the number.
            if is(after, &["%", "percent"]) && is(after + 1, &["tip", "tax", "vat", "commission", "deposit"])
            {
                return Some(build_expression(tokens, at, after + 2, format!("{second}% of {first}")));
            }
            if shares(tokens, at, next) {
                return Some(build_expression(tokens, at, after, format!("{first} / {second}")));
            }
            return None;
        }
    }
    None
}

/// `split 90 between 4`, 把 90 平均分给 4: whether the words around two numbers describe a division into equal shares.
fn shares(tokens: &[Token<'_>], first: usize, second: usize) -> bool {
    let is = |at: usize, listed: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(listed));
    let english = is(second.wrapping_sub(1), &["between", "among", "amongst"])
        && (first.saturating_sub(6)..first)
            .any(|at| is(at, &["split", "divide", "share", "splitting", "dividing"]));
    let between: String = tokens[(first + 1).min(second)..second].iter().map(|token| token.text).collect();
    english
        || ["平均分成", "平均分给", "平分成", "平分给", "均分成", "均分给"]
            .iter()
            .any(|word| between.ends_with(word))
}
