//! Operations on a number calculated before: `then multiply that by 10`, 再乘以 4, `and plus 3`.

use crate::arithmetic::expression::{Expression, starts};
use crate::lexer::number_words::read_operand;
use crate::lexer::token::{Token, TokenKind};

/// An operation on the previous result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Continuation {
    /// `… * 3`.
    Binary(&'static str, String),
    /// `sqrt(…)`.
    Call(&'static str),
    /// `15% of …`.
    ShareOf(String),
}

/// Words between a calculation and an operation on its result.
const CONNECTIVES: [(&[&str], ()); 33] = [
    (&[","], ()),
    (&["，"], ()),
    (&["、"], ()),
    (&[";"], ()),
    (&["；"], ()),
    (&["."], ()),
    (&["。"], ()),
    (&["and"], ()),
    (&["then"], ()),
    (&["now"], ()),
    (&["next"], ()),
    (&["also"], ()),
    (&["finally"], ()),
    (&["afterwards"], ()),
    (&["after", "that"], ()),
    (&["please"], ()),
    (&["再"], ()),
    (&["然", "后"], ()),
    (&["接", "着"], ()),
    (&["之", "后"], ()),
    (&["最", "后"], ()),
    (&["随", "后"], ()),
    (&["并"], ()),
    (&["并", "且"], ()),
    (&["那"], ()),
    (&["那", "么"], ()),
    (&["现", "在"], ()),
    (&["把"], ()),
    (&["将"], ()),
    (&["用"], ()),
    (&["请"], ()),
    (&["ok"], ()),
    (&["so"], ()),
];
/// Words for the previous result.
const RESULT_WORDS: [(&[&str], ()); 17] = [
    (&["it"], ()),
    (&["that"], ()),
    (&["this"], ()),
    (&["the", "result"], ()),
    (&["the", "answer"], ()),
    (&["the", "sum"], ()),
    (&["the", "total"], ()),
    (&["the", "product"], ()),
    (&["that", "number"], ()),
    (&["that", "result"], ()),
    (&["结", "果"], ()),
    (&["它"], ()),
    (&["得", "数"], ()),
    (&["答", "案"], ()),
    (&["这", "个", "数"], ()),
    (&["这", "个", "结", "果"], ()),
    (&["所", "得", "结", "果"], ()),
];
/// Operators between the previous result and a number.
const INFIX_WORDS: [(&[&str], &str); 25] = [
    (&["times"], "*"),
    (&["multiplied", "by"], "*"),
    (&["divided", "by"], "/"),
    (&["plus"], "+"),
    (&["minus"], "-"),
    (&["over"], "/"),
    (&["modulo"], "mod"),
    (&["mod"], "mod"),
    (&["to", "the", "power", "of"], "^"),
    (&["raised", "to"], "^"),
    (&["乘", "以"], "*"),
    (&["乘", "上"], "*"),
    (&["乘"], "*"),
    (&["除", "以"], "/"),
    (&["加", "上"], "+"),
    (&["加"], "+"),
    (&["减", "去"], "-"),
    (&["减", "掉"], "-"),
    (&["减"], "-"),
    (&["*"], "*"),
    (&["×"], "*"),
    (&["/"], "/"),
    (&["÷"], "/"),
    (&["+"], "+"),
    (&["^"], "^"),
];
/// A verb's operator, and the words before its number.
type Verb = (&'static str, &'static [&'static str]);

/// Verbs with the previous result and, after one of these words, a number: `divide that by 4`.
const VERBS: [(&[&str], Verb); 9] = [
    (&["multiply"], ("*", &["by", "with"])),
    (&["divide"], ("/", &["by"])),
    (&["increase"], ("+", &["by"])),
    (&["decrease"], ("-", &["by"])),
    (&["reduce"], ("-", &["by"])),
    (&["raise"], ("^", &["to"])),
    (&["subtract"], ("-", &["from"])),
    (&["take", "away"], ("-", &["from"])),
    (&["add"], ("+", &["to"])),
];
/// Operations without a second operand in the text.
const UNARY_PHRASES: [(&[&str], (&str, &str)); 16] = [
    (&["squared"], ("^", "2")),
    (&["cubed"], ("^", "3")),
    (&["square"], ("^", "2")),
    (&["cube"], ("^", "3")),
    (&["double"], ("*", "2")),
    (&["triple"], ("*", "3")),
    (&["halve"], ("/", "2")),
    (&["doubled"], ("*", "2")),
    (&["halved"], ("/", "2")),
    (&["的", "平", "方"], ("^", "2")),
    (&["平", "方"], ("^", "2")),
    (&["的", "立", "方"], ("^", "3")),
    (&["立", "方"], ("^", "3")),
    (&["翻", "倍"], ("*", "2")),
    (&["翻", "一", "番"], ("*", "2")),
    (&["减", "半"], ("/", "2")),
];
/// Functions applied to the previous result.
const FUNCTION_WORDS: [(&[&str], &str); 9] = [
    (&["take", "the", "square", "root"], "sqrt"),
    (&["square", "root"], "sqrt"),
    (&["the", "square", "root"], "sqrt"),
    (&["sqrt"], "sqrt"),
    (&["开", "平", "方"], "sqrt"),
    (&["开", "方"], "sqrt"),
    (&["开", "根", "号"], "sqrt"),
    (&["的", "平", "方", "根"], "sqrt"),
    (&["取", "整"], "round"),
];

impl Continuation {
    /// Applies the operation to an expression.
    pub(crate) fn apply(&self, before: &str) -> String {
        let inner = if self.binds_looser(before) { before.to_owned() } else { format!("({before})") };
        match self {
            Self::Binary("^", number) => format!("{inner}^{number}"),
            Self::Binary(sign, number) => format!("{inner} {sign} {number}"),
            Self::Call(name) => format!("{name}({before})"),
            Self::ShareOf(share) => format!("{share}% of {inner}"),
        }
    }

    /// Whether an expression needs no brackets before the operation is applied.
    fn binds_looser(&self, before: &str) -> bool {
        let mut depth = 0i32;
        let outside: String = before
            .chars()
            .filter(|c| {
                depth += i32::from(*c == '(');
                let outer = depth == 0;
                depth -= i32::from(*c == ')');
                outer
            })
            .collect();
        let only = |signs: &str| {
            outside.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ' ' || signs.contains(c))
        };
        let alone = !outside.contains(' ') && outside.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        match self {
            Self::Binary("+" | "-", number) if !number.ends_with('%') => alone || only("+-*/^"),
            Self::Binary("*" | "/", _) => alone || only("*/^"),
            _ => alone,
        }
    }
}

/// The number of tokens that join an operation to the previous result.
pub(crate) fn joints(tokens: &[Token<'_>], at: usize) -> usize {
    let mut next = at;
    while let Some(((), length)) = starts(tokens, next, &CONNECTIVES) {
        next += length;
    }
    next - at
}

/// The operation that begins at token `at`, and the index of the token after it.
pub(crate) fn read(tokens: &[Token<'_>], at: usize) -> Option<(Continuation, usize)> {
    let that = |at: usize| starts(tokens, at, &RESULT_WORDS).map_or(0, |(_, length)| length);
    let is = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|token| token.is_any(words));
    let found = by_verb(tokens, at).or_else(|| {
        // `15% of that`.
        let (share, length) = read_operand(tokens, at)?;
        let of = at + length + 1;
        let fits = is(at + length, &["%", "percent"]) && is(of, &["of"]) && that(of + 1) > 0;
        fits.then(|| (Continuation::ShareOf(share), of + 1 + that(of + 1)))
    });
    let found = found.or_else(|| {
        let next = at + that(at);
        let next = next + usize::from(that(at) > 0 && is(next, &["再"]));
        if let Some((name, length)) = starts(tokens, next, &FUNCTION_WORDS) {
            let of = usize::from(is(next + length, &["of"]));
            let after = next + length + of;
            return Some((Continuation::Call(name), after + that(after)));
        }
        if let Some(((sign, number), length)) = starts(tokens, next, &UNARY_PHRASES) {
            return Some((
                Continuation::Binary(sign, number.to_owned()),
                next + length + that(next + length),
            ));
        }
        // 结果的 15%.
        if is(next, &["的"]) && is(next + 2, &["%"]) && that(at) > 0 {
            return Some((Continuation::ShareOf(read_operand(tokens, next + 1)?.0), next + 3));
        }
        // `- 5` with a blank is a subtraction; `-5` may be a number.
        let apart = tokens.get(next).zip(tokens.get(next + 1));
        let minus = apart.is_some_and(|(sign, number)| {
            matches!(sign.text, "-" | "−" | "–") && (number.start > sign.end || that(at) > 0)
        });
        let (sign, length) = if minus { ("-", 1) } else { starts(tokens, next, &INFIX_WORDS)? };
        let (number, after) = amount(tokens, next + length)?;
        Some((Continuation::Binary(sign, number), after))
    });
    found.filter(|(_, after)| ends(tokens, *after))
}

/// `multiply that by 10`, `add 5 to it`, `divide by 4`, `subtract 3`.
fn by_verb(tokens: &[Token<'_>], at: usize) -> Option<(Continuation, usize)> {
    let that = |at: usize| starts(tokens, at, &RESULT_WORDS).map_or(0, |(_, length)| length);
    let ((sign, joint), length) = starts(tokens, at, &VERBS)?;
    let next = at + length;
    let is_joint = |at: usize| tokens.get(at).is_some_and(|token| token.is_any(joint));
    if joint.contains(&"by") || sign == "^" {
        let by = next + that(next);
        let power = starts(tokens, by, &[(&["to", "the", "power", "of"], ())]).map(|(_, length)| length);
        let skip = power.or_else(|| is_joint(by).then_some(1))?;
        let (number, after) = amount(tokens, by + skip)?;
        return Some((Continuation::Binary(sign, number), after));
    }
    let (number, after) = amount(tokens, next)?;
    // `add 5 to B2` is not an operation on the previous result; `add 5 to it` is.
    let to = if is_joint(after) { Some(that(after + 1)).filter(|length| *length > 0)? + 1 } else { 0 };
    Some((Continuation::Binary(sign, number), after + to))
}

/// A number or a percentage: `15%`.
fn amount(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let (number, length) = read_operand(tokens, at)?;
    let after = at + length;
    let share = tokens.get(after).is_some_and(|token| token.is_any(&["%", "percent"]));
    Some(if share { (format!("{number}%"), after + 1) } else { (number, after) })
}

/// Whether the number is not followed by a noun or unit: `add 3 rows`, `plus 5 km`.
fn ends(tokens: &[Token<'_>], after: usize) -> bool {
    tokens.get(after).is_none_or(|next| match next.kind {
        TokenKind::Mark => !matches!(next.text, "(" | "[" | "'" | "\"" | "“"),
        TokenKind::Word => next.is_any(&[
            "and",
            "then",
            "please",
            "what",
            "what's",
            "how",
            "is",
            "equals",
            "now",
            "finally",
            "write",
            "put",
            "save",
            "tell",
            "show",
            "give",
            "times",
            "plus",
            "minus",
            "divided",
            "multiplied",
            "afterwards",
            "after",
        ]),
        TokenKind::Han => "再然接最并等是得多写存放吧呢吗后结和告填加减乘除随之".contains(next.text),
        TokenKind::Number => false,
    })
}

/// `take 250, subtract 40`, 从 100 里减去 3: the first operand of a chain of operations.
pub(crate) fn begun(tokens: &[Token<'_>], at: usize) -> Option<(Expression, usize)> {
    const LEADS: [(&[&str], ()); 7] = [
        (&["take"], ()),
        (&["start", "with"], ()),
        (&["start", "from"], ()),
        (&["begin", "with"], ()),
        (&["从"], ()),
        (&["拿"], ()),
        (&["用"], ()),
    ];
    let ((), lead) = starts(tokens, at, &LEADS)?;
    let (text, length) = read_operand(tokens, at + lead)?;
    let after = at + lead + length;
    let start = tokens[at + lead].start;
    let (after, skipped) = match tokens.get(after) {
        Some(token) if matches!(token.text, "里" | "中") => (after + 1, true),
        _ => (after, false),
    };
    let joined = if skipped { 0 } else { joints(tokens, after) };
    let (continued, next) = read(tokens, after + joined).filter(|_| skipped || joined > 0)?;
    let text = continued.apply(&text);
    Some((Expression { text, start, end: tokens[next - 1].end, operators: 1 }, next))
}

/// An expression with all operations in the words after it applied.
pub(crate) fn chained(
    tokens: &[Token<'_>],
    mut found: Expression,
    mut after: usize,
    free: &dyn Fn(usize) -> bool,
) -> (Expression, usize) {
    loop {
        let lead = joints(tokens, after);
        let Some((continued, next)) = read(tokens, after + lead).filter(|_| lead > 0) else { break };
        if !(after..next).all(free) {
            break;
        }
        found.text = continued.apply(&found.text);
        found.operators += 1;
        found.end = tokens[next - 1].end;
        after = next;
    }
    (found, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn parses_follow_up_arithmetic() {
        let check = |text: &str, expect: &str| {
            let all = tokenize(text);
            let found = read(&all, joints(&all, 0)).filter(|(_, after)| *after == all.len());
            assert_eq!(found.map(|(found, _)| found.apply("7")).unwrap_or_default(), expect, "{text}");
        };
        check("and times 3", "7 * 3");
        check("then multiply that by 10", "7 * 10");
        check("divide by four", "7 / 4");
        check("add 5 to it", "7 + 5");
        check("subtract 3", "7 - 3");
        check("plus 15%", "7 + 15%");
        check("15% of that", "15% of 7");
        check("square it", "7^2");
        check("the square root of that", "sqrt(7)");
        check("再乘以 4", "7 * 4");
        check("把结果除以三", "7 / 3");
        check("，然后加上 20", "7 + 20");
        check("结果的 15%", "15% of 7");
        check("再开平方", "sqrt(7)");
        check("* 2", "7 * 2");
        check("add 3 rows", "");
        check("add 5 to B2", "");
        check("times square", "");
        check("减肥", "");
    }

    #[test]
    fn adds_parentheses_by_operator_precedence() {
        assert_eq!(Continuation::Binary("*", "2".to_owned()).apply("3 + 4"), "(3 + 4) * 2");
        assert_eq!(Continuation::Binary("*", "2".to_owned()).apply("sqrt(3 + 4)"), "sqrt(3 + 4) * 2");
        assert_eq!(Continuation::Binary("-", "2".to_owned()).apply("12 / 5 * 10"), "12 / 5 * 10 - 2");
        assert_eq!(Continuation::Binary("*", "2".to_owned()).apply("15% of 80"), "(15% of 80) * 2");
        assert_eq!(Continuation::Call("sqrt").apply("3 + 4"), "sqrt(3 + 4)");
        assert_eq!(Continuation::Binary("^", "2".to_owned()).apply("2.5"), "2.5^2");
    }
}
