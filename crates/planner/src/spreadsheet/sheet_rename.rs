//! Sheets that are renamed or copied: `rename 一月 to Jan`, 把 草稿 改名为 正式, `copy Sheet1 of a.xlsx to Backup`.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::spreadsheet::sheet_name::{name_at, quoted_at, run_before};

/// Verbs of renaming and copying before the name of a sheet.
const GIVING: [&str; 7] = ["rename", "renaming", "copy", "duplicate", "clone", "relabel", "retitle"];
const GIVING_HAN: [&str; 8] = ["改名", "重命名", "更名", "改个名", "改叫", "复制", "拷贝", "克隆"];

/// `rename 一月 to Jan`, 把 一月 改名为 Jan: the old name, if a new one is given.
pub(crate) fn old_names(parsed: &ParsedText<'_>) -> Vec<(usize, usize)> {
    let text = parsed.text;
    let (mut found, mut new_names) = (Vec::new(), Vec::new());
    for (at, token) in parsed.tokens.iter().enumerate() {
        if !token.is_any(&GIVING) {
            continue;
        }
        let small = ["the", "sheet", "worksheet", "tab", "named", "called", "my", "old", "sheets"];
        let next = at + 1 + parsed.tokens[at + 1..].iter().take_while(|token| token.is_any(&small)).count();
        found.extend(name_at(parsed, next, true));
        // `copy it to Backup`: `it` refers to an earlier part of the request.
        let that = parsed.tokens.get(next).filter(|token| token.is_any(&["it", "this", "that"]));
        new_names.extend(that.and_then(|that| new_name(parsed, that.end)));
    }
    for verb in GIVING_HAN {
        for (at, _) in text.match_indices(verb) {
            let before = text[..at].trim_end();
            let before = ["工作表", "这张表", "这个表", "表"]
                .iter()
                .find_map(|marker| before.strip_suffix(marker))
                .unwrap_or(before)
                .trim_end();
            let quoted = quoted_at(parsed, None, Some(before.len()));
            found.extend(quoted.or_else(|| run_before(before)));
        }
    }
    let is_thing = |span: (usize, usize)| {
        let word = text.get(span.0..span.1).unwrap_or_default();
        let word_matches =
            crate::lexer::lexicon::word_matches(word, &crate::lexer::token::tokenize(word), &|_| false);
        word_matches.iter().any(|word_match| !word_match.meaning.things.is_empty())
    };
    let is_used = |span: (usize, usize)| {
        parsed.mentions.iter().any(|mention| {
            let other = matches!(
                &mention.value,
                MentionValue::Literal(Literal::Path(_) | Literal::Formula(_) | Literal::Url(_))
            ) || matches!(&mention.value, MentionValue::Literal(Literal::Cells(cells)) if cells.contains(':'));
            other && mention.start < span.1 && span.0 < mention.end
        })
    };
    found.retain(|span| !is_thing(*span) && !is_used(*span) && new_name(parsed, span.1).is_some());
    found.extend(new_names);
    found
}

/// `Old to New`, 草稿 改为 正式: the new name after the old one.
pub(crate) fn new_name(parsed: &ParsedText<'_>, end: usize) -> Option<(usize, usize)> {
    let mut at = parsed.token_at(end);
    let skip = |at: usize, words: &[&str]| parsed.tokens.get(at).is_some_and(|token| token.is_any(words));
    while skip(
        at,
        &[
            "”", "\"", "'", "」", "』", "表", "sheet", "工", "作", "tab", "这", "张", "’", "改", "名", "重",
            "命", "更", "复", "制", "拷", "贝", "一", "份",
        ],
    ) {
        at += 1;
    }
    // `Sheet1 of a.xlsx to Backup`.
    if skip(at, &["of", "in", "from"])
        && let Some(next) = parsed.tokens.get(at + 1)
        && let Some(file) = parsed.mentions.iter().find(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Path(_))) && mention.start == next.start
        })
    {
        at = parsed.token_at(file.end);
    }
    if !skip(at, &["to", "into", "as", "为", "成", "到", "→", "叫"]) {
        return None;
    }
    // A verb of renaming or copying implies a new name, in any spelling.
    let gives = parsed.tokens.iter().any(|token| token.is_any(&GIVING))
        || GIVING_HAN.iter().any(|verb| parsed.text.contains(verb));
    // 复制为 成本备份: after a space, any character may start a name.
    let adjacent =
        parsed.tokens.get(at).zip(parsed.tokens.get(at + 1)).is_some_and(|(one, next)| one.end == next.start);
    let mut from = at + 1 + usize::from(adjacent && skip(at + 1, &["做", "为", "成"]));
    while skip(from, &["a", "the", "new", "sheet", "tab", "worksheet", "named", "called"]) && gives {
        from += 1;
    }
    name_at(parsed, from, gives || skip(at, &["叫", "成", "为"]))
}
