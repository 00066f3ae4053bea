//! The name of a sheet at a position of a text.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::stop_words;
use crate::lexer::token::{Token, TokenKind, is_han};

/// The text inside the quotes that start or end at the given offset.
pub(crate) fn quoted_at(
    parsed: &ParsedText<'_>,
    start: Option<usize>,
    end: Option<usize>,
) -> Option<(usize, usize)> {
    parsed.mentions.iter().find_map(|mention| match &mention.value {
        // `[North Region]`: brackets around a single name count as quotes.
        MentionValue::Literal(literal)
            if (matches!(literal, Literal::Quoted(_)) || is_bracketed(literal))
                && (Some(mention.end) == end || Some(mention.start) == start) =>
        {
            let inner = parsed.written(mention);
            let open = inner.chars().next().map_or(0, char::len_utf8);
            let close = inner.chars().next_back().map_or(0, char::len_utf8);
            Some((mention.start + open, mention.end - close))
        }
        _ => None,
    })
}

fn is_bracketed(literal: &Literal) -> bool {
    matches!(literal, Literal::Json(serde_json::Value::Array(items)) if items.len() == 1 && items[0].is_string())
}

/// The name that starts at a token. If `announced`, any word is accepted.
pub(crate) fn name_at(parsed: &ParsedText<'_>, at: usize, announced: bool) -> Option<(usize, usize)> {
    let token = parsed.tokens.get(at)?;
    if let Some(quoted) = quoted_at(parsed, Some(token.start), None) {
        return Some(quoted);
    }
    let taken =
        parsed.mentions.iter().find(|mention| mention.start <= token.start && token.start < mention.end);
    if let Some(mention) = taken
        && let MentionValue::Literal(literal) = &mention.value
    {
        let code = matches!(literal, Literal::Code(_))
            || matches!(literal, Literal::Cells(cells) if is_quarter(cells))
            || follows_marker(parsed, mention)
            || (announced && matches!(literal, Literal::Cells(cells) if !cells.contains(':')));
        return (code && mention.start == token.start).then_some((mention.start, mention.end));
    }
    match token.kind {
        TokenKind::Word | TokenKind::Number => {
            let letter = token.text.len() == 1 && token.is_capital() && token.text != "I";
            let fits = letter
                || is_name(token)
                || (announced && token.kind == TokenKind::Word && !stop_words::is_stop(token.text));
            if !fits {
                return None;
            }
            // `2026预算`: characters that follow without a space extend the name.
            let mut end = token.end;
            for next in &parsed.tokens[at + 1..] {
                let adjacent = next.start == end
                    && matches!(next.kind, TokenKind::Han | TokenKind::Word | TokenKind::Number);
                let ends = matches!(next.text, "的" | "里" | "中" | "表" | "和" | "从" | "上" | "在" | "把");
                if !adjacent || ends {
                    break;
                }
                end = next.end;
            }
            // `called Week 12`: a short number after an announced name belongs to it.
            let next = parsed.tokens.get(parsed.token_at(end));
            let number = next.filter(|next| {
                announced
                    && token.is_capital()
                    && next.kind == TokenKind::Number
                    && next.text.len() <= 4
                    && parsed.text.get(end..next.start) == Some(" ")
            });
            Some((token.start, number.map_or(end, |number| number.end)))
        }
        TokenKind::Han => {
            let rest = &parsed.text[token.start..];
            if POINTING.iter().any(|word| rest.starts_with(word)) && !announced && !is_period(rest) {
                return None;
            }
            let stop = |c: char| !(c.is_alphanumeric() || c == '_' || c == '-');
            let mut length = rest.find(stop).unwrap_or(rest.len());
            let alone = crate::lexer::name::stands_alone(parsed.text, token.start, length);
            for ending in
                ["的", "里", "中", "表", "吧", "这", "然后", "并", "和", "与", "上", "吗", "从", "把"]
            {
                let inner = alone && ["里", "中", "并", "和", "与", "上", "从", "把", "这"].contains(&ending);
                if let Some(at) = rest[..length].find(ending).filter(|at| *at > 0 && !inner) {
                    let single = ending == "表" && rest[..at].chars().count() == 1;
                    length = if single { at + ending.len() } else { at };
                }
            }
            // Without a naming word, a name has at most 18 bytes (six Chinese characters) and does not start with a verb.
            let verb = crate::lexer::lexicon::word_matches(
                &rest[..length],
                &crate::lexer::token::tokenize(&rest[..length]),
                &|_| false,
            )
            .iter()
            .any(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty());
            (announced || (!verb && length <= 18)).then_some((token.start, token.start + length))
        }
        TokenKind::Mark => None,
    }
}

/// The run of characters before 表 that names it, back to a space, a mark or a function word.
pub(crate) fn run_before(before: &str) -> Option<(usize, usize)> {
    let mut start = before.len();
    for (at, c) in before.char_indices().rev() {
        let ends = c.is_whitespace()
            || !(c.is_alphanumeric() || c == '_' || c == '-')
            || matches!(c, '的' | '在' | '把' | '将' | '中' | '里');
        if ends {
            break;
        }
        start = at;
    }
    let run = &before[start..];
    let verb = [
        "新建",
        "创建",
        "添加",
        "新增",
        "读取",
        "删除",
        "打开",
        "这张",
        "一张",
        "一个",
        "哪些",
        "同一张",
        "多少",
        "那张",
        "该",
        "个",
        "张",
        "到",
        "这",
        "那",
        "合并",
        "加",
        "新",
        "整",
        "哪",
        "什么",
        "所有",
        "全部",
        "几",
    ]
    .iter()
    .any(|word| run.ends_with(word));
    // 看看明细表, 读取订单表: a leading verb is not part of the name.
    let word_matches =
        crate::lexer::lexicon::word_matches(run, &crate::lexer::token::tokenize(run), &|_| false);
    let lead = word_matches
        .iter()
        .find(|word_match| {
            word_match.start == 0 && !word_match.meaning.verbs.is_empty() && word_match.end > 3
        })
        .map_or(0, |word_match| word_match.end);
    let lead = if lead < run.len() { lead } else { 0 };
    // 总表: a single character and 表 form one word.
    let single = run[lead..].chars().count() == 1 && run[lead..].starts_with(is_han);
    let end = if single { before.len() + "表".len() } else { before.len() };
    (!run.is_empty() && !verb).then_some((start + lead, end))
}

/// Words that refer to a sheet without naming it.
const POINTING: [&str; 17] =
    ["第", "这", "那", "该", "此", "新", "一", "两", "三", "几", "哪", "同", "每", "某", "有", "什", "所"];

/// Whether a word could name a sheet: it is capitalised or contains digits.
pub(crate) fn is_name(token: &Token<'_>) -> bool {
    let cell = crate::lexer::literal::cells(token.text).is_some() && token.text.len() > 2;
    (token.kind == TokenKind::Number
        || (token.is_capital() && (!stop_words::is_stop(token.text) || token.text == "May"))
        || (token.kind == TokenKind::Word && token.text.contains(|c: char| c.is_ascii_digit())))
        && !cell
}

/// Whether a text starts with a month or a quarter, common names of sheets: 一月, 三季度.
pub(crate) fn is_period(text: &str) -> bool {
    let after = text.trim_start_matches(['一', '二', '三', '四', '五', '六', '七', '八', '九', '十']);
    after.len() < text.len() && ["月", "季度"].iter().any(|period| after.starts_with(period))
}

/// `Q1` to `Q4`, `H1`, `H2`: parts of a year are read as sheet names rather than cells.
fn is_quarter(cells: &str) -> bool {
    ["Q1", "Q2", "Q3", "Q4", "H1", "H2"].contains(&cells)
}

/// `sheet FY25: delete C5:C9`: a cell reference directly after `sheet` is the name of the sheet if the request contains other
/// cells.
pub(crate) fn follows_marker(parsed: &ParsedText<'_>, mention: &Mention) -> bool {
    let is_cell = |mention: &Mention| matches!(&mention.value, MentionValue::Literal(Literal::Cells(cells)) if !cells.contains(':'));
    let before = parsed.text.get(..mention.start).unwrap_or_default().trim_end().to_lowercase();
    let others = parsed
        .mentions
        .iter()
        .filter(|other| matches!(other.value, MentionValue::Literal(Literal::Cells(_))));
    is_cell(mention)
        && others.count() > 1
        && before.rsplit(' ').next().is_some_and(|word| ["sheet", "worksheet", "tab"].contains(&word))
}
