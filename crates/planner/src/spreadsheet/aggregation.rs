//! Finds the fields that a summary groups by and aggregates: 按城市汇总金额, `Region as rows and the sum of Amount`.

use serde_json::Value as Json;

use crate::lexer::series;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;

/// The words before the names, and those that end them.
struct Frame {
    before: &'static [&'static str],
    ends: &'static [&'static str],
}

const ENDS: [&str; 30] = [
    "，", "。", ",", ".", ";", "；", "?", "？", " with ", " in ", " on ", " from ", " as ", " by ", " at ",
    "分行", "分组", "分类", "汇总", "统计", "为行", "做行", "作为", "求", "进行", "做", "的", "来", "当",
    "排",
];
const BY: Frame = Frame {
    before: &[
        "按照",
        "按",
        "grouped by ",
        "group by ",
        "broken down by ",
        " by ",
        "rows: ",
        "行为",
        "行是",
        "行用",
    ],
    ends: &ENDS,
};
const OF: Frame = Frame {
    before: &[
        "sum of ",
        "total of ",
        "average of ",
        "mean of ",
        "count of ",
        "summing ",
        "averaging ",
        "sum up ",
        "values: ",
        "对",
        "汇总",
        "统计",
        "求和",
        "值为",
        "值是",
        "值用",
        "计算",
    ],
    ends: &ENDS,
};

/// The field names for a list of rows or of values.
pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let frame = if parameter.has_word(&["rows", "row", "group", "groups", "index"]) {
        BY
    } else if parameter.has_word(&["values", "value", "measures"]) {
        OF
    } else {
        return Vec::new();
    };
    let text = context.parsed.text;
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for word in frame.before {
        for (at, _) in lower.match_indices(word) {
            let start = at + word.len();
            let rest = &text[start..];
            let rest = &rest[rest.len() - rest.trim_start().len()..];
            let start = text.len() - rest.len();
            let end = frame.ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
            let names = rest[..end].trim();
            let names = names.strip_prefix("the ").unwrap_or(names);
            let short =
                !names.is_empty() && names.chars().count() <= 40 && names.split_whitespace().count() <= 5;
            // 按 城市 汇总 金额: a blank ends a Chinese name.
            let names = match names.chars().next().is_some_and(crate::lexer::token::is_han) {
                true if !names.contains(['、', '和']) => names.split_whitespace().next().unwrap_or(names),
                _ => names,
            };
            let listed: Vec<Json> = series::members(names).into_iter().map(Json::from).collect();
            if short && !listed.is_empty() {
                let value = ArgumentValue::FromRequest(Json::Array(listed));
                found.push(ValueCandidate { value, start, end: start + names.len(), score: GOOD + 1.0 });
            }
        }
    }
    found.extend(as_rows(parameter, context));
    found
}

/// `Region and Product as rows`: the capitalised words before it.
fn as_rows(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let lower = context.parsed.text.to_ascii_lowercase();
    let suffix = parameter.words.last().map(|word| format!(" as {word}"))?;
    let end = lower.find(&suffix)?;
    let head = context.parsed.text.get(..end)?;
    let mut start = end;
    for word in head.split(' ').rev() {
        let fits = word.starts_with(char::is_uppercase) || matches!(word, "and" | "&");
        if !fits {
            break;
        }
        start = start.saturating_sub(word.len() + 1);
    }
    let names = head.get(start..)?.trim();
    let listed: Vec<Json> = series::members(names).into_iter().map(Json::from).collect();
    let from = end - names.len();
    (!listed.is_empty()).then(|| ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(listed)),
        start: from,
        end,
        score: GOOD + 1.2,
    })
}
