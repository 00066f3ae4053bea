//! Names of worksheets: words beside `sheet`, 工作表 or 表, and between a workbook and its cells.

use crate::lexer::labels::{self, Label};
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::stop_words;
use crate::lexer::token::{Token, TokenKind, is_han};
use crate::spreadsheet::sheet_name::{is_name, is_period, name_at, quoted_at, run_before};
use crate::spreadsheet::sheet_rename;
use crate::values::candidate::MatchContext;
use crate::values::phrase::Phrase;

/// Characters before 表 in words that do not mean a worksheet.
const NO_SHEETS: [&str; 8] = ["透视", "图", "报", "列", "代", "电", "手", "数据"];
const MARKERS: [&str; 8] = ["sheet", "worksheet", "tab", "sheets", "工作表", "表", "表单", "页签"];
/// Words between a marker and the name: `sheet named X`, 表叫 X, 表：X.
const NAMING: [&str; 20] = [
    "(", "（", "named", "called", "is", "name", "titled", ":", "：", "=", "叫", "做", "名", "为", "是", "字",
    "命", "就", "，", ",",
];
/// Words and marks between a workbook and the name of its sheet.
const BETWEEN: [&str; 20] = [
    "/", ",", "，", "的", "里", "中", "面", "内", ":", "：", ">", "-", "|", "、", "'s", "→", "[", "]", "下",
    "(",
];

/// The names of sheets in a text.
pub(crate) fn find<'a>(context: &MatchContext<'a>) -> Vec<Phrase<'a>> {
    let parsed = context.parsed;
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut add = |spans: Vec<(usize, usize)>| {
        for (start, end) in spans {
            if start < end && !found.iter().any(|other| other.0 < end && start < other.1) {
                found.push((start, end));
            }
        }
    };
    for mention in &parsed.mentions {
        if let MentionValue::Literal(Literal::Code(name)) = &mention.value
            && name.to_lowercase().starts_with("sheet")
        {
            add(vec![(mention.start, mention.end)]);
        }
    }
    let markers: Vec<Label> = MARKERS.iter().map(|name| Label::new(name, 1.0)).collect();
    let mut label_spans = labels::find(&markers, parsed, &context.stems);
    label_spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    label_spans.dedup_by(|later, first| later.start < first.end);
    for span in label_spans {
        let inside = |mention: &Mention| {
            matches!(mention.value, MentionValue::Literal(_))
                && mention.start < span.end
                && span.start < mention.end
        };
        if parsed.mentions.iter().any(inside) {
            continue;
        }
        add(beside(parsed, span.start, span.end));
    }
    add(after_files(parsed));
    add(after_on(parsed));
    add(sheet_rename::old_names(parsed));
    let into: Vec<(usize, usize)> =
        found.iter().filter_map(|(_, end)| sheet_rename::new_name(parsed, *end)).collect();
    for (start, end) in into {
        if !found.iter().any(|other| other.0 < end && start < other.1) {
            found.push((start, end));
        }
    }
    let phrase = |(start, end): (usize, usize)| {
        let text = parsed.text.get(start..end)?.trim();
        (!text.is_empty()).then_some(Phrase { text, start, end, after: None })
    };
    found.into_iter().filter_map(phrase).collect()
}

/// The names before or after a marker.
fn beside(parsed: &ParsedText<'_>, start: usize, end: usize) -> Vec<(usize, usize)> {
    let marker = parsed.text.get(start..end).unwrap_or_default();
    let after = parsed.text.get(end..).unwrap_or_default();
    let before = parsed.text.get(..start).unwrap_or_default();
    if marker == "表"
        && (after.starts_with(['格', '头', '单', '达', '示', '现', '对'])
            || NO_SHEETS.iter().any(|end| before.ends_with(end)))
    {
        return Vec::new();
    }
    // 总表 工作表: the first 表 is part of the name.
    if marker == "表" && ["工作表", "表单", "sheet"].iter().any(|word| after.trim_start().starts_with(word))
    {
        return Vec::new();
    }
    let before = before.trim_end();
    // 草稿 和 备份 两张表, 目标 这张表: names before a counter or a demonstrative.
    if let Some(named) = counted_before(before) {
        return named;
    }
    // 叫 风险 的工作表: the name stands between the verb and the marker.
    if let Some(named) = called_before(before) {
        return vec![named];
    }
    if let Some(quoted) = quoted_at(parsed, None, Some(before.len())) {
        return vec![quoted];
    }
    let at = parsed.token_at(end);
    let named = parsed.tokens[at..].iter().take_while(|token| token.is_any(&NAMING)).count();
    let adjacent = parsed.tokens.get(at).is_some_and(|token| token.start == end);
    if let Some(token) = parsed.tokens.get(at)
        && let Some(quoted) = quoted_at(parsed, Some(token.start), None)
        && (marker != "表" || !adjacent || after.starts_with(['“', '"', '「', '『', '‘']))
    {
        return with_others(parsed, quoted.0, quoted.1);
    }
    // A name before the marker is used unless a naming word follows the marker.
    let is_named = parsed.tokens[at..at + named].iter().any(|token| !matches!(token.text, "，" | ","));
    let earlier = match marker.starts_with(is_han) || before.ends_with(is_han) {
        true => run_before(before),
        false => word_before(parsed, start),
    };
    let spaced = !adjacent || !marker.starts_with(is_han);
    let later = if named > 0 && is_named {
        name_at(parsed, at + named, true)
    } else if spaced {
        name_at(parsed, at, false)
    } else {
        None
    };
    match (earlier, later) {
        (_, Some((start, end))) if is_named => with_others(parsed, start, end),
        (Some(earlier), Some(later)) if !marker.starts_with(is_han) && !before.ends_with(is_han) => {
            // `Sheets A and B`; `the Orders sheet` before `A1`.
            let (start, end) = if is_capital(parsed, later.0, later.1) { later } else { earlier };
            with_others(parsed, start, end)
        }
        (Some(earlier), _) => vec![earlier],
        (None, Some((start, end))) => with_others(parsed, start, end),
        (None, None) => Vec::new(),
    }
}

fn is_capital(parsed: &ParsedText<'_>, start: usize, end: usize) -> bool {
    parsed.text.get(start..end).is_some_and(|text| text.starts_with(|c: char| c.is_uppercase() || is_han(c)))
}

/// A name and the other items of its enumeration.
fn with_others(parsed: &ParsedText<'_>, start: usize, mut end: usize) -> Vec<(usize, usize)> {
    let mut found = vec![(start, end)];
    loop {
        let mut at = parsed.token_at(end);
        while parsed.tokens.get(at).is_some_and(|token| token.is_any(&["”", "\"", "'", "」", "’"])) {
            at += 1;
        }
        let joint = parsed.tokens.get(at);
        if !joint.is_some_and(|token| token.is_any(&["and", "、", "和", "与", "&", ","])) {
            return found;
        }
        let is_comma = joint.is_some_and(|token| token.text == ",");
        match name_at(parsed, at + 1, false) {
            Some(next)
                if next.0 > end
                    && (!is_comma || found.len() > 1 || is_capital(parsed, next.0, next.1))
                    && parsed
                        .tokens
                        .get(parsed.token_at(next.1))
                        .is_none_or(|token| !token.is_word("sheet")) =>
            {
                found.push(next);
                end = next.1;
            }
            _ => return found,
        }
    }
}

/// `FILE / Data / A1:B2`, `FILE 明细 A1`, `Week of FILE`: a separate word beside a workbook.
fn after_files(parsed: &ParsedText<'_>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for mention in &parsed.mentions {
        let MentionValue::Literal(Literal::Path(path)) = &mention.value else { continue };
        if ![".xlsx", ".xls", ".xlsm"].iter().any(|ending| path.to_lowercase().ends_with(ending)) {
            continue;
        }
        let at = parsed.token_at(mention.end);
        let between = parsed.tokens[at..].iter().take_while(|token| token.is_any(&BETWEEN)).count();
        if let Some(next) = parsed.tokens.get(at + between)
            && let Some(name) = name_at(parsed, at + between, before_cell(parsed, at + between))
            && (next.kind != TokenKind::Han || stands_alone(parsed, name.0, name.1))
        {
            found.push(name);
            continue;
        }
        let of = parsed.token_at(mention.start).checked_sub(1);
        if let Some(of) = of.filter(|of| parsed.tokens[*of].is_any(&["of", "in", "from", "/"]))
            && let Some(before) = of.checked_sub(1).and_then(|at| parsed.tokens.get(at))
            && is_name(before)
            && let Some(two) = of.checked_sub(2).and_then(|at| parsed.tokens.get(at))
            && two.is_any(&["on", "in", "from", "of", "to", "the", "into"])
        {
            found.push((before.start, before.end));
        }
    }
    found
}

/// `B2 on Payroll, file hr.xlsx`: the word after `on`, if the request names a workbook.
fn after_on(parsed: &ParsedText<'_>) -> Vec<(usize, usize)> {
    let is_workbook = |mention: &Mention| {
        matches!(&mention.value, MentionValue::Literal(Literal::Path(path))
            if [".xlsx", ".xls", ".xlsm"].iter().any(|ending| path.to_lowercase().ends_with(ending)))
    };
    if !parsed.mentions.iter().any(is_workbook) {
        return Vec::new();
    }
    let pairs = parsed.tokens.windows(2).enumerate();
    // `C20 of Costs, budget.xlsx`: the word after `of` and a cell.
    let of_cells = |token: &Token<'_>| {
        token.is_any(&["of", "in"])
            && parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Literal(Literal::Cells(_)))
                    && parsed.text.get(mention.end..token.start) == Some(" ")
            })
    };
    let named = pairs.filter(|(_, pair)| {
        (pair[0].text == "on" || of_cells(&pair[0])) && pair[1].is_capital() && is_name(&pair[1])
    });
    named.filter_map(|(at, _)| name_at(parsed, at + 1, false)).collect()
}

/// 三班 的 G2: whether a name stands directly before a cell.
fn before_cell(parsed: &ParsedText<'_>, at: usize) -> bool {
    let Some(token) = parsed.tokens.get(at).filter(|token| token.kind == TokenKind::Han) else {
        return false;
    };
    let run = parsed.tokens[at..]
        .iter()
        .take_while(|next| next.kind == TokenKind::Han && next.text != "的")
        .count();
    let end = parsed.tokens[at + run - 1].end;
    let adjacent = parsed.text.get(token.start..end).is_some_and(|text| !text.contains(' '));
    let after = at + run + usize::from(parsed.tokens.get(at + run).is_some_and(|next| next.text == "的"));
    let cell = parsed.tokens.get(after).is_some_and(|next| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Cells(_))) && mention.start == next.start
        })
    });
    (2..=6).contains(&run) && adjacent && cell
}

/// Whether a name is delimited by spaces or marks, and the request continues after it.
fn stands_alone(parsed: &ParsedText<'_>, start: usize, end: usize) -> bool {
    let after = &parsed.text[end..];
    let before = &parsed.text[..start];
    // A header or a row is not a sheet.
    if ["表头", "标题行", "首行", "末行", "标题"].contains(&&parsed.text[start..end]) {
        return false;
    }
    let ends = after.starts_with([' ', ',', '，', '/', '!', '！', '|', '的', '里', '中', ']']);
    let begins = before.ends_with([' ', ',', '，', '/', '|', '[', '-', '>', '的']);
    // 读取 a.xlsx 的 一月: the last word is a sheet name if it is a month or a specific word.
    let last = after.trim_matches(['。', '.', '？', '?', '！', '!', ' ']).is_empty();
    let is_named = last && (is_period(&parsed.text[start..]) || is_own_word(parsed, start, end));
    (ends || is_named) && begins
}

/// 读取 a.xlsx 的 销售: whether the last word is a name and not a general noun such as 内容.
fn is_own_word(parsed: &ParsedText<'_>, start: usize, end: usize) -> bool {
    let word = parsed.text.get(start..end).unwrap_or_default();
    let general = [
        "内容", "数据", "信息", "情况", "东西", "大小", "属性", "名称", "名字", "位置", "详情", "全文",
        "正文", "部分", "全部", "所有", "开头", "结尾",
    ];
    let after_of = parsed.text[..start].trim_end().ends_with(['的', '里', '中']);
    after_of
        && (2..=8).contains(&word.chars().count())
        && !general.iter().any(|word_of_all| word.contains(word_of_all))
        && crate::lexer::lexicon::word_matches(word, &crate::lexer::token::tokenize(word), &|_| false)
            .is_empty()
}

/// The English word before a marker: `Orders sheet`, `"the orders tab"`.
fn word_before(parsed: &ParsedText<'_>, start: usize) -> Option<(usize, usize)> {
    let at = parsed.token_at(start).checked_sub(1)?;
    let token = parsed.tokens.get(at)?;
    if is_name(token) {
        // `the Q3 Plan sheet`: adjacent capitalised words form one name.
        let mut first = token.start;
        for before in parsed.tokens[..at].iter().rev() {
            let close = parsed.text.get(before.end..first) == Some(" ");
            let taken = parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Literal(Literal::Path(_) | Literal::Cells(_)))
                    && mention.start < before.end
                    && before.start < mention.end
            });
            if !close || taken || !is_name(before) || before.kind == TokenKind::Number || before.start == 0 {
                break;
            }
            first = before.start;
        }
        return Some((first, token.end));
    }
    // `the orders sheet`: a lowercase word between an article and the marker.
    let article = at.checked_sub(1).and_then(|at| parsed.tokens.get(at));
    let general = [
        "new",
        "first",
        "second",
        "last",
        "same",
        "whole",
        "entire",
        "other",
        "another",
        "blank",
        "empty",
        "excel",
        "current",
        "active",
        "following",
        "right",
        "wrong",
        "old",
        "single",
        "data",
        "target",
    ];
    let plain = token.kind == TokenKind::Word
        && token.text.is_ascii()
        && !stop_words::is_stop(token.text)
        && !general.contains(&token.text.to_lowercase().as_str());
    (plain && article.is_some_and(|token| token.is_any(&["the", "my", "our"])))
        .then_some((token.start, token.end))
}

/// The enumerated names before 这张 or 两个.
fn counted_before(before: &str) -> Option<Vec<(usize, usize)>> {
    let counted = before.strip_suffix(['张', '个'])?;
    let head = counted.trim_end_matches(['这', '那', '两', '三', '四', '2', '3', '4']);
    if head.len() == counted.len() {
        return None;
    }
    let mut found = Vec::new();
    let mut head = head.trim_end();
    loop {
        let trimmed = head.trim_end_matches(['“', '”', '"', '「', '」', '【', '】']);
        let (start, end) = run_before(trimmed)?;
        let name = trimmed.get(start..end)?.split(['和', '与']).next_back().unwrap_or_default();
        if name.is_empty() {
            return None;
        }
        found.push((end - name.len(), end));
        let rest = trimmed[..end - name.len()].trim_end_matches(['“', '"', '「', '【', ' ']);
        match rest.strip_suffix(['和', '与', '、']) {
            Some(rest) => head = rest.trim_end(),
            None => break,
        }
    }
    found.reverse();
    Some(found)
}

/// 叫 风险 的, 名为“汇总”的: the name between a naming verb and a marker.
fn called_before(before: &str) -> Option<(usize, usize)> {
    let named = before.strip_suffix('的')?.trim_end();
    let words = ["叫做", "名叫", "名为", "命名为", "名字叫", "叫"];
    let (at, word) = words
        .iter()
        .filter_map(|word| named.rfind(word).map(|at| (at, *word)))
        .max_by_key(|(at, word)| (at + word.len(), word.len()))?;
    let name = named.get(at + word.len()..)?;
    let trimmed = name.trim_matches(|c: char| c.is_whitespace() || "\"'“”‘’「」『』【】[]".contains(c));
    let plain =
        !trimmed.is_empty() && trimmed.chars().count() <= 20 && !trimmed.contains(['，', '。', ',', '.']);
    let start = trimmed.as_ptr() as usize - before.as_ptr() as usize;
    plain.then_some((start, start + trimmed.len()))
}
