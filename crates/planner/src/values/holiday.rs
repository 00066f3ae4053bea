//! Finds days with a name: `Christmas`, `next Easter`, 明年春节. Their dates are computed by the clock tool, whose table is used
//! here.

use std::collections::HashSet;
use std::sync::LazyLock;

use toolhub_core::name_tables::HOLIDAYS;

use crate::lexer::token::{Token, TokenKind};

/// Maximum length of a name, in words or in characters.
const MAX_HOLIDAY_LENGTH: usize = 6;
/// Names that are also numbers; the context decides.
const NUMERALS: [&str; 2] = ["五一", "六一"];

static NAMES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let rows = HOLIDAYS.lines().filter(|line| !line.starts_with('#'));
    let names = rows.flat_map(|row| row.split('\t').skip(1)).flat_map(|names| names.split('|'));
    names.filter(|name| !name.is_empty()).collect()
});

/// The index of the token after a holiday that begins at `at`, including its year.
pub(crate) fn read(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    match tokens.get(at)?.kind {
        TokenKind::Word => english(tokens, at),
        TokenKind::Han | TokenKind::Number => chinese(tokens, at),
        TokenKind::Mark => None,
    }
}

fn english(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let which = tokens[at].is_any(&["next", "last", "this"]);
    let first = at + usize::from(which);
    let after = (1..=MAX_HOLIDAY_LENGTH).rev().find_map(|length| {
        let words = tokens.get(first..first + length)?;
        let name: Vec<String> = words
            .iter()
            .map(|word| word.text.to_lowercase().replace(['\'', '’'], "").replace('-', " "))
            .collect();
        NAMES.contains(name.join(" ").as_str()).then_some(first + length)
    })?;
    // `Christmas Island`, `Easter Bunny`: part of a longer name.
    let continues = tokens.get(after).is_some_and(|next| next.is_capital() && tokens[first].is_capital());
    let year = tokens.get(after).is_some_and(|next| next.kind == TokenKind::Number && next.text.len() == 4);
    (!continues).then_some(after + usize::from(year))
}

fn chinese(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let year = match (text(at), text(at + 1)) {
        ("今" | "明" | "去", "年") => 2,
        (digits, "年") if digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) => 2,
        _ if tokens[at].kind == TokenKind::Number => return None,
        _ => 0,
    };
    let first = at + year + usize::from(year > 0 && text(at + year) == "的");
    let (length, name) = (2..=MAX_HOLIDAY_LENGTH).rev().find_map(|length| {
        let name: String = tokens.get(first..first + length)?.iter().map(|token| token.text).collect();
        NAMES.contains(name.as_str()).then_some((length, name))
    })?;
    let before = at.checked_sub(1).map_or("", text);
    let beside = matches!(before, "离" | "距" | "到" | "至" | "今" | "年")
        || matches!(text(first + length), "还" | "是" | "放" | "假" | "距");
    (!NUMERALS.contains(&name.as_str()) || beside).then_some(first + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn finds_holidays() {
        let check = |text: &str, expect: &str| {
            let all = tokenize(text);
            let found =
                (0..all.len()).find_map(|at| Some(&text[all[at].start..all[read(&all, at)? - 1].end]));
            assert_eq!(found.unwrap_or_default(), expect, "{text}");
        };
        check("how many days until christmas", "christmas");
        check("when is next Easter?", "next Easter");
        check("days to Christmas 2030", "Christmas 2030");
        check("days until New Year's Eve", "New Year's Eve");
        check("time on Christmas Island", "");
        check("离春节还有几天", "春节");
        check("明年国庆节是星期几", "明年国庆节");
        check("2030年中秋", "2030年中秋");
        check("离五一还有几天", "五一");
        check("五一加三", "");
    }
}
