//! Reads dates and times of day in a request: written out, in digits, or relative to today.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time};
use toolhub_core::calendar::{MONTHS, WEEKDAYS};

use crate::lexer::number_words::chinese_digit;
use crate::lexer::token::{Token, TokenKind};

/// A date, a time of day, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    Date(Date),
    Time(Time),
    DateTime(DateTime),
}

/// A moment, and the index of the token after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DateMatch {
    pub(crate) moment: Moment,
    pub(crate) after: usize,
}

/// The moment that begins at token `at`.
pub(crate) fn read(tokens: &[Token<'_>], at: usize, today: Date) -> Option<DateMatch> {
    if let Some((date, after)) = day(tokens, at, today) {
        let joint = usize::from(tokens.get(after).is_some_and(|token| token.is_any(&["at", "T", ",", "的"])));
        let whole = |from: usize| time(tokens, from).map(|(time, after)| (date.to_datetime(time), after));
        return Some(match whole(after + joint) {
            Some((moment, after)) => DateMatch { moment: Moment::DateTime(moment), after },
            None => DateMatch { moment: Moment::Date(date), after },
        });
    }
    let (time, after) = time(tokens, at)?;
    let joint = usize::from(tokens.get(after).is_some_and(|token| token.is_word("on")));
    Some(match day(tokens, after + joint, today) {
        Some((date, after)) => DateMatch { moment: Moment::DateTime(date.to_datetime(time)), after },
        None => DateMatch { moment: Moment::Time(time), after },
    })
}

fn whole(tokens: &[Token<'_>], at: usize) -> Option<i64> {
    tokens.get(at).filter(|token| token.kind == TokenKind::Number)?.text.parse().ok()
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn day(tokens: &[Token<'_>], at: usize, today: Date) -> Option<(Date, usize)> {
    in_digits(tokens, at)
        .or_else(|| with_month_name(tokens, at, today))
        .or_else(|| in_chinese(tokens, at, today))
        .or_else(|| relative(tokens, at, today))
}

/// `2024-05-01`, `2024/5/1`, `05/01/2024` (month first, unless that is not a valid date).
fn in_digits(tokens: &[Token<'_>], at: usize) -> Option<(Date, usize)> {
    let (first, second, third) = (whole(tokens, at)?, whole(tokens, at + 2)?, whole(tokens, at + 4)?);
    let mark = text(tokens, at + 1);
    if !matches!(mark, "-" | "/" | ".") || text(tokens, at + 3) != mark {
        return None;
    }
    let adjacent = tokens[at..at + 5].windows(2).all(|pair| pair[0].end == pair[1].start);
    let found = match (tokens[at].text.len(), tokens[at + 4].text.len()) {
        (4, _) => date(first, second, third),
        (_, 4) => date(third, first, second).or_else(|| date(third, second, first)),
        _ => None,
    };
    Some((found.filter(|_| adjacent)?, at + 5))
}

fn month(text: &str) -> Option<i64> {
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    let fits =
        |name: &&str| **name == text || (text.len() >= 3 && text.len() <= 4 && name.starts_with(&text));
    MONTHS.iter().position(fits).map(|index| index as i64 + 1)
}

/// `May 1, 2024`, `May 1st`, `1 May 2024`, `1st of May`.
fn with_month_name(tokens: &[Token<'_>], at: usize, today: Date) -> Option<(Date, usize)> {
    let ordinal = |at: usize| {
        at + usize::from(tokens.get(at).is_some_and(|token| token.is_any(&["st", "nd", "rd", "th"])))
    };
    let year = |at: usize| {
        let comma = usize::from(text(tokens, at) == ",");
        let found = whole(tokens, at + comma).filter(|year| (1000..3000).contains(year));
        found.map_or((i64::from(today.year()), at), |year| (year, at + comma + 1))
    };
    if let Some(month) = month(text(tokens, at)).filter(|_| tokens[at].kind == TokenKind::Word) {
        let dot = usize::from(text(tokens, at + 1) == ".");
        let day = whole(tokens, at + dot + 1).filter(|day| *day <= 31)?;
        let (year, after) = year(ordinal(at + dot + 2));
        return Some((date(year, month, day)?, after));
    }
    let day = whole(tokens, at).filter(|day| *day <= 31)?;
    let mut next = ordinal(at + 1);
    next += usize::from(text(tokens, next).eq_ignore_ascii_case("of"));
    let month = month(text(tokens, next))?;
    let (year, after) = year(next + 1);
    Some((date(year, month, day)?, after))
}

/// `2024年5月1日`, `5月1号`.
fn in_chinese(tokens: &[Token<'_>], at: usize, today: Date) -> Option<(Date, usize)> {
    let mut from = at;
    let mut year = i64::from(today.year());
    if text(tokens, from + 1) == "年"
        && let Some(found) = whole(tokens, from)
    {
        (year, from) = (found, from + 2);
    }
    let (month, next) = small_number(tokens, from)?;
    if text(tokens, next) != "月" {
        return None;
    }
    let (day, next) = small_number(tokens, next + 1)?;
    matches!(text(tokens, next), "日" | "号").then_some(())?;
    Some((date(year, month, day)?, next + 1))
}

/// A number up to 99, in digits or Chinese numerals.
fn small_number(tokens: &[Token<'_>], at: usize) -> Option<(i64, usize)> {
    if let Some(value) = whole(tokens, at) {
        return Some((value, at + 1));
    }
    let ones = |at: usize| chinese_digit(text(tokens, at)).map(i64::from);
    match (ones(at), text(tokens, at), text(tokens, at + 1)) {
        (Some(tens), _, "十") => {
            Some(ones(at + 2).map_or((tens * 10, at + 2), |ones| (tens * 10 + ones, at + 3)))
        }
        (Some(value), ..) => Some((value, at + 1)),
        (None, "十", _) => Some(ones(at + 1).map_or((10, at + 1), |ones| (10 + ones, at + 2))),
        _ => None,
    }
}

/// `tomorrow`, `next Monday`, `in 3 days`, `明天`, `下周一`, `三天后`.
fn relative(tokens: &[Token<'_>], at: usize, today: Date) -> Option<(Date, usize)> {
    let add = |days: i64| today.checked_add(Span::new().try_days(days).ok()?).ok();
    let words: [(&[&str], i64); 13] = [
        (&["the", "day", "after", "tomorrow"], 2),
        (&["day", "after", "tomorrow"], 2),
        (&["the", "day", "before", "yesterday"], -2),
        (&["today"], 0),
        (&["tonight"], 0),
        (&["tomorrow"], 1),
        (&["yesterday"], -1),
        (&["今", "天"], 0),
        (&["今", "晚"], 0),
        (&["明", "天"], 1),
        (&["后", "天"], 2),
        (&["昨", "天"], -1),
        (&["前", "天"], -2),
    ];
    for (words, days) in words {
        if words.iter().enumerate().all(|(index, word)| text(tokens, at + index).eq_ignore_ascii_case(word)) {
            return Some((add(days)?, at + words.len()));
        }
    }
    let to_weekday = |weekday: usize| weekday as i64 - i64::from(today.weekday().to_monday_zero_offset());
    let weekday = |at: usize| {
        let word = text(tokens, at).to_ascii_lowercase();
        WEEKDAYS.iter().position(|name| *name == word)
    };
    let chinese = |at: usize| {
        let is_week =
            matches!(text(tokens, at), "周") || (text(tokens, at) == "星" && text(tokens, at + 1) == "期");
        let next = at + if text(tokens, at) == "周" { 1 } else { 2 };
        let index =
            ["一", "二", "三", "四", "五", "六", "日"].iter().position(|day| *day == text(tokens, next));
        let index = index.or_else(|| (text(tokens, next) == "天").then_some(6));
        index.filter(|_| is_week).map(|index| (index, next + 1))
    };
    match text(tokens, at).to_ascii_lowercase().as_str() {
        "next" => return Some((add(to_weekday(weekday(at + 1)?).rem_euclid(7).max(1))?, at + 2)),
        "this" => return Some((add(to_weekday(weekday(at + 1)?).rem_euclid(7))?, at + 2)),
        "last" => return Some((add(to_weekday(weekday(at + 1)?).rem_euclid(7) - 7)?, at + 2)),
        "下" | "上" if month_day(tokens, at, today).is_some() => return month_day(tokens, at, today),
        "下" => {
            let (day, after) = chinese(at + 1 + usize::from(text(tokens, at + 1) == "个"))?;
            return Some((add(to_weekday(day) + 7)?, after));
        }
        "上" => {
            let (day, after) = chinese(at + 1 + usize::from(text(tokens, at + 1) == "个"))?;
            return Some((add(to_weekday(day) - 7)?, after));
        }
        "这" | "本" if month_day(tokens, at, today).is_some() => return month_day(tokens, at, today),
        "这" | "本" => {
            let (day, after) = chinese(at + 1)?;
            return Some((add(to_weekday(day))?, after));
        }
        _ => {}
    }
    if let Some(weekday) = weekday(at) {
        return Some((add(to_weekday(weekday).rem_euclid(7))?, at + 1));
    }
    if let Some((day, after)) = chinese(at) {
        return Some((add(to_weekday(day).rem_euclid(7))?, after));
    }
    let (count, next) = small_number(tokens, at + usize::from(text(tokens, at) == "in"))?;
    match (text(tokens, next), text(tokens, next + 1), text(tokens, at)) {
        ("day" | "days", _, "in") => Some((add(count)?, next + 1)),
        ("week" | "weeks", _, "in") => Some((add(count.checked_mul(7)?)?, next + 1)),
        ("day" | "days", "ago", _) => Some((add(-count)?, next + 2)),
        ("天", "后", _) => Some((add(count)?, next + 2)),
        ("天", "前", _) => Some((add(-count)?, next + 2)),
        _ => None,
    }
}

/// 下个月 1 号, 本月 15 日.
fn month_day(tokens: &[Token<'_>], at: usize, today: Date) -> Option<(Date, usize)> {
    let months = match text(tokens, at) {
        "下" => 1,
        "上" => -1,
        _ => 0,
    };
    let month = at + 1 + usize::from(text(tokens, at + 1) == "个");
    let (day, after) = small_number(tokens, month + 1).filter(|_| text(tokens, month) == "月")?;
    matches!(text(tokens, after), "日" | "号").then_some(())?;
    let first = today.first_of_month().checked_add(Span::new().months(months)).ok()?;
    Some((date(first.year().into(), first.month().into(), day)?, after + 1))
}

/// `15:30`, `3 pm`, `3:30pm`, `noon`, `下午3点半`, `十点`.
fn time(tokens: &[Token<'_>], at: usize) -> Option<(Time, usize)> {
    let clock =
        |hour: i64, minute: i64| Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok();
    match text(tokens, at).to_ascii_lowercase().as_str() {
        "noon" => return Some((clock(12, 0)?, at + 1)),
        "midnight" => return Some((clock(0, 0)?, at + 1)),
        _ => {}
    }
    let two = [text(tokens, at), text(tokens, at + 1)].concat();
    let (later, from) = match two.as_str() {
        "下午" | "晚上" | "傍晚" => (12, at + 2),
        "中午" => (12, at + 2),
        "上午" | "早上" | "凌晨" | "清晨" => (0, at + 2),
        _ => (0, at),
    };
    let (hour, next) = small_number(tokens, from)?;
    let shifted = if later == 12 && hour < 12 { hour + 12 } else { hour };
    if matches!(text(tokens, next), "点" | "时") {
        if text(tokens, next + 1) == "半" {
            return Some((clock(shifted, 30)?, next + 2));
        }
        let minute = small_number(tokens, next + 1).filter(|(minute, after)| {
            *minute < 60 && text(tokens, *after) != "月" && (from != at || text(tokens, *after) == "分")
        });
        return match minute {
            Some((minute, after)) => {
                Some((clock(shifted, minute)?, after + usize::from(text(tokens, after) == "分")))
            }
            None => Some((clock(shifted, 0)?, next + 1)),
        };
    }
    let (minute, mut next, has_minute) = match (text(tokens, next), whole(tokens, next + 1)) {
        (":" | "：", Some(minute)) if tokens[next + 1].text.len() == 2 => (minute, next + 2, true),
        _ => (0, next, false),
    };
    if text(tokens, next) == ":" && whole(tokens, next + 1).is_some() {
        next += 2;
    }
    let half = text(tokens, next).to_ascii_lowercase().replace('.', "");
    let hour = match half.as_str() {
        "am" if hour == 12 => 0,
        "pm" if hour < 12 => hour + 12,
        "am" | "pm" => hour,
        _ if has_minute => return Some((clock(shifted, minute)?, next)),
        _ => return None,
    };
    Some((clock(hour, minute)?, next + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn parses_dates_and_times() {
        // A Thursday.
        let today = Date::constant(2026, 1, 15);
        let check = |text: &str, expect: &str| {
            let tokens = tokenize(text);
            let found = read(&tokens, 0, today).map(|when| {
                assert_eq!(when.after, tokens.len(), "{text}");
                match when.moment {
                    Moment::Date(date) => date.to_string(),
                    Moment::Time(time) => time.to_string(),
                    Moment::DateTime(moment) => moment.to_string(),
                }
            });
            assert_eq!(found.unwrap_or_default(), expect, "{text}");
        };
        check("2024-05-01", "2024-05-01");
        check("2024/5/1", "2024-05-01");
        check("05/31/2024", "2024-05-31");
        check("31/05/2024", "2024-05-31");
        check("May 1, 2022", "2022-05-01");
        check("Dec 25th", "2026-12-25");
        check("1st of May 2024", "2024-05-01");
        check("2024年5月1日", "2024-05-01");
        check("五月二十一号", "2026-05-21");
        check("tomorrow", "2026-01-16");
        check("the day after tomorrow", "2026-01-17");
        check("next Monday", "2026-01-19");
        check("in 3 days", "2026-01-18");
        check("下个月1号", "2026-02-01");
        check("本月20日", "2026-01-20");
        check("明天", "2026-01-16");
        check("下周一", "2026-01-19");
        check("这周五", "2026-01-16");
        check("三天后", "2026-01-18");
        check("3 pm", "15:00:00");
        check("10:30 AM", "10:30:00");
        check("15:00", "15:00:00");
        check("下午3点半", "15:30:00");
        check("tomorrow at 10 AM", "2026-01-16T10:00:00");
        check("明天下午三点", "2026-01-16T15:00:00");
        check("May 1 at noon", "2026-05-01T12:00:00");
        check("5", "");
        check("99/99/2024", "");
    }
}
