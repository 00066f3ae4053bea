//! Names of worksheets: words beside `sheet`, 工作表 or 表, and between a workbook and its cells.

use crate::lexer::labels::{self, Label};
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, ParsedText, Value};
use crate::lexer::token::{Kind, Token, is_han};
use crate::spreadsheet::sheet_rename;
use crate::values::candidate::MatchContext;
use crate::values::phrase::{self, Phrase};

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
/// Words that refer to a sheet without naming it.
const POINTING: [&str; 17] =
    ["第", "这", "那", "该", "此", "新", "一", "两", "三", "几", "哪", "同", "每", "某", "有", "什", "所"];

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
        if let Value::Literal(Literal::Code(name)) = &mention.value
            && name.to_lowercase().starts_with("sheet")
        {
            add(vec![(mention.start, mention.end)]);
        }
    }
    let markers: Vec<Label> = MARKERS.iter().map(|name| Label::new(name, 1.0)).collect();
    let mut places = labels::places(&markers, parsed, &context.stems);
    places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    places.dedup_by(|later, first| later.start < first.end);
    for place in places {
        let inside = |mention: &Mention| {
            matches!(mention.value, Value::Literal(_))
                && mention.start < place.end
                && place.start < mention.end
        };
        if parsed.mentions.iter().any(inside) {
            continue;
        }
        add(beside(parsed, place.start, place.end));
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
        return with_others(parsed, quoted);
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
        (_, Some(later)) if is_named => with_others(parsed, later),
        (Some(earlier), Some(later)) if !marker.starts_with(is_han) && !before.ends_with(is_han) => {
            // `Sheets A and B`; `the Orders sheet` before `A1`.
            with_others(parsed, if is_capital(parsed, later) { later } else { earlier })
        }
        (Some(earlier), _) => vec![earlier],
        (None, Some(later)) => with_others(parsed, later),
        (None, None) => Vec::new(),
    }
}

fn is_capital(parsed: &ParsedText<'_>, span: (usize, usize)) -> bool {
    parsed
        .text
        .get(span.0..span.1)
        .is_some_and(|text| text.starts_with(|c: char| c.is_uppercase() || is_han(c)))
}

/// Whether a text starts with a month or a quarter, common names of sheets: 一月, 三季度.
fn is_period(text: &str) -> bool {
    let after = text.trim_start_matches(['一', '二', '三', '四', '五', '六', '七', '八', '九', '十']);
    after.len() < text.len() && ["月", "季度"].iter().any(|period| after.starts_with(period))
}

/// `sheet FY25: delete C5:C9`: a cell reference directly after `sheet` is the name of the sheet if the request contains other
/// cells.
pub(crate) fn follows_marker(parsed: &ParsedText<'_>, mention: &Mention) -> bool {
    let is_cell = |mention: &Mention| matches!(&mention.value, Value::Literal(Literal::Cells(cells)) if !cells.contains(':'));
    let before = parsed.text.get(..mention.start).unwrap_or_default().trim_end().to_lowercase();
    let others =
        parsed.mentions.iter().filter(|other| matches!(other.value, Value::Literal(Literal::Cells(_))));
    is_cell(mention)
        && others.count() > 1
        && before.rsplit(' ').next().is_some_and(|word| ["sheet", "worksheet", "tab"].contains(&word))
}

/// `Q1` to `Q4`, `H1`, `H2`: parts of a year are read as sheet names rather than cells.
fn is_quarter(cells: &str) -> bool {
    ["Q1", "Q2", "Q3", "Q4", "H1", "H2"].contains(&cells)
}

/// The text inside the quotes that start or end at the given offset.
pub(crate) fn quoted_at(
    parsed: &ParsedText<'_>,
    start: Option<usize>,
    end: Option<usize>,
) -> Option<(usize, usize)> {
    parsed.mentions.iter().find_map(|mention| match &mention.value {
        // `[North Region]`: brackets around a single name count as quotes.
        Value::Literal(literal)
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
        && let Value::Literal(literal) = &mention.value
    {
        let code = matches!(literal, Literal::Code(_))
            || matches!(literal, Literal::Cells(cells) if is_quarter(cells))
            || follows_marker(parsed, mention)
            || (announced && matches!(literal, Literal::Cells(cells) if !cells.contains(':')));
        return (code && mention.start == token.start).then_some((mention.start, mention.end));
    }
    match token.kind {
        Kind::Word | Kind::Number => {
            let letter = token.text.len() == 1 && token.is_capital() && token.text != "I";
            let fits = letter
                || is_name(token)
                || (announced && token.kind == Kind::Word && !phrase::is_stop(token.text));
            if !fits {
                return None;
            }
            // `2026预算`: characters that follow without a space extend the name.
            let mut end = token.end;
            for next in &parsed.tokens[at + 1..] {
                let adjacent =
                    next.start == end && matches!(next.kind, Kind::Han | Kind::Word | Kind::Number);
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
                    && next.kind == Kind::Number
                    && next.text.len() <= 4
                    && parsed.text.get(end..next.start) == Some(" ")
            });
            Some((token.start, number.map_or(end, |number| number.end)))
        }
        Kind::Han => {
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
                &crate::lexer::token::tokens(&rest[..length]),
                &|_| false,
            )
            .iter()
            .any(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty());
            (announced || (!verb && length <= 18)).then_some((token.start, token.start + length))
        }
        Kind::Mark => None,
    }
}

/// A name and the other items of its enumeration.
fn with_others(parsed: &ParsedText<'_>, first: (usize, usize)) -> Vec<(usize, usize)> {
    let mut found = vec![first];
    let mut end = first.1;
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
                    && (!is_comma || found.len() > 1 || is_capital(parsed, next))
                    && parsed.tokens.get(parsed.token_at(next.1)).is_none_or(|token| !token.is("sheet")) =>
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
        let Value::Literal(Literal::Path(path)) = &mention.value else { continue };
        if ![".xlsx", ".xls", ".xlsm"].iter().any(|ending| path.to_lowercase().ends_with(ending)) {
            continue;
        }
        let at = parsed.token_at(mention.end);
        let between = parsed.tokens[at..].iter().take_while(|token| token.is_any(&BETWEEN)).count();
        if let Some(next) = parsed.tokens.get(at + between)
            && let Some(name) = name_at(parsed, at + between, before_cell(parsed, at + between))
            && (next.kind != Kind::Han || stands_alone(parsed, name))
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
        matches!(&mention.value, Value::Literal(Literal::Path(path))
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
                matches!(mention.value, Value::Literal(Literal::Cells(_)))
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
    let Some(token) = parsed.tokens.get(at).filter(|token| token.kind == Kind::Han) else { return false };
    let run =
        parsed.tokens[at..].iter().take_while(|next| next.kind == Kind::Han && next.text != "的").count();
    let end = parsed.tokens[at + run - 1].end;
    let adjacent = parsed.text.get(token.start..end).is_some_and(|text| !text.contains(' '));
    let after = at + run + usize::from(parsed.tokens.get(at + run).is_some_and(|next| next.text == "的"));
    let cell = parsed.tokens.get(after).is_some_and(|next| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, Value::Literal(Literal::Cells(_))) && mention.start == next.start
        })
    });
    (2..=6).contains(&run) && adjacent && cell
}

/// Whether a name is delimited by spaces or marks, and the request continues after it.
fn stands_alone(parsed: &ParsedText<'_>, name: (usize, usize)) -> bool {
    let after = &parsed.text[name.1..];
    let before = &parsed.text[..name.0];
    // A header or a row is not a sheet.
    if ["表头", "标题行", "首行", "末行", "标题"].contains(&&parsed.text[name.0..name.1]) {
        return false;
    }
    let ends = after.starts_with([' ', ',', '，', '/', '!', '！', '|', '的', '里', '中', ']']);
    let begins = before.ends_with([' ', ',', '，', '/', '|', '[', '-', '>', '的']);
    // 读取 a.xlsx 的 一月: the last word is a sheet name if it is a month or a specific word.
    let last = after.trim_matches(['。', '.', '？', '?', '！', '!', ' ']).is_empty();
    let is_named = last && (is_period(&parsed.text[name.0..]) || is_own_word(parsed, name));
    (ends || is_named) && begins
}

/// 读取 a.xlsx 的 销售: whether the last word is a name and not a general noun such as 内容.
fn is_own_word(parsed: &ParsedText<'_>, name: (usize, usize)) -> bool {
    let word = parsed.text.get(name.0..name.1).unwrap_or_default();
    let general = [
        "内容", "数据", "信息", "情况", "东西", "大小", "属性", "名称", "名字", "位置", "详情", "全文",
        "正文", "部分", "全部", "所有", "开头", "结尾",
    ];
    let after_of = parsed.text[..name.0].trim_end().ends_with(['的', '里', '中']);
    after_of
        && (2..=8).contains(&word.chars().count())
        && !general.iter().any(|word_of_all| word.contains(word_of_all))
        && crate::lexer::lexicon::word_matches(word, &crate::lexer::token::tokens(word), &|_| false)
            .is_empty()
}

/// Whether a word could name a sheet: it is capitalised or contains digits.
fn is_name(token: &Token<'_>) -> bool {
    let cell = crate::lexer::literal::cells(token.text).is_some() && token.text.len() > 2;
    (token.kind == Kind::Number
        || (token.is_capital() && (!phrase::is_stop(token.text) || token.text == "May"))
        || (token.kind == Kind::Word && token.text.contains(|c: char| c.is_ascii_digit())))
        && !cell
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
                matches!(mention.value, Value::Literal(Literal::Path(_) | Literal::Cells(_)))
                    && mention.start < before.end
                    && before.start < mention.end
            });
            if !close || taken || !is_name(before) || before.kind == Kind::Number || before.start == 0 {
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
    let plain = token.kind == Kind::Word
        && token.text.is_ascii()
        && !phrase::is_stop(token.text)
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
        crate::lexer::lexicon::word_matches(run, &crate::lexer::token::tokens(run), &|_| false);
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
