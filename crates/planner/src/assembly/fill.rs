//! Assigns each parameter of a tool the value that fits best. Two parameters never share a text range.

use crate::assembly::assignment::Assignment;
use crate::lexer::labels;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::parameter_value::candidates;
use crate::values::role::Role;

/// Minimum score of a value for a required parameter; below it, the parameter is reported as missing.
const MIN_REQUIRED_SCORE: f32 = 0.9;
/// Minimum score of a value for an optional parameter.
const MIN_OPTIONAL_SCORE: f32 = GOOD;
/// Bonus of a required parameter that competes with an optional one.
const REQUIRED_BONUS: f32 = 0.7;

/// Maximum loss of score of a parameter that releases its value to another.
const MAX_SCORE_LOSS: f32 = 1.2;
/// Minimum gain of the total score for two parameters to exchange values.
const MIN_EXCHANGE_GAIN: f32 = 0.15;

/// Fills the parameters from a text.
pub(crate) fn fill(parameters: &[Parameter], context: &MatchContext<'_>) -> Assignment {
    let others: Vec<Vec<ValueCandidate>> =
        parameters.iter().map(|parameter| candidates(parameter, context)).collect();
    let mut order: Vec<(usize, &ValueCandidate, f32)> = Vec::new();
    for (index, (parameter, found)) in parameters.iter().zip(&others).enumerate() {
        let least = if parameter.required { MIN_REQUIRED_SCORE } else { MIN_OPTIONAL_SCORE };
        let bonus = if parameter.required { REQUIRED_BONUS } else { 0.0 };
        order.extend(
            found
                .iter()
                .filter(|candidate| candidate.score >= least)
                .map(|candidate| (index, candidate, candidate.score + bonus)),
        );
    }
    order.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)).then(a.1.start.cmp(&b.1.start)));
    let mut assignment = Assignment { slots: vec![None; parameters.len()], others: Vec::new() };
    for (index, candidate, _) in order {
        if assignment.slots[index].is_none() && !assignment.uses(candidate.start, candidate.end) {
            assignment.slots[index] = Some(candidate.clone());
        }
    }
    release_value(parameters, &mut assignment, &others);
    swap_values(parameters, &mut assignment, &others);
    assign_in_text_order(parameters, &mut assignment);
    numbered(parameters, &mut assignment);
    assign_labels_in_order(parameters, &mut assignment, context);
    from_before_to(parameters, &mut assignment, context);
    trim_query(parameters, &mut assignment, context);
    select_dependent_choice(parameters, &mut assignment, &others);
    crate::assembly::event_end::end(parameters, &mut assignment, context);
    assignment.others = others;
    assignment
}

/// Assigns values to indistinguishable parameters of one kind in the order of the request.
fn assign_in_text_order(parameters: &[Parameter], assignment: &mut Assignment) {
    let plain = |index: usize, assignment: &Assignment| {
        let parameter = &parameters[index];
        let kind =
            matches!(parameter.shape, ValueType::Integer | ValueType::Number) || parameter.role == Role::Cell;
        assignment.slots[index].as_ref().is_some_and(|slot| kind && slot.score < 1.2 && slot.end > slot.start)
    };
    for first in 0..parameters.len() {
        for second in first + 1..parameters.len() {
            if parameters[first].shape == parameters[second].shape
                && plain(first, assignment)
                && plain(second, assignment)
            {
                let start = |index: usize| assignment.slots[index].as_ref().map_or(0, |slot| slot.start);
                if start(first) > start(second) {
                    assignment.slots.swap(first, second);
                }
            }
        }
    }
}

/// Sorts numbered parameters: `color1` gets the value before that of `color2`, and likewise `first` and `second`.
fn numbered(parameters: &[Parameter], assignment: &mut Assignment) {
    let place_of = |word: &String| match word.as_str() {
        "first" | "one" => Some(1),
        "second" | "two" => Some(2),
        "third" => Some(3),
        digits => digits.parse::<u32>().ok(),
    };
    let split = |parameter: &Parameter| {
        let at = parameter.words.iter().position(|word| place_of(word).is_some())?;
        let mut words = parameter.words.clone();
        let index = place_of(&words.remove(at))?;
        Some((words, index))
    };
    for first in 0..parameters.len() {
        for second in 0..parameters.len() {
            let (Some((name, index)), Some((other, later))) =
                (split(&parameters[first]), split(&parameters[second]))
            else {
                continue;
            };
            let start = |at: usize| {
                assignment.slots[at].as_ref().filter(|slot| slot.end > slot.start).map(|slot| slot.start)
            };
            if name == other
                && index < later
                && parameters[first].shape == parameters[second].shape
                && start(first).zip(start(second)).is_some_and(|(first, second)| first > second)
            {
                assignment.slots.swap(first, second);
            }
        }
    }
}

const FROM_WORDS: [&str; 8] = ["old", "source", "from", "origin", "start", "src", "base", "current"];
const TO_WORDS: [&str; 8] = ["new", "target", "to", "destination", "end", "dest", "dst", "output"];

/// The value of a `from` parameter precedes that of its `to` parameter, unless the word `from` indicates otherwise.
fn from_before_to(parameters: &[Parameter], assignment: &mut Assignment, context: &MatchContext<'_>) {
    for from in 0..parameters.len() {
        for to in 0..parameters.len() {
            let (one, other) = (&parameters[from], &parameters[to]);
            let pair = one.has_word(&FROM_WORDS) && other.has_word(&TO_WORDS) && !one.has_word(&TO_WORDS);
            if !pair || one.shape != other.shape || one.role != other.role {
                continue;
            }
            let start = |index: usize| {
                assignment.slots[index].as_ref().filter(|slot| slot.end > slot.start).map(|slot| slot.start)
            };
            // `how many pesos for 500 dollars`: the currency after the number is the source.
            let measured = matches!(one.role, Role::Currency | Role::Unit);
            let counted =
                |index: usize| measured && start(index).is_some_and(|at| follows_number(context, at));
            if counted(from) != counted(to) {
                if counted(to) {
                    assignment.slots.swap(from, to);
                }
                continue;
            }
            if let (Some(first), Some(second)) = (start(from), start(to))
                && first > second
                && !follows_from(context, first)
            {
                assignment.slots.swap(from, to);
            }
        }
    }
}

fn follows_number(context: &MatchContext<'_>, start: usize) -> bool {
    let before = context.parsed.text.get(..start).unwrap_or_default().trim_end();
    before.ends_with(|c: char| c.is_ascii_digit())
}

fn follows_from(context: &MatchContext<'_>, start: usize) -> bool {
    let before = context.parsed.text.get(..start).unwrap_or_default().trim_end();
    ["from", "From", "从", "the old", "原来的"].iter().any(|word| before.ends_with(word))
}

/// Selects a listed value that, by its description, needs another parameter, if that parameter has a value.
fn select_dependent_choice(
    parameters: &[Parameter],
    assignment: &mut Assignment,
    others: &[Vec<ValueCandidate>],
) {
    for (index, parameter) in parameters.iter().enumerate() {
        if assignment.slots[index].is_some()
            || others[index].iter().any(|other| other.score >= MIN_OPTIONAL_SCORE)
        {
            continue;
        }
        for choice in parameter.choices.iter().filter_map(serde_json::Value::as_str) {
            let needs = parameters.iter().zip(&assignment.slots).any(|(other, slot)| {
                let phrases = [
                    format!("`{choice}` (needs `{}`)", other.name),
                    format!("`{choice}`（需要 `{}`）", other.name),
                ];
                slot.is_some()
                    && phrases.iter().any(|phrases| parameter.description.contains(phrases.as_str()))
            });
            if needs {
                let value = ArgumentValue::FromRequest(serde_json::Value::from(choice));
                assignment.slots[index] = Some(ValueCandidate { value, start: 0, end: 0, score: GOOD });
                break;
            }
        }
    }
}

/// `base and height as 6 and 10`: consecutive labels before their values get them in order.
fn assign_labels_in_order(parameters: &[Parameter], assignment: &mut Assignment, context: &MatchContext<'_>) {
    for first in 0..parameters.len() {
        for second in 0..parameters.len() {
            let (one, other) = (&parameters[first], &parameters[second]);
            if first == second
                || one.shape != other.shape
                || !matches!(one.shape, ValueType::Integer | ValueType::Number)
            {
                continue;
            }
            let span = |index: usize| {
                assignment.slots[index].as_ref().filter(|slot| slot.end > slot.start).map(|slot| slot.start)
            };
            let (Some(value), Some(next)) = (span(first), span(second)) else { continue };
            if value < next {
                continue;
            }
            let last_before = |parameter: &Parameter| {
                let label_spans = labels::find(&parameter.labels, context.parsed, &context.stems);
                label_spans
                    .into_iter()
                    .filter(|index| index.end <= next && index.strength >= 1.9)
                    .max_by_key(|index| index.start)
            };
            let (Some(label), Some(next_label)) = (last_before(one), last_before(other)) else { continue };
            let between = context.parsed.text.get(label.end..next_label.start).unwrap_or_default().trim();
            if matches!(between, "and" | "," | "和" | "、" | "与" | "and the" | ", and") {
                assignment.slots.swap(first, second);
            }
        }
    }
}

/// Removes from both ends of a query the text used by other parameters.
fn trim_query(parameters: &[Parameter], assignment: &mut Assignment, context: &MatchContext<'_>) {
    let Some(index) = parameters.iter().position(|parameter| parameter.role == Role::Query) else { return };
    let spans: Vec<(usize, usize)> = assignment
        .slots
        .iter()
        .flatten()
        .filter(|slot| slot.end > slot.start)
        .map(|slot| (slot.start, slot.end))
        .collect();
    let Some(slot) = assignment.slots[index].as_ref().filter(|slot| slot.start == slot.end) else { return };
    let ArgumentValue::FromRequest(serde_json::Value::String(query)) = &slot.value else { return };
    let (mut start, mut end) = (slot.start, slot.start + query.len());
    loop {
        let before = (start, end);
        let text = context.parsed.text.get(start..end).unwrap_or_default();
        start = end - text.trim_start().len();
        end = start + text.trim().len();
        for (from, to) in &spans {
            if *from <= start && start < *to && *to < end {
                start = *to;
            } else if *from > start && *from < end && *to >= end {
                end = *from;
            }
        }
        if end != before.1 {
            end = start + without_joint(context.parsed.text.get(start..end).unwrap_or_default()).len();
        }
        // `…, 8 results`: the noun after the number is removed with it.
        if let Some((_, to)) = spans.iter().find(|(from, to)| *from > start && *to < end) {
            let counted = context.parsed.text.get(*to..end).unwrap_or_default().trim();
            let counts = ["results", "result", "links", "pages", "hits", "条", "条结果", "个结果", "篇"]
                .contains(&counted);
            end = if counts { *to } else { end };
        }
        if (start, end) == before {
            break;
        }
    }
    // 量子计算最近一周的进展: a listed value in the middle is removed from the query.
    let listed =
        parameters.iter().zip(&assignment.slots).filter(|(parameter, _)| !parameter.choices.is_empty());
    let middle = listed
        .filter_map(|(_, slot)| slot.as_ref())
        .map(|slot| (slot.start, slot.end))
        .find(|(from, to)| *from > start && *to < end && from < to);
    if let Some((from, to)) = middle
        && crate::lexer::name::has_han(context.parsed.text.get(from..to).unwrap_or_default())
    {
        let surrounding = [context.parsed.text.get(start..from), context.parsed.text.get(to..end)];
        let text = surrounding.map(Option::unwrap_or_default).concat();
        if let Some(slot) = assignment.slots[index].as_mut() {
            slot.value = ArgumentValue::FromRequest(serde_json::Value::from(text.trim()));
        }
        return;
    }
    // An optional query is dropped if another parameter uses exactly its text.
    if spans.contains(&(start, end)) && !parameters[index].required {
        assignment.slots[index] = None;
        return;
    }
    let Some(slot) = assignment.slots[index].as_mut() else { return };
    if let Some(text) = context.parsed.text.get(start..end).filter(|text| !text.trim().is_empty()) {
        let text = crate::values::phrase::without_searching(text.trim());
        let trimmed = text.trim_matches(|c: char| "“”\"「」".contains(c)).trim();
        let text = if trimmed.contains(['“', '”', '"']) || trimmed.is_empty() { text } else { trimmed };
        slot.value = ArgumentValue::FromRequest(serde_json::Value::from(text));
    }
}

/// A text without trailing words that led to the removed part.
fn without_joint(text: &str) -> &str {
    let mut text = text.trim_end();
    loop {
        let before = text;
        text = text.trim_end_matches([',', '，', '、', ';', '；', '(', '（']).trim_end();
        for word in [
            "from",
            "in",
            "the",
            "of",
            "for",
            "within",
            "during",
            "published",
            "since",
            "over",
            "with",
            "and",
            "give me",
            "show me",
            "only",
        ] {
            let shorter = text.strip_suffix(word).filter(|rest| rest.ends_with([' ', ',']));
            text = shorter.unwrap_or(text).trim_end();
        }
        if text == before {
            return text;
        }
    }
}

/// Lets two parameters exchange values if that raises the total score: one takes the other's value, and the other takes
/// another candidate.
fn swap_values(parameters: &[Parameter], assignment: &mut Assignment, others: &[Vec<ValueCandidate>]) {
    let least =
        |index: usize| if parameters[index].required { MIN_REQUIRED_SCORE } else { MIN_OPTIONAL_SCORE };
    let overlap =
        |one: &ValueCandidate, other: &ValueCandidate| one.start < other.end && other.start < one.end;
    for claimant in 0..parameters.len() {
        for holder in 0..parameters.len() {
            let Some(holder_value) = assignment.slots[holder]
                .clone()
                .filter(|holder_value| claimant != holder && holder_value.end > holder_value.start)
            else {
                continue;
            };
            let own = assignment.slots[claimant].clone();
            let mut without = assignment.clone();
            without.slots[claimant] = None;
            without.slots[holder] = None;
            let free = |candidate: &&ValueCandidate| !without.uses(candidate.start, candidate.end);
            let required = others[claimant].iter().filter(free).find(|candidate| {
                candidate.score >= least(claimant)
                    && candidate.end > candidate.start
                    && overlap(candidate, &holder_value)
            });
            let Some(required) = required else { continue };
            let instead = others[holder].iter().filter(free).find(|candidate| {
                candidate.score >= least(holder)
                    && candidate.end > candidate.start
                    && !overlap(candidate, required)
            });
            let Some(instead) = instead else { continue };
            let before = holder_value.score + own.as_ref().map_or(0.0, |own| own.score);
            if required.score + instead.score > before + MIN_EXCHANGE_GAIN
                && instead.score + MAX_SCORE_LOSS >= holder_value.score
            {
                let (required, instead) = (required.clone(), instead.clone());
                assignment.slots[claimant] = Some(required);
                assignment.slots[holder] = Some(instead);
            }
        }
    }
}

/// Gives a required parameter without a value the value of another parameter, if that one is optional or has an
/// alternative.
fn release_value(parameters: &[Parameter], assignment: &mut Assignment, others: &[Vec<ValueCandidate>]) {
    let missing: Vec<usize> = assignment.missing(parameters).collect();
    for index in missing {
        for required in others[index].iter().filter(|candidate| candidate.score >= MIN_REQUIRED_SCORE) {
            let holders: Vec<usize> = (0..parameters.len())
                .filter(|other| {
                    assignment.slots[*other]
                        .as_ref()
                        .is_some_and(|slot| slot.start < required.end && required.start < slot.end)
                })
                .collect();
            let [holder] = holders.as_slice() else { continue };
            let holder_value = assignment.slots[*holder].take();
            let least = if parameters[*holder].required { MIN_REQUIRED_SCORE } else { MIN_OPTIONAL_SCORE };
            let free = |candidate: &&ValueCandidate| {
                candidate.score >= least
                    && !assignment.uses(candidate.start, candidate.end)
                    && !(candidate.start < required.end && required.start < candidate.end)
            };
            let worth = holder_value.as_ref().map_or(0.0, |holder_value| holder_value.score);
            let instead = others[*holder]
                .iter()
                .find(free)
                .filter(|other| other.score + MAX_SCORE_LOSS >= worth)
                .cloned();
            if instead.is_some() || !parameters[*holder].required {
                assignment.slots[*holder] = instead;
                assignment.slots[index] = Some(required.clone());
                break;
            }
            assignment.slots[*holder] = holder_value;
        }
    }
}
