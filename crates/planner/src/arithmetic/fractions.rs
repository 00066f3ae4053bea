//! Fractions, multiples and remainders in words: `half of 340`, 99 的三分之一, `7 out of 35 as a percentage`.

use crate::arithmetic::expression::Expression;
use crate::lexer::number_words::{chinese_digit, read_operand};
use crate::lexer::token::Token;

/// Phrases before a number and their expression templates.
const BEFORE: [(&[&str], &str); 17] = [
    (&["half", "of"], "{} / 2"),
    (&["a", "third", "of"], "{} / 3"),
    (&["one", "third", "of"], "{} / 3"),
    (&["two", "thirds", "of"], "{} * 2 / 3"),
    (&["a", "quarter", "of"], "{} / 4"),
    (&["one", "quarter", "of"], "{} / 4"),
    (&["three", "quarters", "of"], "{} * 3 / 4"),
    (&["a", "fifth", "of"], "{} / 5"),
    (&["a", "tenth", "of"], "{} / 10"),
    (&["double"], "{} * 2"),
    (&["twice"], "{} * 2"),
    (&["triple"], "{} * 3"),
    (&["square", "of"], "{}^2"),
    (&["cube", "of"], "{}^3"),
    (&["half"], "{} / 2"),
    (&["factorial"], "factorial({})"),
    (&["inverse", "of"], "1 / {}"),
];
/// Phrases after a number and their expression templates.
const AFTER: [(&[&str], &str); 7] = [
    (&["的", "一", "半"], "{} / 2"),
    (&["翻", "倍"], "{} * 2"),
    (&["翻", "一", "番"], "{} * 2"),
    (&["factorial"], "factorial({})"),
    (&["doubled"], "{} * 2"),
    (&["tripled"], "{} * 3"),
    (&["halved"], "{} / 2"),
];

/// The expression that starts at a token.
pub(crate) fn fraction(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    before(tokens, at)
        .or_else(|| percent_first(tokens, at))
        .or_else(|| what_percent(tokens, at))
        .or_else(|| after(tokens, at))
        .or_else(|| of_both(tokens, at))
}

fn is(tokens: &[Token<'_>], at: usize, words: &[&str]) -> bool {
    words
        .iter()
        .enumerate()
        .all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.is_word(word)))
}

fn any(tokens: &[Token<'_>], at: usize, words: &[&str]) -> bool {
    tokens.get(at).is_some_and(|token| token.is_any(words))
}

fn build_expression(
    tokens: &[Token<'_>],
    at: usize,
    after: usize,
    text: String,
) -> Option<(Expression, usize)> {
    let (start, end) = (tokens.get(at)?.start, tokens.get(after.checked_sub(1)?)?.end);
    Some((Expression { text, start, end, operators: 1 }, after))
}

/// A number that no operator follows.
fn last(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let (number, length) = read_operand(tokens, at)?;
    let after = at + length;
    let continues = [
        "+", "-", "*", "/", "^", "%", "plus", "minus", "times", "percent", "x", "×", "÷", "加", "减", "乘",
        "除",
    ];
    (!any(tokens, after, &continues)).then_some((number, after))
}

fn before(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let (words, form) = BEFORE.iter().find(|(words, _)| is(tokens, at, words))?;
    let (number, after) = last(tokens, at + words.len())?;
    build_expression(tokens, at, after, form.replace("{}", &number))
}

/// `15 percent off 60`, `12% tax on 250`, `add 12% tax to 250`.
fn percent_first(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let adds = any(tokens, at, &["add", "adding"]);
    let from = at + usize::from(adds);
    let (fraction, length) = read_operand(tokens, from)?;
    let sign = from + length;
    if !any(tokens, sign, &["%", "percent"]) {
        return None;
    }
    if any(tokens, sign + 1, &["off"]) && !any(tokens, sign + 2, &["of"]) {
        let (base, after) = last(tokens, sign + 2)?;
        return build_expression(tokens, at, after, format!("{base} - {fraction}%"));
    }
    let named =
        usize::from(any(tokens, sign + 1, &["tax", "vat", "tip", "interest", "commission", "markup"]));
    if adds && any(tokens, sign + 1 + named, &["to"]) {
        let (base, after) = last(tokens, sign + 2 + named)?;
        return build_expression(tokens, at, after, format!("{base} + {fraction}%"));
    }
    None
}

/// `7 out of 35 as a percentage`, `what percent of 35 is 7`, 7 占 35 的百分之几.
fn what_percent(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let form = |part: &str, total: &str| format!("{part} / {total} * 100");
    if any(tokens, at, &["percent", "percentage"]) && any(tokens, at + 1, &["of"]) {
        let (total, length) = read_operand(tokens, at + 2)?;
        let verb = at + 2 + length;
        let (part, after) = last(tokens, verb + 1).filter(|_| any(tokens, verb, &["is", "are"]))?;
        return build_expression(tokens, at, after, form(&part, &total));
    }
    let (part, length) = read_operand(tokens, at)?;
    let next = at + length;
    if is(tokens, next, &["out", "of"]) || any(tokens, next, &["占"]) {
        let skip = if any(tokens, next, &["占"]) { 1 } else { 2 };
        let (total, length) = read_operand(tokens, next + skip)?;
        let after = next + skip + length;
        let questions = [
            &["as", "a", "percentage"][..],
            &["as", "a", "percent"],
            &["in", "percent"],
            &["的", "百", "分", "之", "几"],
            &["的", "百", "分", "之", "多", "少"],
            &["的", "百", "分", "比"],
            &["的", "比", "例"],
        ];
        let question = questions.iter().find(|words| is(tokens, after, words))?;
        return build_expression(tokens, at, after + question.len(), form(&part, &total));
    }
    None
}

/// 340 的一半, 99 的三分之一, 6 的 3 倍, `10 factorial`.
fn after(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let (number, length) = read_operand(tokens, at)?;
    let next = at + length;
    if let Some((words, form)) = AFTER.iter().find(|(words, _)| is(tokens, next, words)) {
        return build_expression(tokens, at, next + words.len(), form.replace("{}", &number));
    }
    let parts = |at: usize| tokens.get(at).and_then(|token| chinese_digit(token.text));
    if any(tokens, next, &["的"]) {
        if let (Some(below), Some(above)) = (parts(next + 1), parts(next + 4))
            && is(tokens, next + 2, &["分", "之"])
            && below > 0
        {
            return build_expression(tokens, at, next + 5, format!("{number} * {above} / {below}"));
        }
        if let Some((times, length)) = read_operand(tokens, next + 1)
            && any(tokens, next + 1 + length, &["倍"])
        {
            return build_expression(tokens, at, next + 2 + length, format!("{number} * {times}"));
        }
    }
    None
}

/// `product of 12 and 14`, `difference between 9 and 4`, `remainder of 100 divided by 7`, 12 和 14 的乘积, 100 除以 7 的余数.
fn of_both(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let sign = match tokens.get(at)?.text.to_lowercase().as_str() {
        "product" => "*",
        "difference" => "-",
        "remainder" => "mod",
        _ => "",
    };
    let begins = usize::from(!sign.is_empty());
    let small = begins + usize::from(begins == 1 && any(tokens, at + 1, &["of", "between", "when"]));
    let (first, length) = read_operand(tokens, at + small)?;
    let middle = at + small + length;
    let joints = [
        &["divided", "by"][..],
        &["is", "divided", "by"],
        &["and"],
        &["除", "以"],
        &["和"],
        &["与"],
        &["跟"],
    ];
    let joint = joints.iter().find(|words| is(tokens, middle, words))?;
    let (second, length) = read_operand(tokens, middle + joint.len())?;
    let after = middle + joint.len() + length;
    if !sign.is_empty() {
        return (small == 2)
            .then(|| build_expression(tokens, at, after, format!("{first} {sign} {second}")))?;
    }
    let ends: [(&[&str], &str); 8] = [
        (&["的", "余", "数"], "mod"),
        (&["余", "几"], "mod"),
        (&["余", "多", "少"], "mod"),
        (&["的", "乘", "积"], "*"),
        (&["的", "积"], "*"),
        (&["的", "差"], "-"),
        (&["相", "差"], "-"),
        (&["相", "乘"], "*"),
    ];
    let divides = joint[0] == "除";
    let (words, sign) =
        ends.iter().find(|(words, sign)| is(tokens, after, words) && divides == (*sign == "mod"))?;
    build_expression(tokens, at, after + words.len(), format!("{first} {sign} {second}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn parses_fractions_and_multiples() {
        let check = |text: &str, expect: &str| {
            let all = tokenize(text);
            let found = (0..all.len()).find_map(|at| fraction(&all, at)).map(|(found, _)| found.text);
            assert_eq!(found.unwrap_or_default(), expect, "{text}");
        };
        check("how much is half of 340", "340 / 2");
        check("two thirds of 99", "99 * 2 / 3");
        check("15 percent off 60", "60 - 15%");
        check("add 12% tax to 250", "250 + 12%");
        check("what is 7 out of 35 as a percentage", "7 / 35 * 100");
        check("what percent of 35 is 7?", "7 / 35 * 100");
        check("the difference between 1000 and 387", "1000 - 387");
        check("remainder of 100 divided by 7", "100 mod 7");
        check("340 的一半是多少", "340 / 2");
        check("99 的三分之一", "99 * 1 / 3");
        check("6 的 3 倍", "6 * 3");
        check("7 占 35 的百分之几", "7 / 35 * 100");
        check("100 除以 7 的余数", "100 mod 7");
        check("12 和 14 的乘积", "12 * 14");
        check("half of 3 + 4", "");
        check("three apples and four pears", "");
    }
}
