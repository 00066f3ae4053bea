//! Finds the cell references for a parameter.

use serde_json::Value as Json;

use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::number;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;

/// The corners of a range, for parameters that take one corner each: `B1:B10`, `C2 到 C5`.
pub(crate) fn corners(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let first = parameter.has_word(&["start", "begin", "first", "from"]);
    let last = parameter.has_word(&["end", "last", "to", "stop"]);
    let mentions = &context.parsed.mentions;
    let mut found = Vec::new();
    for (at, mention) in mentions.iter().enumerate() {
        let MentionValue::Literal(Literal::Cells(cells)) = &mention.value else { continue };
        if let Some((start, end)) = cells.split_once(':') {
            // Each corner has its own range, so that one cell range can fill both parameters.
            let middle = mention.start + start.len();
            if first {
                let value = ArgumentValue::FromRequest(Json::from(start));
                found.push(ValueCandidate { value, start: mention.start, end: middle, score: GOOD + 0.8 });
            } else if last {
                let value = ArgumentValue::FromRequest(Json::from(end));
                found.push(ValueCandidate { value, start: middle, end: mention.end, score: GOOD + 0.8 });
            }
            continue;
        }
        let joint = |one: usize, other: usize| {
            let between = mentions
                .get(one)
                .zip(mentions.get(other))
                .and_then(|(a, b)| context.parsed.text.get(a.end..b.start));
            between.is_some_and(|text| {
                ["to", "through", "thru", "till", "until", "-", "–", "到", "至", "~", "and"]
                    .contains(&text.trim())
            })
        };
        let is_cell = |index: usize| {
            matches!(
                mentions.get(index),
                Some(Mention { value: MentionValue::Literal(Literal::Cells(_)), .. })
            )
        };
        let value = ArgumentValue::FromRequest(Json::from(cells.clone()));
        let ends = last && at > 0 && is_cell(at - 1) && joint(at - 1, at);
        let starts = first && is_cell(at + 1) && joint(at, at + 1);
        if ends || starts {
            found.push(ValueCandidate { value, start: mention.start, end: mention.end, score: GOOD + 1.0 });
        } else if last {
            // A single cell is the start of a range, not its end.
            found.push(ValueCandidate { value, start: mention.start, end: mention.end, score: -1.0 });
        }
    }
    found
}

/// The number of cells of a range that is a single row or a single column.
pub(crate) fn cells_of(range: &str) -> Option<usize> {
    let (first, last) = range.split_once(':')?;
    let column = |cell: &str| {
        let letters = cell.bytes().take_while(u8::is_ascii_uppercase);
        letters.fold(0usize, |column, letter| column * 26 + usize::from(letter - b'A') + 1)
    };
    let row = |cell: &str| cell.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse::<usize>().ok();
    let across = column(last).checked_sub(column(first))? + 1;
    let down = row(last)?.checked_sub(row(first)?)? + 1;
    (across == 1 || down == 1).then_some(across * down)
}

pub(crate) fn cell(text: &str) -> Json {
    // `007` stays a string: the leading zero is significant.
    let padded = text.len() > 1 && text.starts_with('0') && !text.starts_with("0.");
    if padded {
        return Json::from(text);
    }
    text.parse::<f64>().ok().and_then(number::json).unwrap_or_else(|| Json::from(text))
}
