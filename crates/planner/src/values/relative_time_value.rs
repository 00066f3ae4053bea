//! Relative times: `in 100 days`, `3 hours ago`, `a week from today`, 三天后, 再过 45 天.

use serde_json::Value as Json;

use crate::lexer::labels::LabelSpan;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::token::TokenKind;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::countdown;
use crate::values::date::Moment;
use crate::values::date_time_value::{is_in_digits, is_today};

const SPANS: [&str; 24] = [
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "秒",
    "分钟",
    "小时",
    "个小时",
    "天",
    "周",
    "星期",
    "个月",
    "年",
    "个星期",
];

/// `in 100 days`, `3 hours ago`, `三天后`, `tomorrow`.
pub(crate) fn relative_times(context: &MatchContext<'_>, label_spans: &[LabelSpan]) -> Vec<ValueCandidate> {
    let tokens = &context.parsed.tokens;
    let mut found = Vec::new();
    if countdown::is_beyond_clocks(context.parsed) {
        return found;
    }
    // The endpoints of a countdown are not offsets.
    let counted = countdown::read(context.parsed);
    let is_counted = |start: usize, end: usize| {
        counted.is_some_and(|counted| {
            let overlaps = |span: countdown::Span| span.0 < end && start < span.1;
            overlaps(counted.until) || counted.from.is_some_and(overlaps)
        })
    };
    // `tomorrow`, `next Friday`, 下周三: a date relative to today.
    for mention in &context.parsed.mentions {
        let written = context.parsed.written(mention);
        // `is 2028-02-29 a Monday?` contains no offset.
        let asks_weekday =
            is_weekday(written) && context.parsed.mentions.iter().any(|other| is_dated(context, other));
        if matches!(mention.value, MentionValue::Moment(Moment::Date(_)))
            && !asks_weekday
            && !is_in_digits(written)
            && !is_today(written)
            && !is_counted(mention.start, mention.end)
        {
            let value = ArgumentValue::FromRequest(Json::from(written));
            let score = GOOD + 0.4 + context.labelled(label_spans, mention.start, mention.end);
            found.push(ValueCandidate { value, start: mention.start, end: mention.end, score });
        }
    }
    let text = context.parsed.text;
    found.extend(neighbours(context));
    for half in ["半个小时", "半小时", "半天", "半年", "半个月"] {
        for (start, _) in text.match_indices(half) {
            let rest = &text[start + half.len()..];
            let tail =
                ["以后", "之后", "后", "以前", "之前", "前"].iter().find(|tail| rest.starts_with(**tail));
            if let Some(tail) = tail {
                let end = start + half.len() + tail.len();
                let value = ArgumentValue::FromRequest(Json::from(&text[start..end]));
                found.push(ValueCandidate { value, start, end, score: GOOD + 0.5 });
            }
        }
    }
    for at in 0..tokens.len() {
        if let Some((start, end, text)) =
            shift_at(context, at).filter(|(start, end, _)| !is_counted(*start, *end))
        {
            let score = GOOD + 0.5 + context.labelled(label_spans, start, end);
            found.push(ValueCandidate {
                value: ArgumentValue::FromRequest(Json::from(text)),
                start,
                end,
                score,
            });
        }
    }
    found
}

/// `the day after Christmas`, 圣诞节前一天: an offset from a named day.
fn neighbours(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let text = context.parsed.text;
    let lower = text.to_ascii_lowercase();
    let words = [
        ("the day after ", "1 day after"),
        ("the day before ", "1 day before"),
        ("the week after ", "1 week after"),
        ("the week before ", "1 week before"),
    ];
    let days = context.parsed.mentions.iter().filter(|mention| is_dated(context, mention));
    let mut found = Vec::new();
    for day in days {
        let (before, after) = (&lower[..day.start], &text[day.end..]);
        let english = words.iter().find(|(word, _)| before.ends_with(word));
        let after = after.strip_prefix('的').unwrap_or(after);
        let chinese = [
            ("前一天", "1天前"),
            ("前一日", "1天前"),
            ("后一天", "1天后"),
            ("第二天", "1天后"),
            ("次日", "1天后"),
        ]
        .into_iter()
        .find(|(word, _)| after.starts_with(word));
        let (start, end, value) = match (english, chinese) {
            (Some((word, value)), _) => (day.start - word.len(), day.start, *value),
            (None, Some((word, value))) => {
                let start = text.len() - after.len();
                (start, start + word.len(), value)
            }
            (None, None) => continue,
        };
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(value)),
            start,
            end,
            score: GOOD + 0.6,
        });
    }
    found
}

fn is_weekday(written: &str) -> bool {
    let lower = written.to_lowercase();
    lower.ends_with("day") && !lower.contains(' ') && !["today", "yesterday"].contains(&lower.as_str())
        || ["星期", "周", "礼拜"].iter().any(|week| lower.starts_with(week))
}

/// Whether a day is given by its date or its name.
fn is_dated(context: &MatchContext<'_>, mention: &Mention) -> bool {
    mention.value == MentionValue::Holiday
        || matches!(mention.value, MentionValue::Moment(Moment::Date(_)))
            && is_in_digits(context.parsed.written(mention))
}

/// Words after a duration that give its direction. If one is a prefix of another, the longer one is listed first.
const TAILS: [&str; 18] = [
    "ago",
    "from now",
    "from today",
    "after today",
    "before today",
    "later",
    "after",
    "before",
    "from",
    "earlier",
    "以后",
    "之后",
    "过后",
    "后",
    "以前",
    "之前",
    "前",
    "hence",
];

/// The offset that starts at a token: `in 100 days`, `3 hours ago`, `a week from today`, 再过 45 天, 3月1日之后 100 天.
fn shift_at(context: &MatchContext<'_>, at: usize) -> Option<(usize, usize, String)> {
    let (text, tokens) = (context.parsed.text, &context.parsed.tokens);
    // `a week from today`.
    let article = tokens[at].is_any(&["a", "an"])
        && tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Word && SPANS.contains(&next.text));
    let (first, end) = match crate::lexer::number::read(text, tokens, at) {
        _ if article => (at, tokens[at].end),
        Some(number) => (number.first, tokens[number.after - 1].end),
        None => return None,
    };
    let rest = text.get(end..).unwrap_or_default().trim_start();
    let last = text.get(tokens[at].start..end).unwrap_or_default();
    let is_span = SPANS.iter().any(|span| last.ends_with(span) || rest.starts_with(span));
    let before = at.checked_sub(1).is_some_and(|at| tokens[at].is_word("in"));
    let skip = SPANS.iter().filter(|span| rest.starts_with(**span)).map(|span| span.len()).max().unwrap_or(0);
    let after = rest[skip..].trim_start();
    let tail = TAILS.iter().find(|tail| after.starts_with(**tail)).copied();
    // `100 days after` requires a date after it.
    let tail = tail.filter(|tail| {
        let leads = ["after", "before", "from"].contains(tail);
        let next = text.len() - after.len() + tail.len();
        let day = |mention: &Mention| {
            matches!(mention.value, MentionValue::Moment(_) | MentionValue::Holiday)
                && text.get(next..mention.start).is_some_and(|gap| matches!(gap.trim(), "" | "the"))
        };
        !leads || context.parsed.mentions.iter().any(day)
    });
    // `how many days are in 3 years` is arithmetic.
    let worked_out =
        context.parsed.expressions.iter().any(|found| found.start < end && tokens[at].start < found.end);
    if !is_span || worked_out {
        return None;
    }
    let start = if before { tokens[at - 1].start } else { tokens[first].start };
    let prefix = text.get(..tokens[first].start).unwrap_or_default().trim_end();
    let stop = text.len() - after.len();
    if before || tail.is_some() {
        let stop = stop + tail.map_or(0, str::len);
        return Some((start, stop, text.get(start..stop).unwrap_or_default().trim().to_owned()));
    }
    // 再过 45 天; 3月1日之后 100 天: the direction precedes the duration.
    let amount = text.get(tokens[first].start..stop).unwrap_or_default().trim();
    let later = ["之后", "以后", "起", "加上", "加", "再过", "往后", "过"]
        .iter()
        .find(|word| prefix.ends_with(**word));
    let earlier = ["之前", "以前", "减去", "减", "往前", "倒推"].iter().find(|word| prefix.ends_with(**word));
    let (word, way) = later.map(|word| (word, "后")).or_else(|| earlier.map(|word| (word, "前")))?;
    let start = prefix.len() - word.len();
    Some((start, stop, format!("{amount}{way}")))
}
