//! Finds the content to be written into cells if it is not quoted: `put Passport in A1`, `A1 写 队名`, `把 100 填到 B2`.

use serde_json::Value as Json;

use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::spreadsheet::cell_value::cell;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};

/// English verbs before the content.
const WRITES: [&str; 18] = [
    "log", "jot", "pop", "drop", "note", "key", "write", "put", "enter", "type", "insert", "add", "place",
    "set", "fill", "record", "save", "stick",
];
/// Words between the content and the cell.
const INTO: [&str; 10] = ["goes into", "goes in", "into", "in", "to", "at", "inside", "as", "under", "on"];
/// Words between a cell and the content after it, longer ones first.
const AFTER_CELL: [&str; 37] = [
    "里面写上",
    "里写上",
    "里写入",
    "里填上",
    "里填入",
    "里输入",
    "里面写",
    "里写",
    "里填",
    "里放",
    "那格写",
    "写入",
    "写上",
    "写成",
    "写个",
    "写下",
    "填入",
    "填上",
    "填成",
    "填个",
    "输入",
    "录入",
    "改成",
    "改为",
    "设为",
    "设成",
    "更新为",
    "写",
    "填",
    "输",
    "放上",
    "记上",
    "放",
    "里",
    "=",
    "：",
    ":",
];
/// Words between the content and the cell, after 把.
const BEFORE_CELL: [&str; 18] = [
    "写到",
    "写入",
    "写进",
    "写在",
    "填到",
    "填入",
    "填进",
    "填在",
    "放到",
    "放进",
    "放在",
    "输入到",
    "录入到",
    "存到",
    "记到",
    "输到",
    "加到",
    "塞进",
];
/// English verbs that are followed by a cell and its new content.
const SETS: [&str; 7] = ["set", "change", "update", "make", "turn", "switch", "correct"];
/// Words between a cell and its new content.
const BECOMES: [&str; 9] = [
    " should contain ",
    " should hold ",
    " should be ",
    " should read ",
    " should say ",
    " must be ",
    " shall be ",
    " needs to be ",
    " has to be ",
];
/// Words directly after a cell and before the content.
const PUT: [&str; 8] = [", put ", ", write ", ", enter ", ", type ", " put ", " write ", " enter ", ": "];
/// References to other content, which are not written literally.
const NOT_ITSELF: [&str; 24] = [
    "it",
    "this",
    "that",
    "them",
    "the result",
    "the answer",
    "the value",
    "the sum",
    "the total",
    "result",
    "the following",
    "these",
    "结果",
    "答案",
    "它",
    "这个",
    "公式",
    "数据",
    "内容",
    "the formula",
    "a formula",
    "formula",
    "a value",
    "data",
];

/// The content to be written into the cells of a text.
pub(crate) fn candidates(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let mentions = &context.parsed.mentions;
    let cells = mentions.iter().filter(
        |mention| matches!(&mention.value, MentionValue::Literal(Literal::Cells(cells)) if !cells.contains(':')),
    );
    let found = cells
        .flat_map(|mention| [before(context, mention), after(context, mention), becomes(context, mention)])
        .flatten();
    found.chain(mentions.iter().filter_map(|mention| into_range(context, mention))).collect()
}

/// `write Name, Mail into A1:B1`, 把 1、2、3 填到 A1:A3: as many values as cells, in a row or a column.
fn into_range(context: &MatchContext<'_>, cell_mention: &Mention) -> Option<ValueCandidate> {
    let MentionValue::Literal(Literal::Cells(cells)) = &cell_mention.value else { return None };
    let (first, last) = cells.split_once(':')?;
    let column = |cell: &str| {
        let letters = cell.bytes().take_while(u8::is_ascii_uppercase);
        letters.fold(0usize, |column, letter| column * 26 + usize::from(letter - b'A') + 1)
    };
    let row = |cell: &str| cell.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse::<usize>().ok();
    let across = column(last).checked_sub(column(first))? + 1;
    let down = row(last)?.checked_sub(row(first)?)? + 1;
    let text = context.parsed.text;
    let head = text.get(..cell_mention.start)?.trim_end();
    let lower = head.to_ascii_lowercase();
    let (start, end) = match INTO.iter().find(|into| lower.ends_with(&format!(" {into}"))) {
        Some(into) => {
            let end = head.len() - into.len();
            let begins = WRITES.iter().filter_map(|verb| {
                let at = lower[..end].find(verb)?;
                let is_whole_word =
                    (at == 0 || lower[..at].ends_with(' ')) && lower[at + verb.len()..].starts_with(' ');
                is_whole_word.then_some(at + verb.len())
            });
            (begins.max()?, end)
        }
        None => {
            let (at, _) =
                BEFORE_CELL.iter().filter_map(|verb| head.rfind(verb).map(|at| (at, verb))).max()?;
            let from =
                ["把", "将"].iter().filter_map(|word| head[..at].rfind(word).map(|from| from + word.len()));
            (from.max()?, at)
        }
    };
    let other = context.parsed.mentions.iter().any(|mention| {
        let literal = matches!(
            mention.value,
            MentionValue::Literal(Literal::Path(_) | Literal::Cells(_) | Literal::Json(_))
        );
        literal && mention.start < end && start < mention.end
    });
    let members: Vec<Json> =
        crate::lexer::series::members(text.get(start..end)?.trim()).into_iter().map(cell).collect();
    if other || members.len() != across * down || (across > 1 && down > 1) || members.len() < 2 {
        return None;
    }
    let rows = if down == 1 {
        vec![Json::Array(members)]
    } else {
        members.into_iter().map(|one| Json::Array(vec![one])).collect()
    };
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(rows)),
        start,
        end,
        score: GOOD + 0.8,
    })
}

/// `set B7 to 950`, `B7 in tab Rent should be 950`: the new content of a cell.
fn becomes(context: &MatchContext<'_>, cell_mention: &Mention) -> Option<ValueCandidate> {
    let text = context.parsed.text;
    let rest = text.get(cell_mention.end..)?;
    let lower = rest.to_ascii_lowercase();
    let verb = text.get(..cell_mention.start)?.to_ascii_lowercase();
    let sets = verb.split(|c: char| !c.is_alphanumeric()).any(|word| SETS.contains(&word));
    let fills = verb
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| ["fill", "populate", "overwrite", "replace"].contains(&word));
    let (at, word) = BECOMES
        .iter()
        .filter_map(|word| lower.find(word).map(|at| (at, *word)))
        .chain(lower.starts_with(" to ").then_some((0, " to ")).filter(|_| sets))
        .chain(lower.starts_with(" with ").then_some((0, " with ")).filter(|_| fills))
        .chain(PUT.iter().filter(|word| lower.starts_with(**word)).map(|word| (0, *word)))
        .min()?;
    // With another cell in between, the content would belong to that cell.
    let other = context.parsed.mentions.iter().any(|mention| {
        matches!(mention.value, MentionValue::Literal(Literal::Cells(_)))
            && mention.start >= cell_mention.end
            && mention.start < cell_mention.end + at
    });
    let start = cell_mention.end + at + word.len();
    let rest = text.get(start..).filter(|_| !other)?;
    let ends = [
        ", ",
        "; ",
        " - ",
        " (",
        "\n",
        " in sheet ",
        " on sheet ",
        " in the ",
        " on the ",
        " in ",
        " on ",
        " of ",
        "? ",
    ];
    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let end = rest[..end].trim_end_matches(['.', '!', '?']).len();
    entry(context, start, start + end)
}

/// `put X in A1`, `X goes into A1`, `把 X 写到 A1`: the content before the cell.
fn before(context: &MatchContext<'_>, cell_mention: &Mention) -> Option<ValueCandidate> {
    let text = context.parsed.text;
    let head = text.get(..cell_mention.start)?.trim_end();
    let head = head.strip_suffix("cell").or_else(|| head.strip_suffix("单元格")).unwrap_or(head).trim_end();
    let head = head.strip_suffix("the").unwrap_or(head).trim_end();
    let lower = head.to_ascii_lowercase();
    if let Some(into) = INTO.iter().find(|into| lower.ends_with(&format!(" {into}"))) {
        let head = head.get(..head.len() - into.len())?.trim_end();
        let lower = head.to_ascii_lowercase();
        let begins = WRITES.iter().filter_map(|verb| {
            let at = lower.rfind(verb)?;
            let is_whole_word =
                (at == 0 || lower[..at].ends_with(' ')) && lower[at + verb.len()..].starts_with(' ');
            is_whole_word.then_some(at + verb.len())
        });
        let start = begins.max().or_else(|| (*into).starts_with("goes").then_some(0))?;
        return entry(context, start, head.len());
    }
    // 把 X 写到 … A1: the file and the sheet may be in between.
    let (at, _) = BEFORE_CELL.iter().filter_map(|verb| head.rfind(verb).map(|at| (at, verb))).max()?;
    let start =
        ["把", "将"].iter().filter_map(|word| head[..at].rfind(word).map(|from| from + word.len())).max()?;
    entry(context, start, at)
}

/// `A1 写 X`: the content after the cell.
fn after(context: &MatchContext<'_>, cell_mention: &Mention) -> Option<ValueCandidate> {
    let text = context.parsed.text;
    let mut at = cell_mention.end;
    let skip = |at: usize, words: &[&str]| {
        let rest = text.get(at..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start().len();
        let word = words.iter().find(|word| rest[blank..].starts_with(**word));
        word.map(|word| at + blank + word.len())
    };
    while let Some(next) = skip(at, &["单元格", "这个", "这格", "格子", "格", "的值", "中", "处", "上"])
    {
        at = next;
    }
    let start = skip(at, &AFTER_CELL)?;
    let start = skip(start, &["为", "成", "上", "个", "："]).unwrap_or(start);
    let rest = text.get(start..)?;
    let end = rest.find(['。', '，', '；', ';', '\n', '？', '!', '！', ',']).unwrap_or(rest.len());
    entry(context, start, start + end)
}

/// The text between two byte offsets as a row of one cell, if it is plain content.
fn entry(context: &MatchContext<'_>, start: usize, end: usize) -> Option<ValueCandidate> {
    let text = context.parsed.text.get(start..end)?;
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || "\"'“”‘’「」`:：".contains(c));
    let lower = trimmed.to_lowercase();
    let other = context.parsed.mentions.iter().any(|mention| {
        matches!(
            mention.value,
            MentionValue::Literal(
                Literal::Path(_) | Literal::Cells(_) | Literal::Formula(_) | Literal::Json(_)
            )
        ) && mention.start < end
            && start < mention.end
    });
    let words = ["the ", "these ", "this ", "that "];
    let vague = NOT_ITSELF.contains(&lower.as_str()) || words.iter().any(|word| lower.starts_with(word));
    let result = crate::lexer::back_reference::refers_to_result(trimmed);
    // `表头：编号、名称` is a row with its label.
    if trimmed.ends_with("格式") || trimmed.ends_with("format") || lower.starts_with("bold") {
        return None;
    }
    let layout_words = ["rows", "row", "starting", "columns", "following"];
    if lower.split(' ').any(|word| layout_words.contains(&word)) {
        return None;
    }
    let row = trimmed.contains(['：', '、']) || trimmed.contains(": ");
    if trimmed.is_empty() || row || trimmed.chars().count() > 60 || other || vague || result {
        return None;
    }
    let start = trimmed.as_ptr() as usize - context.parsed.text.as_ptr() as usize;
    let value = ArgumentValue::FromRequest(Json::Array(vec![Json::Array(vec![cell(trimmed)])]));
    Some(ValueCandidate { value, start, end: start + trimmed.len(), score: GOOD + 0.6 })
}
