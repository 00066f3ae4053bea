//! Dates and times in the format that a parameter expects.

use jiff::civil::{Date, DateTime, Time};
use serde_json::Value as Json;

use crate::lexer::labels::LabelSpan;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::name::is_place;
use crate::values::candidate::{ArgumentValue, FAIR, GOOD, MatchContext, ValueCandidate};
use crate::values::countdown;
use crate::values::date::Moment;
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// Periods without one exact date. A parameter that prescribes no format takes them verbatim.
const PERIODS: [&str; 22] = [
    "this weekend",
    "next weekend",
    "last weekend",
    "next month",
    "this month",
    "last month",
    "next week",
    "this week",
    "last week",
    "next year",
    "this year",
    "last year",
    "下个月",
    "这个月",
    "上个月",
    "下周末",
    "这周末",
    "本周末",
    "下周",
    "本周",
    "上周",
    "明年",
];

fn periods(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let described = parameter.description.to_lowercase();
    if ["yyyy", "dd", "format", "iso", "格式"].iter().any(|form| described.contains(form)) {
        return Vec::new();
    }
    let lower = context.parsed.text.to_ascii_lowercase();
    let free = |start: usize, end: usize| {
        !context.parsed.mentions.iter().any(|mention| mention.start < end && start < mention.end)
    };
    let word_matches =
        PERIODS.iter().filter_map(|period| lower.find(period).map(|start| (start, start + period.len())));
    word_matches
        .filter(|(start, end)| free(*start, *end))
        .map(|(start, end)| ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(&context.parsed.text[start..end])),
            start,
            end,
            score: FAIR + 0.2,
        })
        .collect()
}

pub(crate) fn candidates(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let mut found = if parameter.role == Role::Time { Vec::new() } else { periods(parameter, context) };
    if shows_place(parameter) && countdown::is_beyond_clocks(context.parsed) {
        return Vec::new();
    }
    let counted = counted_until(parameter, context);
    if shows_place(parameter) {
        found.extend(named_days(context, counted));
    }
    for mention in &context.parsed.mentions {
        let MentionValue::Moment(moment) = mention.value else { continue };
        if counted == Some((mention.start, mention.end)) {
            continue;
        }
        let written = context.parsed.written(mention);
        let Some((mut text, base)) = text(parameter, moment, written) else { continue };
        let (mut start, mut end, mut base) = (mention.start, mention.end, base);
        if shows_place(parameter) {
            // The current time is the default: `today` needs no conversion.
            if matches!(moment, Moment::Date(_)) && is_today(written) {
                continue;
            }
            base = GOOD;
            text = written.to_owned();
            // `tomorrow in Tokyo at noon`: the day may be separate from the time.
            if matches!(moment, Moment::Time(_))
                && let Some(day) = only_day(context)
            {
                text = format!("{} {written}", context.parsed.written(day));
                (start, end) = (start.min(day.start), end.max(day.end));
                base += 0.5;
            }
            let written = text.clone();
            let clocked = !matches!(moment, Moment::Date(_)) || is_in_digits(&written);
            if let Some(place) = place_of(context, mention.start, mention.end)
                .or_else(|| only_day(context).and_then(|day| place_of(context, day.start, day.end)))
                .filter(|_| clocked)
            {
                text = format!("{written} {}", context.parsed.written(place));
                (start, end) = (start.min(place.start), end.max(place.end));
                base = GOOD + 1.0;
            }
        }
        let side = side(parameter, context.parsed.text, mention.start, mention.end);
        let score = base + side + context.labelled(label_spans, mention.start, mention.end);
        found.push(ValueCandidate { value: ArgumentValue::FromRequest(Json::from(text)), start, end, score });
    }
    found
}

/// `before 2026-02-01`, 2026-02-01 之前: the score that the words around a moment add or subtract for a parameter that is
/// the start or the end of a period.
fn side(parameter: &Parameter, text: &str, start: usize, end: usize) -> f32 {
    const EARLIER: [&str; 5] = ["before", "until", "prior to", "up to", "no later than"];
    const LATER: [&str; 5] = ["since", "after", "starting", "on or after", "as of"];
    let before = text.get(..start).unwrap_or_default().trim_end().to_lowercase();
    let after = text.get(end..).unwrap_or_default().trim_start();
    let ends = EARLIER.iter().any(|word| before.ends_with(word))
        || ["之前", "以前", "前的", "为止"].iter().any(|word| after.starts_with(word));
    let begins = LATER.iter().any(|word| before.ends_with(word))
        || ["之后", "以后", "以来", "起", "后的"].iter().any(|word| after.starts_with(word));
    let last = parameter.has_word(&["before", "until", "end", "to", "till"]);
    let first = parameter.has_word(&["since", "after", "start", "from"]);
    match (first, last) {
        (true, false) if ends => -GOOD,
        (false, true) if begins => -GOOD,
        (true, false) if begins => FAIR,
        (false, true) if ends => FAIR,
        _ => 0.0,
    }
}

/// The span of a countdown's target, which is not its starting point.
fn counted_until(parameter: &Parameter, context: &MatchContext<'_>) -> Option<countdown::Span> {
    shows_place(parameter).then(|| countdown::read(context.parsed))?.map(|found| found.until)
}

/// `what day is Christmas`: named days, for a clock tool.
fn named_days(context: &MatchContext<'_>, counted: Option<countdown::Span>) -> Vec<ValueCandidate> {
    let days = context.parsed.mentions.iter().filter(|mention| mention.value == MentionValue::Holiday);
    days.filter(|day| counted != Some((day.start, day.end)))
        .map(|day| {
            let value = ArgumentValue::FromRequest(Json::from(context.parsed.written(day)));
            ValueCandidate { value, start: day.start, end: day.end, score: GOOD }
        })
        .collect()
}

/// `until Christmas`, 距离国庆: the target of a countdown.
pub(crate) fn until(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let Some(found) = countdown::read(context.parsed) else { return Vec::new() };
    let (start, end) = found.until;
    let written = context.parsed.text.get(start..end).unwrap_or_default();
    let mention = context.parsed.mentions.iter().find(|mention| (mention.start, mention.end) == found.until);
    let yearless = !written.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() == 4);
    let text = match mention.map(|mention| &mention.value) {
        // In a question about the past, a date without a year that would lie in the future belongs to the previous year.
        Some(MentionValue::Moment(Moment::Date(day)))
            if found.is_past && yearless && is_in_digits(written) =>
        {
            let before = day.checked_sub(jiff::Span::new().years(1)).unwrap_or(*day);
            if *day > context.parsed.today { before.to_string() } else { day.to_string() }
        }
        _ => written.to_owned(),
    };
    vec![ValueCandidate {
        value: ArgumentValue::FromRequest(Json::from(text)),
        start,
        end,
        score: GOOD + 1.0,
    }]
}

/// Formats a moment as the schema prescribes; verbatim if the schema prescribes no format.
fn text(parameter: &Parameter, moment: Moment, written: &str) -> Option<(String, f32)> {
    let description = parameter.description.to_lowercase();
    let describes = |form: &str| description.contains(form);
    let date = |date: Date| {
        let (year, month, day) = (date.year(), date.month(), date.day());
        if describes("mm/dd/yyyy") {
            format!("{month:02}/{day:02}/{year}")
        } else if describes("dd/mm/yyyy") {
            format!("{day:02}/{month:02}/{year}")
        } else if describes("mm-dd-yyyy") || describes("month-day-year") {
            format!("{month:02}-{day:02}-{year}")
        } else if describes("yyyymmdd") {
            format!("{year}{month:02}{day:02}")
        } else if describes("yyyy/mm/dd") {
            format!("{year}/{month:02}/{day:02}")
        } else {
            date.to_string()
        }
    };
    let clock = |time: Time| {
        let (hour, minute) = (time.hour(), time.minute());
        if describes("hh:mm:ss") {
            format!("{hour:02}:{minute:02}:00")
        } else {
            format!("{hour:02}:{minute:02}")
        }
    };
    let formatted = |moment: DateTime| {
        if describes("yyyy-mm-dd hh:mm:ss") {
            format!("{} {}", moment.date(), clock(moment.time()))
        } else if describes("yyyy-mm-dd hh:mm") {
            format!("{} {:02}:{:02}", moment.date(), moment.hour(), moment.minute())
        } else {
            format!("{}T{:02}:{:02}:00", moment.date(), moment.hour(), moment.minute())
        }
    };
    Some(match (parameter.role, moment) {
        (Role::Date, Moment::Date(day)) => (date(day), GOOD),
        (Role::Date, Moment::DateTime(moment)) => (date(moment.date()), GOOD),
        (Role::Time, Moment::Time(time)) if describes("am/pm") || describes("am or pm") => {
            (format_time(time, written), GOOD)
        }
        (Role::Time, Moment::Time(time)) => (clock(time), GOOD),
        (Role::Time, Moment::DateTime(moment)) => (clock(moment.time()), GOOD),
        (Role::DateTime, Moment::DateTime(moment)) => (formatted(moment), GOOD + 0.3),
        // A date without a time is accepted if the schema's examples are dates.
        (Role::DateTime, Moment::Date(day)) if shows_day(parameter) => (date(day), GOOD),
        (Role::DateTime, Moment::Date(day)) => (date(day), FAIR),
        (Role::DateTime, Moment::Time(_)) => (written.to_owned(), FAIR),
        _ => return None,
    })
}

fn format_time(time: Time, written: &str) -> String {
    if written.to_lowercase().contains('m') {
        written.to_owned()
    } else {
        format!("{:02}:{:02}", time.hour(), time.minute())
    }
}

/// Whether an example is a date without a time.
fn shows_day(parameter: &Parameter) -> bool {
    parameter.examples.iter().any(|example| {
        let digits = example.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && example.len() == 10 && example.matches('-').count() == 2
    })
}

/// Whether an example has a place after its time: `15:00 New York`.
fn shows_place(parameter: &Parameter) -> bool {
    parameter.role == Role::DateTime
        && parameter.examples.iter().any(|example| {
            example.rsplit_once(|c: char| c.is_ascii_digit()).is_some_and(|(_, rest)| is_place(rest.trim()))
        })
}

/// The date of a text that mentions exactly one date.
fn only_day<'a>(context: &MatchContext<'a>) -> Option<&'a Mention> {
    let mut days = context
        .parsed
        .mentions
        .iter()
        .filter(|mention| matches!(mention.value, MentionValue::Moment(Moment::Date(_))));
    days.next().filter(|_| days.next().is_none())
}

/// Whether a date is written in digits and not relative to today.
pub(crate) fn is_in_digits(written: &str) -> bool {
    written.contains(|c: char| c.is_ascii_digit())
}

/// The place to whose time zone a time belongs.
fn place_of<'a>(context: &MatchContext<'a>, start: usize, end: usize) -> Option<&'a Mention> {
    context.parsed.mentions.iter().find(|mention| {
        let between = if mention.end <= start { mention.end..start } else { end..mention.start.max(end) };
        let between = context.parsed.text.get(between).unwrap_or_default().trim();
        mention.value == MentionValue::Place
            && matches!(between, "" | "in" | "的" | "时间" | "当地时间" | "time")
    })
}

/// Whether a date is today, which is an offset of zero.
pub(crate) fn is_today(written: &str) -> bool {
    ["today", "tonight", "今天", "今晚"].contains(&written.to_lowercase().as_str())
}
