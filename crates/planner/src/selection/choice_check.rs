//! Checks of a choice's arguments that count for or against it.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::selection::choice::Choice;
use crate::selection::verb_class;
use crate::values::candidate::{ArgumentValue, GOOD, ValueCandidate};
use crate::values::parameter::ValueType;
use crate::values::role::Role;

/// Minimum score of a record all of whose members are given.
const MIN_RECORD_SCORE: f32 = 3.0;

/// Whether the only required parameter of a read-only tool is a list, and it got one item.
pub(crate) fn is_list_of_one(choice: &Choice) -> bool {
    let mut required =
        choice.parameters.iter().zip(&choice.assignment.slots).filter(|(parameter, _)| parameter.required);
    let one = required.next().is_some_and(|(parameter, slot)| {
        matches!(parameter.shape, ValueType::List(_))
            && matches!(slot.as_ref().map(|slot| &slot.value), Some(ArgumentValue::FromRequest(serde_json::Value::Array(all))) if all.len() == 1)
    });
    one && required.next().is_none() && verb_class::is_read_only(choice)
}

/// Whether the only required parameter is a list of records whose members were all found by their roles.
pub(crate) fn is_record(choice: &Choice) -> bool {
    let mut required =
        choice.parameters.iter().zip(&choice.assignment.slots).filter(|(parameter, _)| parameter.required);
    let first = required.next().is_some_and(|(_, slot)| {
        slot.as_ref().is_some_and(|slot| match &slot.value {
            ArgumentValue::FromRequest(serde_json::Value::Array(all)) => {
                slot.score >= MIN_RECORD_SCORE && all.first().is_some_and(serde_json::Value::is_object)
            }
            _ => false,
        })
    });
    first && required.next().is_none()
}

/// Whether a tool has a time zone parameter without a value.
pub(crate) fn lacks_zone(choice: &Choice) -> bool {
    let mut slots = choice.parameters.iter().zip(&choice.assignment.slots);
    slots.any(|(parameter, slot)| parameter.role == Role::Zone && slot.is_none())
}

/// Whether a text refers to cells that the call would not touch.
pub(crate) fn mentions_other_cells(choice: &Choice, parsed: &ParsedText<'_>) -> bool {
    let argument: Vec<String> = choice
        .assignment
        .slots
        .iter()
        .flatten()
        .map(|slot| match &slot.value {
            ArgumentValue::FromRequest(value) => value.to_string(),
            ArgumentValue::Result => String::new(),
        })
        .collect();
    let cells = parsed.mentions.iter().filter_map(|mention| match &mention.value {
        MentionValue::Literal(Literal::Cells(cells)) => Some(cells.split(':').next().unwrap_or_default()),
        _ => None,
    });
    let mut pointed = cells.peekable();
    let letters = |cell: &str| cell.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    // The cells may stand for a column or a row: `B1:B9` for column B.
    let whole = choice.parameters.iter().any(|parameter| {
        parameter.has_word(&["row", "col", "column"]) || matches!(parameter.shape, ValueType::List(_))
    });
    pointed.peek().is_some()
        && !whole
        && pointed.all(|cell| {
            !argument.iter().any(|argument| {
                argument.contains(cell) || argument.contains(&letters(cell)) && letters(cell).len() > 1
            })
        })
}

/// `free on 2026-08-03`: for a read-only tool, a single day is both the first and the last.
pub(crate) fn set_single_day(choice: &mut Choice) {
    let missing: Vec<usize> = choice.assignment.missing(&choice.parameters).collect();
    let [index] = missing.as_slice() else { return };
    let end_parameter = &choice.parameters[*index];
    if !end_parameter.has_word(&["to", "until", "end"]) {
        return;
    }
    let first = choice.parameters.iter().zip(&choice.assignment.slots).find(|(parameter, slot)| {
        parameter.role == end_parameter.role
            && parameter.has_word(&["from", "since", "start"])
            && slot.is_some()
    });
    let day = first.and_then(|(_, slot)| slot.clone()).filter(|slot| {
        let is_day = |text: &str| text.len() == 10 && text.as_bytes()[4] == b'-';
        matches!(&slot.value, ArgumentValue::FromRequest(value) if value.as_str().is_some_and(is_day))
    });
    if let Some(day) = day {
        choice.assignment.slots[*index] = Some(ValueCandidate { start: 0, end: 0, ..day });
    }
}

/// `which branches are there?`: for a read-only tool, an `enum` parameter without a value is set to `all`, if that is listed.
pub(crate) fn set_all(choice: &mut Choice, text: &str) {
    // Another restriction must be explicit: `branches that contain X`.
    let bounded = choice
        .parameters
        .iter()
        .zip(&choice.assignment.slots)
        .any(|(parameter, slot)| !parameter.required && slot.is_some());
    if bounded && !["contain", "包含", "含有", "带有", "里有"].iter().any(|word| text.contains(word))
    {
        return;
    }
    let lower = text.to_lowercase();
    let question_words =
        ["branches", "which", "what", "list", "哪些", "列", "有什么", "几个", "所有", "全部"];
    if !question_words.iter().any(|word| lower.contains(word)) {
        return;
    }
    let missing: Vec<usize> = choice.assignment.missing(&choice.parameters).collect();
    for index in missing {
        let all = choice.parameters[index].choices.iter().find(|value| value.as_str() == Some("all"));
        if let Some(all) = all {
            let value = ArgumentValue::FromRequest(all.clone());
            choice.assignment.slots[index] = Some(ValueCandidate { value, start: 0, end: 0, score: GOOD });
        }
    }
}
