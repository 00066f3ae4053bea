//! Recognises questions about the time between two days, and finds the days: `how many days until Christmas`, 距离国庆还有多少天,
//! `days between March 1 and May 1`.

use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::values::date::Moment;

/// A byte range of the text.
pub(crate) type Span = (usize, usize);

/// The two ends of the counted period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Countdown {
    /// The start; `None` for now.
    pub(crate) from: Option<Span>,
    /// The end.
    pub(crate) until: Span,
    /// Whether the end is in the past: `since March 1`.
    pub(crate) is_past: bool,
}

/// Phrases that ask for a duration.
const ASKING: [&str; 22] = [
    "how many days",
    "how many more days",
    "how many weeks",
    "how many more weeks",
    "how many months",
    "how many hours",
    "how many minutes",
    "how many years",
    "how many sleeps",
    "how long",
    "how much time",
    "how far away",
    "how soon",
    "number of days",
    "days left",
    "days until",
    "days till",
    "days between",
    "days since",
    "days from",
    "weeks until",
    "countdown to",
];
const ASKING_HAN: [&str; 19] = [
    "多少天",
    "几天",
    "多久",
    "多长时间",
    "多少周",
    "几周",
    "几个星期",
    "多少个星期",
    "多少个月",
    "几个月",
    "几个礼拜",
    "多少小时",
    "几个小时",
    "多少分钟",
    "倒计时",
    "倒数",
    "天数",
    "多少日",
    "多少年",
];
/// Words before the day that ends the period.
const BEFORE: [&str; 12] =
    ["until", "till", "til", "to", "before", "since", "is", "was", "between", "and", "from", "of"];
/// Chinese words of which one must occur for a period to be meant.
const DISTANCE: [&str; 22] = [
    "距离",
    "距",
    "离",
    "到",
    "至",
    "还有",
    "还剩",
    "还要",
    "还差",
    "过去",
    "已经",
    "过了",
    "相差",
    "相隔",
    "间隔",
    "之间",
    "以来",
    "以后",
    "倒计时",
    "倒数",
    "差",
    "隔",
];

/// Whether a text asks for days that a clock cannot count.
pub(crate) fn is_beyond_clocks(parsed: &ParsedText<'_>) -> bool {
    let lower = parsed.text.to_lowercase();
    OF_WORK.iter().any(|words| lower.contains(words))
}

/// Working days, which depend on a calendar of holidays.
const OF_WORK: [&str; 6] = ["business day", "working day", "work day", "workday", "weekdays", "工作日"];

/// The counted period, if a text asks for one.
pub(crate) fn read(parsed: &ParsedText<'_>) -> Option<Countdown> {
    let lower = parsed.text.to_lowercase();
    let chinese = ASKING_HAN.iter().any(|words| lower.contains(words));
    let english = ASKING.iter().any(|words| lower.contains(words));
    if is_beyond_clocks(parsed) {
        return None;
    }
    // Unit conversions are not periods: `how many days are in 3 weeks`.
    if !(chinese || english) || !parsed.expressions.is_empty() {
        return None;
    }
    let days: Vec<&Mention> = parsed
        .mentions
        .iter()
        .filter(|mention| {
            matches!(mention.value, MentionValue::Moment(_) | MentionValue::Holiday)
                && is_reported(parsed, mention)
        })
        .collect();
    let is_now = |mention: &&&Mention| {
        let written = parsed.written(mention).to_lowercase();
        ["today", "now", "今天", "今晚", "tonight"].contains(&written.as_str())
    };
    let stated: Vec<&&Mention> = days.iter().filter(|mention| !is_now(mention)).collect();
    let since = is_since(&lower);
    let span = |mention: &Mention| (mention.start, mention.end);
    match stated.as_slice() {
        [one] => {
            let fits = if has_han(parsed.text) && chinese {
                DISTANCE.iter().any(|word| lower.contains(word)) || days.len() > stated.len()
            } else {
                let before = lower[..one.start].trim_end();
                let last = before.rsplit([' ', '\'']).next().unwrap_or_default();
                let last = if last == "the" { before.rsplit(' ').nth(1).unwrap_or_default() } else { last };
                BEFORE.contains(&last) || lower[one.end..].trim_start().starts_with("away")
            };
            fits.then(|| Countdown { from: None, until: span(one), is_past: since })
        }
        [first, second] => {
            let between = lower.get(first.end..second.start).unwrap_or_default().trim();
            let joined = [
                "to", "until", "till", "and", "through", "-", "–", "到", "至", "和", "与", "距离", "离",
                "距", "跟",
            ]
            .contains(&between.trim_end_matches(" the"));
            joined.then(|| Countdown { from: Some(span(first)), until: span(second), is_past: false })
        }
        _ => None,
    }
}

/// `3 days` in `how many hours in 3 days` is a duration and not a date.
fn is_reported(parsed: &ParsedText<'_>, mention: &Mention) -> bool {
    match mention.value {
        MentionValue::Moment(Moment::Time(_)) => true,
        MentionValue::Moment(_) => {
            let written = parsed.written(mention).to_lowercase();
            !(written.ends_with("days") || written.ends_with("weeks") || written.ends_with("ago"))
        }
        _ => true,
    }
}

fn is_since(lower: &str) -> bool {
    [
        "since",
        "ago was",
        "have passed",
        "has passed",
        "passed",
        "过去",
        "已经",
        "过了",
        "以来",
        "距今",
        "至今",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn parses_days_of_countdown() {
        let check = |text: &str, expect: Option<(&str, &str)>| {
            let parsed = ParsedText::of(text, Date::constant(2026, 11, 15));
            let found = read(&parsed).map(|found| {
                let part = |(start, end): Span| &text[start..end];
                (found.from.map(part).unwrap_or_default(), part(found.until))
            });
            assert_eq!(found, expect, "{text}");
        };
        check("how many days until Christmas", Some(("", "Christmas")));
        check("How long till 2027-03-05?", Some(("", "2027-03-05")));
        check("how many days between March 1 and May 1, 2026", Some(("March 1", "May 1, 2026")));
        check("How many days from today to next Friday", Some(("", "next Friday")));
        check("how many days since 2020-01-01", Some(("", "2020-01-01")));
        check("距离国庆还有多少天", Some(("", "国庆")));
        check("离2027年3月5日还有几天？", Some(("", "2027年3月5日")));
        check("从3月1日到5月1日有多少天", Some(("3月1日", "5月1日")));
        check("how many hours are in 3 days", None);
        check("国庆放假几天", None);
        check("how long did the talk on March 5 take", None);
        check("what day is Christmas", None);
        check("how many working days until Friday", None);
    }
}
