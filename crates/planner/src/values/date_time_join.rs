//! Dates and times in separate places: `on 2026-05-12 from 14:00 to 15:30`, 下午2点到3点, `14:00 to 15:30 on May 12`.

use jiff::civil::{Date, Time};

use crate::lexer::mention::{Mention, MentionValue};
use crate::values::date::Moment;

/// Words between the start and the end of a period.
const UNTIL: [&str; 32] = [
    "to",
    "-",
    "–",
    "—",
    "~",
    "until",
    "till",
    "到",
    "至",
    "through",
    "ending at",
    "and ending at",
    ", ending at",
    "and ends at",
    ", ends at",
    ", end at",
    "and end at",
    "and finishing at",
    ", until",
    "开始，",
    "开始,",
    "开始到",
    "开始，到",
    "开始至",
    "开始，持续到",
    "开始、",
    "起，到",
    "开始 到",
    "开始",
    "起",
    "start,",
    "start, end",
];
/// Words between a date and a time on that date.
const AT: [&str; 21] = [
    "",
    "at",
    "from",
    ",",
    ", from",
    ", at",
    "between",
    "的",
    "，",
    "，从",
    "从",
    "在",
    ": ",
    "：",
    "(",
    "starting at",
    "starting",
    ", starting at",
    ", starting",
    ", beginning at",
    "beginning at",
];
/// Words between a time and its date.
const ON: [&str; 8] = ["on", "", ",", "of", ", on", "on the", "，", "("];

/// Combines times with the date before or after them.
pub(crate) fn join(text: &str, moments: &mut Vec<Mention>) {
    after_day(text, moments);
    before_day(text, moments);
    begin_of_end(text, moments);
    until(text, moments);
}

/// `14:00 to 15:30 on May 12`, if the end already has its date: the start gets the same date.
fn begin_of_end(text: &str, moments: &mut [Mention]) {
    for at in 1..moments.len() {
        let (first, second) = (&moments[at - 1], &moments[at]);
        let MentionValue::Moment(Moment::DateTime(end)) = second.value else { continue };
        let begin = time_of(first).filter(|_| is_any(&UNTIL, between(text, first, second)));
        if let Some(begin) = begin.filter(|begin| *begin < end.time()) {
            moments[at - 1].value = MentionValue::Moment(Moment::DateTime(end.date().to_datetime(begin)));
        }
    }
}

fn between<'a>(text: &'a str, first: &Mention, second: &Mention) -> &'a str {
    text.get(first.end..second.start).unwrap_or_default().trim()
}

fn is_any(words: &[&str], joint: &str) -> bool {
    words.iter().any(|word| word.trim().eq_ignore_ascii_case(joint))
}

fn day_of(mention: &Mention) -> Option<Date> {
    match mention.value {
        MentionValue::Moment(Moment::Date(day)) => Some(day),
        _ => None,
    }
}

fn time_of(mention: &Mention) -> Option<Time> {
    match mention.value {
        MentionValue::Moment(Moment::Time(time)) => Some(time),
        _ => None,
    }
}

/// `2026-05-12 from 14:00`: combines a date and the time after it.
fn after_day(text: &str, moments: &mut Vec<Mention>) {
    let mut at = 1;
    while at < moments.len() {
        let (first, second) = (&moments[at - 1], &moments[at]);
        let pair = day_of(first).zip(time_of(second)).filter(|_| is_any(&AT, between(text, first, second)));
        if let Some((day, time)) = pair {
            let (start, end) = (first.start, second.end);
            moments[at - 1] =
                Mention { value: MentionValue::Moment(Moment::DateTime(day.to_datetime(time))), start, end };
            moments.remove(at);
        } else {
            at += 1;
        }
    }
}

/// `14:00 to 15:30 on 2026-05-12`, `9:00 on Monday`: the date applies to the time before it, and to the start of a period that
/// ends at that time.
fn before_day(text: &str, moments: &mut Vec<Mention>) {
    let mut at = 1;
    while at < moments.len() {
        let (first, second) = (&moments[at - 1], &moments[at]);
        let pair = time_of(first).zip(day_of(second)).filter(|_| is_any(&ON, between(text, first, second)));
        let Some((time, day)) = pair else {
            at += 1;
            continue;
        };
        let (start, end) = (first.start, second.end);
        let begin = at.checked_sub(2).and_then(|index| {
            let begin = time_of(&moments[index])?;
            is_any(&UNTIL, between(text, &moments[index], &moments[at - 1])).then_some((index, begin))
        });
        if let Some((index, begin)) = begin {
            moments[index].value = MentionValue::Moment(Moment::DateTime(day.to_datetime(begin)));
        }
        moments[at - 1] =
            Mention { value: MentionValue::Moment(Moment::DateTime(day.to_datetime(time))), start, end };
        moments.remove(at);
    }
}

/// `2026-06-03 08:30-09:15`, 下午2点到3点: the end of a period gets the date of its start. 12 hours are added to an end before
/// noon that would otherwise not be after the start.
fn until(text: &str, moments: &mut [Mention]) {
    for at in 1..moments.len() {
        let (before, rest) = moments.split_at_mut(at);
        let (Some(first), Some(second)) = (before.last(), rest.first_mut()) else { continue };
        let (MentionValue::Moment(begin), MentionValue::Moment(Moment::Time(end))) =
            (&first.value, &second.value)
        else {
            continue;
        };
        let joint = between(text, first, second);
        if !is_any(&UNTIL, joint) && !is_any(&["and"], joint) {
            continue;
        }
        let begins = match begin {
            Moment::DateTime(moment) => moment.time(),
            Moment::Time(time) => *time,
            Moment::Date(_) => continue,
        };
        let later = jiff::Span::new().hours(12);
        let end = match *end {
            end if end <= begins && end.hour() < 12 => {
                end.checked_add(later).ok().filter(|end| *end > begins).unwrap_or(end)
            }
            end => end,
        };
        second.value = MentionValue::Moment(match begin {
            Moment::DateTime(moment) if end > begins => Moment::DateTime(moment.date().to_datetime(end)),
            _ => Moment::Time(end),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::mention::ParsedText;

    #[test]
    fn joins_date_with_its_times() {
        let check = |text: &str, expect: &[&str]| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let found: Vec<String> = parsed
                .mentions
                .iter()
                .filter_map(|mention| match mention.value {
                    MentionValue::Moment(Moment::DateTime(moment)) => Some(moment.to_string()),
                    MentionValue::Moment(Moment::Date(day)) => Some(day.to_string()),
                    MentionValue::Moment(Moment::Time(time)) => Some(time.to_string()),
                    _ => None,
                })
                .collect();
            assert_eq!(found, expect, "{text}");
        };
        let both = ["2026-05-12T14:00:00", "2026-05-12T15:30:00"];
        check("on 2026-05-12 from 14:00 to 15:30", &both);
        check("2026-05-12, 14:00-15:30", &both);
        check("from 14:00 to 15:30 on 2026-05-12", &both);
        check("2026-05-12 14:00 到 15:30", &both);
        check("2026年5月12日，从14:00到15:30", &both);
        check("from 2026-05-12 to 2026-05-15", &["2026-05-12", "2026-05-15"]);
    }
}
