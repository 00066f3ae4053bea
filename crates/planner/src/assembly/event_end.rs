//! The end of an event, from its start and its duration.

use jiff::civil::DateTime;
use serde_json::Value as Json;

use crate::assembly::assignment::Assignment;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::duration::only;
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// Computes the end of an event from its start and its duration.
pub(crate) fn end(parameters: &[Parameter], assignment: &mut Assignment, context: &MatchContext<'_>) {
    let has =
        |parameter: &Parameter, words: &[&str]| parameter.role == Role::DateTime && parameter.has_word(words);
    let index_of = |words: &[&str]| parameters.iter().position(|parameter| has(parameter, words));
    let (Some(start), Some(end)) = (index_of(&["start", "begin"]), index_of(&["end", "finish"])) else {
        return;
    };
    let counted = parameters.iter().any(|parameter| parameter.has_word(&["duration", "minutes", "length"]));
    let Some(length) = only(context.parsed).filter(|_| !counted) else { return };
    let end_text = assignment.slots[end].as_ref().and_then(slot_text);
    if end_text.is_some_and(|end_text| end_text.contains('T')) {
        return;
    }
    let Some(begin) = assignment.slots[start].as_ref().and_then(slot_text) else { return };
    let Ok(begin) = begin.parse::<DateTime>() else { return };
    let span = jiff::Span::new().seconds((length.minutes * 60.0) as i64);
    let Ok(finish) = begin.checked_add(span) else { return };
    let text = format!("{}T{:02}:{:02}:00", finish.date(), finish.hour(), finish.minute());
    let value = ArgumentValue::FromRequest(Json::from(text));
    assignment.slots[end] =
        Some(ValueCandidate { value, start: length.start, end: length.end, score: GOOD + 0.5 });
}

fn slot_text(slot: &ValueCandidate) -> Option<&str> {
    match &slot.value {
        ArgumentValue::FromRequest(value) => value.as_str().filter(|text| text.contains('T')),
        ArgumentValue::Result => None,
    }
}
