//! Finds rows that are given as a list: `the headers Name, Qty, Price`, 表头 姓名、电话, `put A, B and C into the first row`.

use serde_json::Value as Json;

use crate::lexer::literal::Literal;
use crate::lexer::mention::MentionValue;
use crate::lexer::series;
use crate::spreadsheet::cell_value::cell;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};

const LABELS: [&str; 9] = [
    "column headers",
    "column headings",
    "column names",
    "header row",
    "headers",
    "headings",
    "column titles",
    "the columns",
    "header",
];
const HAN_LABELS: [&str; 6] = ["列标题", "标题行", "表头行", "表头", "列名", "首行"];
/// Words after the last item.
const ENDS: [&str; 14] = [
    " starting ",
    " beginning ",
    " into ",
    " in ",
    " at ",
    " from ",
    " on ",
    " to ",
    ". ",
    "; ",
    " for ",
    " of ",
    " as ",
    " across ",
];
const HAN_ENDS: [&str; 9] = ["，", "。", "；", "写", "填", "放", "到", "从", "作为"];
const FIRST_ROWS: [&str; 6] = [
    "into the first row",
    "in the first row",
    "into row 1",
    "in row 1",
    "into that sheet's first row",
    "as the first row",
];
const WRITES: [&str; 6] = ["write ", "put ", "enter ", "add ", "fill in ", "insert "];

/// The row that a text gives as a list.
pub(crate) fn candidate(context: &MatchContext<'_>) -> Option<ValueCandidate> {
    labelled(context).or_else(|| first_row(context))
}

fn labelled(context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let text = context.parsed.text;
    let lower = text.to_ascii_lowercase();
    let english = LABELS.iter().filter_map(|label| {
        let at = lower.find(label)?;
        let after = at + label.len();
        let is_whole_word = lower[after..].starts_with([' ', ':'])
            && !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        is_whole_word.then_some((after, false))
    });
    let chinese = HAN_LABELS.iter().filter_map(|label| text.find(label).map(|at| (at + label.len(), true)));
    let (start, han) = english.chain(chinese).min()?;
    let rest = text.get(start..)?;
    let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || ":：为是".contains(c));
    let start = text.len() - trimmed.len();
    let ends: &[&str] = if han { &HAN_ENDS } else { &ENDS };
    let length = ends.iter().filter_map(|end| trimmed.find(end)).min().unwrap_or(trimmed.len());
    row(context, start, start + length)
}

/// `put Date, Client, Amount into that sheet's first row`.
fn first_row(context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let lower = context.parsed.text.to_ascii_lowercase();
    let end = FIRST_ROWS.iter().filter_map(|words| lower.find(words)).min()?;
    let start = WRITES.iter().filter_map(|verb| lower[..end].rfind(verb).map(|at| at + verb.len())).max()?;
    row(context, start, end)
}

fn row(context: &MatchContext<'_>, start: usize, end: usize) -> Option<ValueCandidate> {
    let text = context.parsed.text.get(start..end)?.trim_end().trim_end_matches(['.', '。']);
    let literal = context.parsed.mentions.iter().any(|mention| {
        matches!(
            mention.value,
            MentionValue::Literal(
                Literal::Path(_) | Literal::Cells(_) | Literal::Formula(_) | Literal::Json(_)
            )
        ) && mention.start < start + text.len()
            && start < mention.end
    });
    let members = series::members(text);
    let short = |member: &&str| member.split_whitespace().count() <= 3 && member.chars().count() <= 24;
    if literal || members.len() < 2 || !members.iter().all(short) {
        return None;
    }
    let trimmed = |member: &str| cell(member.trim_matches(|c: char| "\"'“”「」".contains(c)));
    let cells: Vec<Json> = members.into_iter().map(trimmed).collect();
    let value = ArgumentValue::FromRequest(Json::Array(vec![Json::Array(cells)]));
    Some(ValueCandidate { value, start, end: start + text.len(), score: GOOD + 0.9 })
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::lexer::labels;
    use crate::lexer::mention::ParsedText;

    #[test]
    fn parses_header_rows() {
        let check = |text: &str, expect: Option<Json>| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let context =
                MatchContext { parsed: &parsed, stems: labels::stems(&parsed), tool_words: Vec::new() };
            let found = candidate(&context).map(|found| match found.value {
                ArgumentValue::FromRequest(value) => value[0].clone(),
                ArgumentValue::Result => Json::Null,
            });
            assert_eq!(found, expect, "{text}");
        };
        check("write the headers Name, Qty, Price starting at A1", Some(json!(["Name", "Qty", "Price"])));
        check("A1 开始写入表头 姓名、电话、城市", Some(json!(["姓名", "电话", "城市"])));
        check(
            "put Date, Client, Amount into that sheet's first row",
            Some(json!(["Date", "Client", "Amount"])),
        );
        check("make the header row bold", None);
    }
}
