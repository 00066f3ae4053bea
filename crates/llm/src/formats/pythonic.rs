//! Calls in Python syntax: `[get_weather(city="Kyoto"), get_time()]`, alone, in a list, or one per line.

use toolhub_core::RawJson;

use super::known_tools::KnownTools;
use super::parsed_call::{Group, Name, ParsedCall, positional};
use crate::repair::{Arguments, Ending, Repair, Repairs, SourceText};

/// Returns the name at `at` and the offset after it.
pub(super) fn name_at<'t>(source: &SourceText<'t>, at: usize) -> Option<(&'t str, usize)> {
    let mut end = at;
    while let Some(character) = source.char_at(end) {
        let inside = character.is_alphanumeric() || matches!(character, '_' | '.' | '-' | '/' | '\\' | ':');
        if !inside || end - at > 160 {
            break;
        }
        end += character.len_utf8();
    }
    let name = source.slice(at, end);
    let trimmed = name.trim_end_matches([':', '.', '-']);
    let begins = trimmed.starts_with(|first: char| first.is_alphabetic() || first == '_');
    begins.then(|| (trimmed, at + trimmed.len()))
}

/// Parses one call at `at`.
pub(super) fn call_at(source: &SourceText<'_>, at: usize, known: &KnownTools) -> Option<(ParsedCall, usize)> {
    let (raw_name, open) = name_at(source, at)?;
    if source.char_at(open) != Some('(') {
        return None;
    }
    let read = Arguments::read(source, open)?;
    let name = Name::read(raw_name, known)?;
    if read.placeholder {
        return None;
    }
    let mut repairs = read.repairs;
    let arguments = match (read.positional.as_slice(), read.count) {
        ([], _) => RawJson::parse(read.named).ok()?,
        // `f({"city": "Kyoto"})`
        ([one], 0) if one.starts_with('{') => RawJson::parse(one.clone()).ok()?,
        (values, count) => {
            let named = (count > 0).then_some(read.named.as_str());
            positional_and_named(values, named, &name, &mut repairs)?
        }
    };
    let mut call = ParsedCall::new(name, arguments);
    call.repairs.join(repairs);
    call.ending = read.ending;
    Some((call, read.end))
}

/// Positional arguments before named ones, which are the text of a JSON object.
fn positional_and_named(
    values: &[String],
    named: Option<&str>,
    name: &Name<'_>,
    repairs: &mut Repairs,
) -> Option<RawJson> {
    let values: Vec<RawJson> =
        values.iter().map(|value| RawJson::parse(value.clone()).ok()).collect::<Option<_>>()?;
    let first = positional(&values, name, repairs)?;
    let Some(named) = named else { return Some(first) };
    let mut members = first.object()?;
    for (key, value) in RawJson::parse(named).ok()?.object()?.iter() {
        if members.contains(key) {
            return None;
        }
        members.set(key.to_owned(), value.clone());
    }
    Some(members.into_raw())
}

/// Parses a list of calls whose bracket is at `at`. Accepts a missing closing bracket, and unmatched quotes or braces
/// around calls.
pub(super) fn list_at(source: &SourceText<'_>, at: usize, known: &KnownTools) -> Option<Group> {
    if source.char_at(at) != Some('[') {
        return None;
    }
    let mut calls: Vec<ParsedCall> = Vec::new();
    let mut next = source.skip_space(at + 1);
    loop {
        let begin = skip_marks(source, next, &['{', '\'', '"']);
        let (mut call, end) = call_at(source, begin, known)?;
        let mut after = source.skip_space(end);
        let behind = skip_marks(source, after, &['}', '\'', '"']);
        if begin > next || behind > after {
            call.repairs.add(Repair::Quotes);
        }
        after = source.skip_space(behind);
        calls.push(call);
        let comma = source.char_at(after) == Some(',');
        next = if comma { source.skip_space(after + 1) } else { after };
        match source.char_at(next) {
            Some(']') => return Some(Group { calls, end: next + 1 }),
            None => {
                let last = calls.last_mut()?;
                last.repairs.add(Repair::Unclosed);
                return Some(Group { calls, end: source.len() });
            }
            Some(_) if comma => {}
            Some(_) => {
                let last = calls.last_mut()?;
                last.repairs.add(Repair::MissingComma);
            }
        }
    }
}

/// Skips those of `marks` that occur at `at`, each at most once.
fn skip_marks(source: &SourceText<'_>, mut at: usize, marks: &[char]) -> usize {
    let mut left = marks.to_vec();
    while let Some(index) =
        source.char_at(at).and_then(|character| left.iter().position(|mark| *mark == character))
    {
        left.remove(index);
        at += 1;
    }
    at
}

/// Parses consecutive calls separated by `;`, `,` or line breaks.
pub(super) fn all_calls(source: &SourceText<'_>, at: usize, known: &KnownTools) -> Option<Group> {
    let (first, mut end) = call_at(source, at, known)?;
    let mut calls = vec![first];
    loop {
        let mut next = source.skip_space(end);
        while matches!(source.char_at(next), Some(';' | ',')) {
            next = source.skip_space(next + 1);
        }
        let between = source.slice(end, next);
        let is_complete = calls.last().is_some_and(|call| call.ending == Ending::Whole);
        if is_complete
            && between.contains([';', ',', '\n'])
            && let Some((call, after)) = call_at(source, next, known)
        {
            calls.push(call);
            end = after;
            continue;
        }
        // A semicolon after the last call belongs to it.
        let closes = between.contains(';') && source.char_at(next).is_none();
        return Some(Group { calls, end: if closes { next } else { end } });
    }
}
