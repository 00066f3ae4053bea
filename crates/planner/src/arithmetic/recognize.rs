//! Reads arithmetic in a request, in symbols or in English or Chinese words, as an expression for a calculator.

use crate::arithmetic::continuation;
use crate::arithmetic::conversion::{conversion, how_many};
use crate::arithmetic::expression::{Expression, starts};
use crate::arithmetic::fractions::fraction;
use crate::arithmetic::word_problem::word_problem;
use crate::lexer::number_words::{chinese_digit, read_chinese_number, read_operand};
use crate::lexer::token::{Token, TokenKind};
use crate::lexer::units;

/// The syntactic role of some tokens in an expression.
enum Piece {
    Operand(String),
    /// An infix operator.
    Infix(&'static str),
    /// A postfix operator: `%`, `!`, `^2`.
    Postfix(String),
    /// A function before its operand, which is put in brackets: `sqrt`.
    Function(&'static str),
    /// A function after its operand, which is put in brackets: 的平方根.
    Enclosing(&'static str),
    /// 80 的 15%: a percentage of the preceding operand.
    ShareOf(String),
    Open,
    Close,
}

const INFIX_WORDS: [(&[&str], &str); 31] = [
    (&["multiplied", "by"], "*"),
    (&["divided", "by"], "/"),
    (&["to", "the", "power", "of"], "^"),
    (&["raised", "to", "the", "power", "of"], "^"),
    (&["raised", "to"], "^"),
    (&["plus"], "+"),
    (&["minus"], "-"),
    (&["times"], "*"),
    (&["over"], "/"),
    (&["mod"], "mod"),
    (&["modulo"], "mod"),
    (&["加", "上"], "+"),
    (&["加"], "+"),
    (&["减", "去"], "-"),
    (&["减"], "-"),
    (&["乘", "以"], "*"),
    (&["乘"], "*"),
    (&["除", "以"], "/"),
    (&["+"], "+"),
    (&["-"], "-"),
    (&["−"], "-"),
    (&["–"], "-"),
    (&["*", "*"], "^"),
    (&["*"], "*"),
    (&["×"], "*"),
    (&["·"], "*"),
    (&["÷"], "/"),
    (&["/"], "/"),
    (&["^"], "^"),
    (&["x"], "*"),
    (&["of"], "of"),
];
const FUNCTIONS: [(&[&str], &str); 22] = [
    (&["square", "root", "of"], "sqrt"),
    (&["sqrt", "of"], "sqrt"),
    (&["sqrt"], "sqrt"),
    (&["cube", "root", "of"], "cbrt"),
    (&["√"], "sqrt"),
    (&["根", "号"], "sqrt"),
    (&["log", "of"], "log"),
    (&["natural", "log", "of"], "ln"),
    (&["sine", "of"], "sin"),
    (&["sin", "of"], "sin"),
    (&["cos", "of"], "cos"),
    (&["cosine", "of"], "cos"),
    (&["tan", "of"], "tan"),
    (&["sin"], "sin"),
    (&["cos"], "cos"),
    (&["tan"], "tan"),
    (&["log"], "log"),
    (&["ln"], "ln"),
    (&["exp"], "exp"),
    (&["abs"], "abs"),
    (&["factorial", "of"], "factorial"),
    (&["cbrt"], "cbrt"),
];
const ENCLOSING_WORDS: [(&[&str], &str); 6] = [
    (&["开", "平", "方"], "sqrt"),
    (&["开", "立", "方"], "cbrt"),
    (&["的", "平", "方", "根"], "sqrt"),
    (&["的", "立", "方", "根"], "cbrt"),
    (&["的", "阶", "乘"], "factorial"),
    (&["的", "算", "术", "平", "方", "根"], "sqrt"),
];
const AFTER: [(&[&str], &str); 7] = [
    (&["squared"], "^2"),
    (&["cubed"], "^3"),
    (&["的", "平", "方"], "^2"),
    (&["的", "立", "方"], "^3"),
    (&["%"], "%"),
    (&["percent"], "%"),
    (&["!"], "!"),
];

/// Whether a text has the form of a date, even if that date does not exist: 2026-02-30 is not a subtraction.
fn is_dated(written: &str) -> bool {
    let is = |part: &str, longest: usize| {
        (1..=longest).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    ['-', '/'].iter().any(|mark| match written.split(*mark).collect::<Vec<_>>()[..] {
        [year, month, day] => {
            (year.len() == 4 && is(year, 4) && is(month, 2) && is(day, 2))
                || (*mark == '/' && is(year, 2) && is(month, 2) && day.len() == 4 && is(day, 4))
        }
        _ => false,
    })
}

/// The expressions of a text, in order. `free` returns whether a token is not part of something else.
pub(crate) fn find(text: &str, tokens: &[Token<'_>], free: &dyn Fn(usize) -> bool) -> Vec<Expression> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // The first number of 3月1日有多少天 belongs to a date and is not an amount.
        match conversion(text, tokens, at)
            .filter(|_| free(at))
            .or_else(|| how_many(tokens, at))
            .or_else(|| fraction(tokens, at))
            .or_else(|| word_problem(tokens, at))
            .or_else(|| of_two(tokens, at))
            .or_else(|| continuation::begun(tokens, at).filter(|(_, after)| (at..*after).all(free)))
            .or_else(|| of_several(tokens, at, free))
            .or_else(|| ExpressionBuilder::read(tokens, at, free))
        {
            Some((begun, next)) => {
                let (expression, after) = continuation::chained(tokens, begun, next, free);
                if !is_dated(text.get(expression.start..expression.end).unwrap_or_default()) {
                    found.push(expression);
                }
                at = after;
            }
            None => at += 1,
        }
    }
    found
}

/// `multiply 37 by 19`, `divide 90 by 4`, `add 3 to 4`, `subtract 3 from 10`, `15% tip on 84.50`.
fn of_two(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    let number =
        |at: usize| read_operand(tokens, at).filter(|(_, length)| *length == 1).map(|(text, _)| text);
    let word = |at: usize| tokens.get(at).map(|token| token.text.to_lowercase()).unwrap_or_default();
    let made = |text: String, after: usize| {
        Some((Expression { text, start: tokens[at].start, end: tokens[after - 1].end, operators: 1 }, after))
    };
    if word(at + 1) == "%" && matches!(word(at + 2).as_str(), "tip" | "tax" | "discount" | "off" | "vat") {
        let on = at + 3;
        let skip = usize::from(matches!(word(on).as_str(), "on" | "of" | "for" | "off"));
        let base = number(on + skip).filter(|_| skip == 1)?;
        return made(format!("{}% of {base}", number(at)?), on + skip + 1);
    }
    let (first, second) = (number(at + 1)?, number(at + 3)?);
    match (word(at).as_str(), word(at + 2).as_str()) {
        ("multiply", "by" | "with" | "and") => made(format!("{first} * {second}"), at + 4),
        ("divide", "by") => made(format!("{first} / {second}"), at + 4),
        ("add", "to" | "and") => made(format!("{first} + {second}"), at + 4),
        ("subtract", "from") => made(format!("{second} - {first}"), at + 4),
        _ => None,
    }
}

/// Functions of several numbers, before or after them.
const SEVERAL: [(&[&str], &str); 24] = [
    (&["greatest", "common", "divisor", "of"], "gcd"),
    (&["gcd", "of"], "gcd"),
    (&["least", "common", "multiple", "of"], "lcm"),
    (&["lcm", "of"], "lcm"),
    (&["average", "of"], "average"),
    (&["mean", "of"], "average"),
    (&["sum", "of"], "sum"),
    (&["add", "up"], "sum"),
    (&["sum", "up"], "sum"),
    (&["total", "of"], "sum"),
    (&["加", "起", "来"], "sum"),
    (&["的", "总", "和"], "sum"),
    (&["相", "加"], "sum"),
    (&["maximum", "of"], "max"),
    (&["minimum", "of"], "min"),
    (&["largest", "of"], "max"),
    (&["smallest", "of"], "min"),
    (&["的", "最", "大", "公", "约", "数"], "gcd"),
    (&["的", "最", "小", "公", "倍", "数"], "lcm"),
    (&["的", "平", "均", "值"], "average"),
    (&["的", "平", "均", "数"], "average"),
    (&["的", "总", "和"], "sum"),
    (&["的", "最", "大", "值"], "max"),
    (&["的", "最", "小", "值"], "min"),
];

/// `average of 72, 85 and 91`, `84 和 126 的最大公约数`.
fn of_several(tokens: &[Token<'_>], at: usize, free: &dyn Fn(usize) -> bool) -> Option<(Expression, usize)> {
    let before = starts(tokens, at, &SEVERAL);
    let mut next = at + before.map_or(0, |(_, length)| length);
    let mut numbers = Vec::new();
    while let Some(token) = tokens.get(next).filter(|token| token.kind == TokenKind::Number && free(next)) {
        numbers.push(token.text.replace(',', ""));
        next += 1;
        let joint = |token: &&Token<'_>| token.is_any(&[",", "，", "、", "and", "和", "与", "跟"]);
        let mut after = next;
        while tokens.get(after).filter(joint).is_some() {
            after += 1;
        }
        if after == next || tokens.get(after).is_none_or(|token| token.kind != TokenKind::Number) {
            break;
        }
        next = after;
    }
    // 这三个数, between the numbers and the function.
    let filler = tokens
        .get(next..)
        .unwrap_or_default()
        .iter()
        .take_while(|token| token.is_any(&["这", "几", "个", "两", "三", "四", "数"]))
        .count();
    let (name, after) = match before {
        Some((name, _)) => (name, next),
        None => {
            starts(tokens, next + filler, &SEVERAL).map(|(name, length)| (name, next + filler + length))?
        }
    };
    if numbers.len() < 2 {
        return None;
    }
    let text = format!("{name}({})", numbers.join(", "));
    Some((Expression { text, start: tokens[at].start, end: tokens[after - 1].end, operators: 1 }, after))
}

fn piece(tokens: &[Token<'_>], at: usize, wants_operand: bool) -> Option<(Piece, usize)> {
    let token = tokens.get(at)?;
    if wants_operand {
        if let Some((name, length)) = starts(tokens, at, &FUNCTIONS) {
            let call = tokens
                .get(at + length)
                .is_some_and(|next| next.kind == TokenKind::Number || matches!(next.text, "(" | "（"));
            return (call || name == "sqrt").then_some((Piece::Function(name), length));
        }
        return match (token.kind, token.text) {
            (TokenKind::Number, _) => {
                read_operand(tokens, at).map(|(text, length)| (Piece::Operand(text), length))
            }
            (TokenKind::Mark, "(" | "（") => Some((Piece::Open, 1)),
            (TokenKind::Word, "x" | "y" | "z" | "t" | "pi" | "π" | "e") => {
                Some((Piece::Operand(token.text.to_owned()), 1))
            }
            (TokenKind::Han | TokenKind::Word, _) => {
                read_operand(tokens, at).map(|(text, length)| (Piece::Operand(text), length))
            }
            _ => None,
        };
    }
    if let Some(found) = power(tokens, at).or_else(|| nth_power(tokens, at)) {
        return Some(found);
    }
    if let Some((name, length)) = starts(tokens, at, &ENCLOSING_WORDS) {
        return Some((Piece::Enclosing(name), length));
    }
    if let Some((text, length)) = starts(tokens, at, &AFTER) {
        return Some((Piece::Postfix(text.to_owned()), length));
    }
    if matches!(token.text, ")" | "）") {
        return Some((Piece::Close, 1));
    }
    if token.is_word("x")
        && at > 0
        && tokens[at - 1].end == token.start
        && tokens.get(at + 1).is_none_or(|next| next.kind != TokenKind::Number)
    {
        return Some((Piece::Postfix("x".to_owned()), 1));
    }
    starts(tokens, at, &INFIX_WORDS).map(|(sign, length)| (Piece::Infix(sign), length))
}

/// `2 to the 16th`, `2 to the 16th power`.
fn nth_power(tokens: &[Token<'_>], at: usize) -> Option<(Piece, usize)> {
    let word = |at: usize, listed: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(listed));
    let number = tokens.get(at + 2).filter(|token| token.kind == TokenKind::Number)?;
    let fits = word(at, &["to"]) && word(at + 1, &["the"]) && word(at + 3, &["st", "nd", "rd", "th"]);
    let length = 4 + usize::from(word(at + 4, &["power"]));
    fits.then(|| (Piece::Postfix(format!("^{}", number.text)), length))
}

/// 的 10 次方, 的 15%, 的百分之十五.
fn power(tokens: &[Token<'_>], at: usize) -> Option<(Piece, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    if text(at) != "的" {
        return None;
    }
    let fraction = text(at + 1) == "百" && text(at + 2) == "分" && text(at + 3) == "之";
    let from = if fraction { at + 4 } else { at + 1 };
    let (number, next) = match tokens.get(from)?.kind {
        TokenKind::Number => (text(from).to_owned(), from + 1),
        TokenKind::Han => {
            let value: String = [text(from)].concat();
            let digit = chinese_digit(&value);
            match digit {
                Some(digit) if text(from + 1) == "次" => (digit.to_string(), from + 1),
                _ => {
                    let (value, after, _) = read_chinese_number(tokens, from)?;
                    (value.to_string(), after)
                }
            }
        }
        _ => return None,
    };
    if fraction {
        return Some((Piece::ShareOf(number), next - at));
    }
    match (text(next), text(next + 1)) {
        ("%", _) => Some((Piece::ShareOf(number), next + 1 - at)),
        ("次", "方" | "幂") => Some((Piece::Postfix(format!("^{number}")), next + 2 - at)),
        _ => None,
    }
}

/// The state of the expression parser.
#[derive(Default)]
struct ExpressionBuilder {
    out: Vec<String>,
    /// The index in `out` at which the last operand begins.
    operand: usize,
    /// The number of brackets to close after the next operand.
    pending: usize,
    depth: usize,
    operators: usize,
}

impl ExpressionBuilder {
    fn read(tokens: &[Token<'_>], at: usize, free: &dyn Fn(usize) -> bool) -> Option<(Expression, usize)> {
        let mut run = Self::default();
        let mut next = at;
        let mut wants_operand = true;
        // The longest prefix that is a complete expression.
        let mut longest = None;
        while free(next)
            && let Some((piece, length)) = piece(tokens, next, wants_operand).or_else(|| {
                let sign =
                    wants_operand && tokens.get(next).is_some_and(|token| matches!(token.text, "-" | "−"));
                sign.then(|| (Piece::Operand(String::new()), 1))
            })
        {
            next += length;
            wants_operand = run.take(piece, wants_operand)?;
            if !wants_operand && run.depth == 0 && run.operators > 0 {
                longest = Some((run.text(), next, run.operators));
            }
        }
        let (mut text, mut after, operators) = longest?;
        // `15% of 80 plus 3 kg`: the unit belongs to the last number. It is passed on, so that the calculator can reject it.
        let (unit, length) = units::at(tokens, after);
        if let Some(unit) = unit.filter(|unit| unit.is_measure() && (after..after + length).all(free)) {
            text = format!("{text} {}", unit.name());
            after += length;
        }
        let expression = Expression { text, start: tokens[at].start, end: tokens[after - 1].end, operators };
        Some((expression, after))
    }

    fn text(&self) -> String {
        self.out.concat().trim().to_owned()
    }

    /// Appends a piece. Returns whether an operand must follow.
    fn take(&mut self, piece: Piece, wants_operand: bool) -> Option<bool> {
        match piece {
            Piece::Operand(sign) if sign.is_empty() => {
                self.out.push("-".to_owned());
                return Some(true);
            }
            Piece::Operand(text) => {
                self.operand = self.out.len();
                self.out.push(text);
                for _ in 0..std::mem::take(&mut self.pending) {
                    self.out.push(")".to_owned());
                }
            }
            Piece::Infix(sign) => {
                self.operators += 1;
                self.out.push(if sign == "^" { sign.to_owned() } else { format!(" {sign} ") });
                return Some(true);
            }
            Piece::Postfix(text) => {
                self.operators += usize::from(text != "x" && text != "%");
                self.out.push(text);
            }
            Piece::Function(name) => {
                self.operators += 1;
                self.operand = self.out.len();
                self.out.push(format!("{name}("));
                self.pending += 1;
                return Some(true);
            }
            Piece::Enclosing(name) => {
                self.operators += 1;
                self.out.insert(self.operand, format!("{name}("));
                self.out.push(")".to_owned());
            }
            Piece::ShareOf(fraction) => {
                self.operators += 1;
                self.out.insert(self.operand, format!("{fraction}% of "));
            }
            Piece::Open => {
                // `sqrt(2)`: the bracket of the function is already open.
                if self.pending > 0 {
                    self.pending -= 1;
                } else {
                    self.out.push("(".to_owned());
                }
                self.depth += 1;
                return Some(true);
            }
            Piece::Close => {
                self.depth = self.depth.checked_sub(1)?;
                self.out.push(")".to_owned());
            }
        }
        Some(wants_operand && self.out.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn finds_arithmetic_expressions() {
        let check = |text: &str, expect: &[&str]| {
            let tokens = tokenize(text);
            let found: Vec<_> = find(text, &tokens, &|_| true).into_iter().map(|found| found.text).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("23*47 等于多少？", &["23 * 47"]);
        check("2026-02-30 是星期几", &[]);
        check("what weekday is 13/25/2026", &[]);
        check("2026 - 2 - 30", &["2026 - 2 - 30"]);
        check("what is 15% of 80", &["15% of 80"]);
        check("80的15%是多少", &["15% of 80"]);
        check("2 的 10 次方", &["2^10"]);
        check("2的三次方", &["2^3"]);
        check("sqrt of 2", &["sqrt(2)"]);
        check("the square root of 144 plus 3", &["sqrt(144) + 3"]);
        check("144的平方根", &["sqrt(144)"]);
        check("sqrt(2) * (3 + 4)", &["sqrt(2) * (3 + 4)"]);
        check("（3+4）×2", &["(3 + 4) * 2"]);
        check("12 divided by 4", &["12 / 4"]);
        check("三十二加五", &["32 + 5"]);
        check("5 的阶乘", &["factorial(5)"]);
        check("5 km to miles", &["5 km to miles"]);
        check("5 公里是多少英里", &["5 kilometers to miles"]);
        check("15% of 80 plus 3 kg", &["15% of 80 + 3 kilogram"]);
        check("72 °F to °C", &["72 °F to °C"]);
        check("3x^2 + 2x - 1", &["3x^2 + 2x - 1"]);
        check("1,234 + 1", &["1234 + 1"]);
        check("求 84 和 126 的最大公约数", &["gcd(84, 126)"]);
        check("average of 72, 85 and 91", &["average(72, 85, 91)"]);
        check("3、5、7 这三个数的平均值", &["average(3, 5, 7)"]);
        check("call me at 5", &[]);
        check("I have 3 apples and 4 pears", &[]);
        check("(a) 5", &[]);
        check("-3 + 5", &["-3 + 5"]);
        check("12 divided by 5, then multiply that by 10", &["12 / 5 * 10"]);
        check("三加五再乘以二", &["(3 + 5) * 2"]);
        check("先算 12 除以 5，再把结果乘以 10，然后减去 3", &["12 / 5 * 10 - 3"]);
        check("12 * 3 and add 3 rows", &["12 * 3"]);
        check("take 250, subtract 40, then divide by 3", &["(250 - 40) / 3"]);
        check("从 100 里减去 37", &["100 - 37"]);
        check("5 天 3 小时是多少分钟", &["5 day + 3 hour to minute"]);
        check("2 hours 15 minutes in seconds", &["2 hours + 15 minutes to seconds"]);
    }
}
