//! Expands one sentence into several calls: `in Tokyo and in Berlin` becomes one call for each.

use crate::lexer::mention::ParsedText;
use crate::selection::choice::Choice;
use crate::values::candidate::{ArgumentValue, ValueCandidate};
use crate::values::parameter::ValueType;
use crate::values::role::Role;

/// Maximum number of calls from one sentence. `assemble` reports a longer series as a problem.
pub(crate) const MAX_SERIES_CALLS: usize = 1000;
/// Score by which another value may be below the chosen one and still belong to the series.
const MAX_SERIES_SCORE_GAP: f32 = 2.0;

/// All calls of a choice; the choice itself if it contains no series.
pub(crate) fn expand(choice: &Choice, parsed: &ParsedText<'_>) -> Vec<Choice> {
    let mut variants: Vec<(usize, Vec<ValueCandidate>)> = Vec::new();
    let mut loose: Vec<(usize, Vec<ValueCandidate>)> = Vec::new();
    for (index, parameter) in choice.parameters.iter().enumerate() {
        let Some(slot) = &choice.assignment.slots[index] else { continue };
        if matches!(parameter.shape, ValueType::List(_) | ValueType::Object(_) | ValueType::Boolean)
            || slot.end <= slot.start
        {
            continue;
        }
        let mut free: Vec<ValueCandidate> = Vec::new();
        for other in choice.assignment.others.get(index).into_iter().flatten() {
            let overlaps = |known: &ValueCandidate| known.start < other.end && other.start < known.end;
            if other.score + MAX_SERIES_SCORE_GAP >= slot.score
                && other.end > other.start
                && !choice.assignment.uses(other.start, other.end)
                && !free.iter().any(overlaps)
            {
                free.push(other.clone());
            }
        }
        free.push(slot.clone());
        free.sort_by_key(|candidate| candidate.start);
        let joined = chain(&free, slot, parsed);
        if joined.len() > 1 {
            variants.push((index, joined));
        } else if free.len() > 1
            && matches!(
                parameter.role,
                Role::Cell | Role::Formula | Role::Path | Role::Mail | Role::Url | Role::Range
            )
        {
            loose.push((index, free));
        }
    }
    // `merge A1:B2 with C1:D2` is not a series.
    let with = |values: &[ValueCandidate]| {
        values.windows(2).any(|pair| {
            let between = parsed.text.get(pair[0].end..pair[1].start).unwrap_or_default();
            between.split_whitespace().any(|word| word.eq_ignore_ascii_case("with"))
        })
    };
    if variants.is_empty()
        && !loose.iter().any(|(_, values)| with(values))
        && loose.len() > 1
        && loose.iter().all(|(_, values)| values.len() == loose[0].1.len())
    {
        variants = loose;
    }
    // `delete rows 3 and 9`: in descending order, because each call shifts the rows after it.
    let moves = crate::values::parameter::name_words(choice.tool.name().as_str())
        .iter()
        .any(|word| ["delete", "remove", "insert", "add"].contains(&word.as_str()));
    for (index, values) in &mut variants {
        let parameter = &choice.parameters[*index];
        if moves
            && parameter.shape == ValueType::Integer
            && parameter.has_word(&["row", "col", "column", "line", "index"])
        {
            values.sort_by_key(|value| std::cmp::Reverse(number(value)));
        }
    }
    let count = variants.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
    let pairs = variants.iter().all(|(_, values)| values.len() == count);
    if !pairs {
        variants.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
        variants.truncate(1);
    }
    (0..count)
        .map(|turn| {
            let mut call = choice.clone();
            for (index, values) in &variants {
                if let Some(value) = values.get(turn) {
                    call.assignment.slots[*index] = Some(value.clone());
                }
            }
            call
        })
        .collect()
}

fn number(value: &ValueCandidate) -> i64 {
    match &value.value {
        ArgumentValue::FromRequest(value) => value.as_i64().unwrap_or_default(),
        ArgumentValue::Result => 0,
    }
}

/// The values that form a series with the chosen one.
fn chain(values: &[ValueCandidate], chosen: &ValueCandidate, parsed: &ParsedText<'_>) -> Vec<ValueCandidate> {
    let at = values.iter().position(|value| value.start == chosen.start).unwrap_or(0);
    let joined = |first: &ValueCandidate, second: &ValueCandidate| {
        let between =
            parsed.tokens.iter().filter(|token| token.start >= first.end && token.end <= second.start);
        let mut conjunction = false;
        let mut others = 0;
        for token in between {
            if token.is_any(&["and", "or", "&", ",", "，", "、", "和", "与", "及", "跟"]) {
                conjunction = true;
            } else if !token.is_any(&[
                "in", "the", "for", "of", "at", "tab", "another", "a", "sheet", "sheets", "file", "表", "工",
                "作", "以", "还", "有", "in", "\"", "'", "“", "”", "‘", "’", "「", "」",
            ]) {
                others += 1;
            }
        }
        conjunction && others == 0
    };
    let (mut first, mut last) = (at, at);
    while first > 0 && joined(&values[first - 1], &values[first]) {
        first -= 1;
    }
    while last + 1 < values.len() && joined(&values[last], &values[last + 1]) {
        last += 1;
    }
    values[first..=last].to_vec()
}
