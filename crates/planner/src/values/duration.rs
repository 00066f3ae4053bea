//! Reads durations in a request: `for 15 minutes`, `a 90-minute call`, `half an hour`, 一个半小时.

use crate::lexer::mention::ParsedText;
use crate::lexer::token::{Token, TokenKind};
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};

/// A duration and its byte range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Duration {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) minutes: f64,
}

const HOURS: [&str; 5] = ["hour", "hours", "hr", "hrs", "h"];
const MINUTES: [&str; 4] = ["minute", "minutes", "min", "mins"];
const WORDS: [(&str, f64); 17] = [
    ("half", 0.5),
    ("a", 1.0),
    ("an", 1.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("ten", 10.0),
    ("fifteen", 15.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fortyfive", 45.0),
    ("forty-five", 45.0),
    ("ninety", 90.0),
];

/// The only duration in a text; `None` if there are several.
pub(crate) fn only(parsed: &ParsedText<'_>) -> Option<Duration> {
    let found = find(parsed);
    match found.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn find(parsed: &ParsedText<'_>) -> Vec<Duration> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < parsed.tokens.len() {
        match english(parsed, at).or_else(|| chinese(parsed, at)) {
            Some((duration, after)) => {
                found.push(duration);
                at = after;
            }
            None => at += 1,
        }
    }
    found
}

fn english(parsed: &ParsedText<'_>, at: usize) -> Option<(Duration, usize)> {
    let tokens = &parsed.tokens;
    let token = |at: usize| tokens.get(at);
    let is = |at: usize, words: &[&str]| token(at).is_some_and(|token| token.is_any(words));
    let first = token(at)?;
    // `half an hour`
    if first.is_word("half") && is(at + 1, &["an", "a"]) && is(at + 2, &["hour"]) {
        return Some((Duration { start: first.start, end: tokens[at + 2].end, minutes: 30.0 }, at + 3));
    }
    // `two-hour`: number word and unit are one token.
    if let Some((word, unit)) = first.text.to_lowercase().split_once('-')
        && let Some((_, value)) = WORDS.iter().find(|(known, _)| *known == word)
    {
        let factor = match unit.trim_end_matches("-long") {
            unit if HOURS.contains(&unit) => 60.0,
            unit if MINUTES.contains(&unit) => 1.0,
            _ => return None,
        };
        return Some((Duration { start: first.start, end: first.end, minutes: value * factor }, at + 1));
    }
    let number = number(first)?;
    let mut next = at + 1;
    // `1.5-hour`, `two and a half hours`
    let mut value = number;
    if is(next, &["-"]) {
        next += 1;
    } else if is(next, &["and"]) && is(next + 1, &["a"]) && is(next + 2, &["half"]) {
        value += 0.5;
        next += 3;
    } else if is(next, &["half"]) && first.is_any(&["a", "one"]) && is(next + 1, &["hour"]) {
        value = 0.5;
        next += 1;
    }
    let unit = token(next)?;
    let unit_text = unit.text.to_lowercase();
    let unit_text = unit_text.trim_end_matches("-long");
    let factor = match unit_text {
        text if HOURS.contains(&text) => 60.0,
        text if MINUTES.contains(&text) => 1.0,
        _ => return None,
    };
    if unit_text == "h" && first.kind != TokenKind::Number {
        return None;
    }
    let mut end = next + 1;
    let mut minutes = value * factor;
    // `an hour and a half`, `1 hour 30 minutes`
    if factor > 1.0 && is(end, &["and"]) && is(end + 1, &["a"]) && is(end + 2, &["half"]) {
        minutes += 30.0;
        end += 3;
    } else if factor > 1.0 {
        let from = if is(end, &["and"]) { end + 1 } else { end };
        if let Some((more, after)) =
            token(from).filter(|token| token.kind == TokenKind::Number).and_then(|more| {
                is(from + 1, &MINUTES).then(|| number_of(more)).flatten().map(|more| (more, from + 2))
            })
        {
            minutes += more;
            end = after;
        }
    }
    Some((Duration { start: first.start, end: tokens[end - 1].end, minutes }, end))
}

fn number(token: &Token<'_>) -> Option<f64> {
    number_of(token).or_else(|| WORDS.iter().find(|(word, _)| token.is_word(word)).map(|(_, value)| *value))
}

fn number_of(token: &Token<'_>) -> Option<f64> {
    (token.kind == TokenKind::Number).then(|| token.text.parse().ok()).flatten()
}

/// 45 分钟, 半小时, 一个半小时, 两个小时, 1 小时 30 分
fn chinese(parsed: &ParsedText<'_>, at: usize) -> Option<(Duration, usize)> {
    const DIGITS: &str = "零一二三四五六七八九";
    let start = parsed.tokens.get(at)?.start;
    let rest = parsed.text.get(start..)?;
    let before = parsed.text.get(..start)?.chars().next_back();
    if before.is_some_and(|c| "零一二三四五六七八九十两半个几".contains(c) || c.is_ascii_digit())
    {
        return None;
    }
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (mut value, mut text) = if digits > 0 {
        (rest[..digits].parse::<f64>().ok()?, rest[digits..].trim_start())
    } else {
        let mut value = 0.0;
        let mut text = rest;
        while let Some(c) = text.chars().next() {
            match c {
                '十' => value = if value == 0.0 { 10.0 } else { value * 10.0 },
                '两' => value += 2.0,
                _ => match DIGITS.chars().position(|digit| digit == c) {
                    Some(digit) => value += digit as f64,
                    None => break,
                },
            }
            text = &text[c.len_utf8()..];
        }
        (value, text)
    };
    let spelled = text.len() < rest.len();
    let plain = text.strip_prefix('个').unwrap_or(text);
    let text_after_half = plain.strip_prefix('半').map(|text| text.strip_prefix('个').unwrap_or(text));
    let half = text_after_half.is_some_and(|text| text.starts_with("小时") || text.starts_with("钟头"));
    if half {
        value += 0.5;
        text = text_after_half?;
    } else if spelled {
        text = plain;
    } else {
        return None;
    }
    let (factor, unit) = [("小时", 60.0), ("钟头", 60.0), ("分钟", 1.0), ("刻钟", 15.0)]
        .iter()
        .find_map(|(unit, factor)| text.strip_prefix(unit).map(|rest| (*factor, rest)))?;
    let mut minutes = value * factor;
    let mut remaining = unit;
    // 1 小时 30 分(钟)
    if factor > 1.0 && factor < 61.0 {
        let more = remaining.trim_start();
        let digits = more.find(|c: char| !c.is_ascii_digit()).unwrap_or(more.len());
        let after = more[digits..].trim_start();
        if digits > 0
            && let Some(rest) = after.strip_prefix("分钟").or_else(|| after.strip_prefix('分'))
        {
            minutes += more[..digits].parse::<f64>().ok()?;
            remaining = rest;
        }
    }
    let end = parsed.text.len() - remaining.len();
    (minutes > 0.0).then(|| (Duration { start, end, minutes }, parsed.token_at(end)))
}

/// The duration as the value of a parameter, in the parameter's unit.
pub(crate) fn candidate(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let unit = parameter.words.last().and_then(|word| crate::lexer::units::of(word))?;
    let minutes = only(context.parsed)?;
    let value = match unit.name() {
        "minute" => minutes.minutes,
        "hour" => minutes.minutes / 60.0,
        "second" => minutes.minutes * 60.0,
        _ => return None,
    };
    let is_integral = value.fract() == 0.0 || parameter.shape != ValueType::Integer;
    let value = crate::lexer::number::json(value).filter(|_| is_integral)?;
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(value),
        start: minutes.start,
        end: minutes.end,
        score: GOOD + 1.2,
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn parses_durations() {
        let check = |text: &str, expect: Option<f64>| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            assert_eq!(only(&parsed).map(|found| found.minutes), expect, "{text}");
        };
        check("a 90-minute event", Some(90.0));
        check("a two-hour event", Some(120.0));
        check("a half-hour event", Some(30.0));
        check("at 9:15 for 15 minutes", Some(15.0));
        check("free for an hour", Some(60.0));
        check("for half an hour", Some(30.0));
        check("for an hour and a half", Some(90.0));
        check("for 1 hour 30 minutes", Some(90.0));
        check("要一个半小时", Some(90.0));
        check("开 45 分钟", Some(45.0));
        check("半小时的会", Some(30.0));
        check("两个小时", Some(120.0));
        check("at 9:15", None);
        check("第 3 分会场", None);
    }
}
