//! Names of worksheets: what stands beside `sheet`, 工作表 or 表.

use super::candidate::Scene;
use super::labels::{self, Label};
use super::literal::Literal;
use super::mention::Value;
use super::phrase::{self, Phrase};
use super::token::{Kind, Token, is_han};

/// Endings of words for other kinds of tables.
const NO_SHEETS: [&str; 8] = ["透视", "图", "报", "列", "代", "电", "手", "数据"];

/// The names of sheets in a text.
pub(super) fn find<'a>(scene: &Scene<'a>) -> Vec<Phrase<'a>> {
    let reading = scene.reading;
    let mut found: Vec<Phrase<'a>> = Vec::new();
    let mut add = |start: usize, end: usize| {
        if let Some(text) = reading.text.get(start..end).map(str::trim).filter(|text| !text.is_empty()) {
            let known = found.iter().any(|other| other.start < end && start < other.end);
            if !known {
                found.push(Phrase { text, start, end, after: None });
            }
        }
    };
    for mention in &reading.mentions {
        if let Value::Literal(Literal::Code(name)) = &mention.value
            && name.to_lowercase().starts_with("sheet")
        {
            add(mention.start, mention.end);
        }
    }
    let quoted = |start: usize, end: usize| {
        reading.mentions.iter().find_map(|mention| match &mention.value {
            Value::Literal(Literal::Quoted(_)) if mention.end == end || mention.start == start => {
                // Without the quotes.
                let inner = reading.written(mention);
                let open = inner.chars().next().map_or(0, char::len_utf8);
                let close = inner.chars().next_back().map_or(0, char::len_utf8);
                Some((mention.start + open, mention.end - close))
            }
            _ => None,
        })
    };
    let markers: Vec<Label> =
        ["sheet", "worksheet", "tab", "工作表", "表"].iter().map(|name| Label::new(name, 1.0)).collect();
    let mut places = labels::places(&markers, reading, &scene.stems);
    places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    places.dedup_by(|later, first| later.start < first.end);
    for place in places {
        if reading.mentions.iter().any(|mention| mention.start < place.end && place.start < mention.end) {
            continue;
        }
        let marker = reading.text.get(place.start..place.end).unwrap_or_default();
        let after_text = reading.text.get(place.end..).unwrap_or_default();
        let before_text = reading.text.get(..place.start).unwrap_or_default();
        if marker.starts_with(is_han) {
            if marker == "表"
                && (after_text.starts_with(['格', '头', '单', '达'])
                    || NO_SHEETS.iter().any(|end| before_text.ends_with(end)))
            {
                continue;
            }
            let before = before_text.trim_end();
            if let Some((start, end)) = quoted(usize::MAX, before.len()) {
                add(start, end);
                continue;
            }
            let trimmed = after_text.trim_start();
            let next = place.end + after_text.len() - trimmed.len();
            if let Some((start, end)) = quoted(next, usize::MAX)
                .filter(|_| marker != "表" || trimmed.starts_with(['“', '"', '「', '『']))
            {
                add(start, end);
                continue;
            }
            if let Some((start, end)) = run_before(before) {
                add(start, end);
            } else if marker == "工作表"
                && let Some(token) =
                    reading.tokens.get(reading.token_at(next)).filter(|token| token.kind == Kind::Word)
            {
                add(token.start, token.end);
            }
            continue;
        }
        let at = reading.token_at(place.start);
        let before = at.checked_sub(1).and_then(|at| reading.tokens.get(at));
        if let Some((start, end)) = before.and_then(|token| quoted(usize::MAX, token.end)) {
            add(start, end);
            continue;
        }
        let next = reading.tokens.get(reading.token_at(place.end));
        let named = next.is_some_and(|token| token.is_any(&["named", "called"]));
        let next = if named { reading.tokens.get(reading.token_at(place.end) + 1) } else { next };
        if let Some((start, end)) = next.and_then(|token| quoted(token.start, usize::MAX)) {
            add(start, end);
            continue;
        }
        // `Sheets A and B` name several.
        if let Some(token) = next.filter(|token| is_name(token)) {
            add(token.start, token.end);
            let mut at = reading.token_at(token.end);
            while let [joint, other, ..] = reading.tokens.get(at..).unwrap_or_default()
                && joint.is_any(&["and", ","])
                && is_name(other)
            {
                add(other.start, other.end);
                at += 2;
            }
        } else if let Some(token) = before.filter(|token| is_name(token)) {
            add(token.start, token.end);
        }
    }
    let into: Vec<(usize, usize)> = found
        .iter()
        .filter_map(|known| {
            let next = reading.token_at(known.end);
            let skip = usize::from(
                reading.tokens.get(next).is_some_and(|token| token.is_any(&["”", "\"", "'", "」", "』"])),
            );
            let marker = usize::from(
                reading.tokens.get(next + skip).is_some_and(|token| token.is_any(&["表", "sheet"])),
            );
            let joint = reading.tokens.get(next + skip + marker)?;
            let named = reading.tokens.get(next + skip + marker + 1)?;
            if !joint.is_any(&["to", "into", "as", "为", "成", "到"]) {
                return None;
            }
            quoted(named.start, usize::MAX).or_else(|| is_name(named).then_some((named.start, named.end)))
        })
        .collect();
    for (start, end) in into {
        if let Some(text) = reading.text.get(start..end)
            && !found.iter().any(|other| other.start < end && start < other.end)
        {
            found.push(Phrase { text, start, end, after: None });
        }
    }
    found
}

/// Whether a word could name a sheet: it is written large, or has digits.
fn is_name(token: &Token<'_>) -> bool {
    let cell = super::literal::cells(token.text).is_some() && token.text.len() > 2;
    (token.kind == Kind::Number
        || (token.is_capital() && !phrase::is_stop(token.text))
        || (token.kind == Kind::Word && token.text.contains(|c: char| c.is_ascii_digit())))
        && !cell
}

/// The run before 表 that names it: up to a blank, a mark, or a small word.
fn run_before(before: &str) -> Option<(usize, usize)> {
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
    ]
    .iter()
    .any(|word| run.ends_with(word));
    (!run.is_empty() && !verb).then_some((start, before.len()))
}
