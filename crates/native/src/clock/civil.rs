//! Parses dates and times of day as people write them: `next monday`, `3pm`, `3月29日`, `下午3点半`.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time};
use toolhub_core::calendar::MONTHS;

use super::plain::plain;
use super::weekday::days_to_weekday;
use super::{holidays, numerals, offset};

/// Parses a date and a time. A date alone means midnight; a time alone means today.
pub(super) fn parse(text: &str, today: Date) -> Option<DateTime> {
    if let Ok(local) = text.parse() {
        return Some(local);
    }
    let plain = plain(text);
    let ends = plain.char_indices().map(|(at, _)| at).chain([plain.len()]);
    ends.into_iter().find_map(|at| {
        let (first, second) = plain.split_at(at);
        let (first, second) = (first.trim(), second.trim());
        match (first, second) {
            ("", "") => None,
            ("", alone) => Some(today.to_datetime(time(alone)?)),
            (alone, "") => Some(day(alone, today)?.to_datetime(Time::midnight())),
            _ => {
                let in_order = || Some((day(first, today)?, time(second)?));
                let (day, time) = in_order().or_else(|| Some((day(second, today)?, time(first)?)))?;
                Some(day.to_datetime(time))
            }
        }
    })
}

/// The next date that matches a text without a year: `25 December`, `3月29日`. Includes today.
pub(super) fn next(text: &str, today: Date) -> Option<Date> {
    let (month, day) = of_year(plain(text).trim())?;
    let years = [today.year(), today.year().checked_add(1)?];
    years.into_iter().filter_map(|year| Date::new(year, month, day).ok()).find(|day| *day >= today)
}

/// A month and a day without a year: `december 25`, `25th of december`, `12月25日`.
fn of_year(text: &str) -> Option<(i8, i8)> {
    let (month, day) = match text.split_once('月') {
        Some((month, day)) => {
            (numerals::parse(month.trim())?, numerals::parse(day.trim().trim_end_matches(['日', '号']))?)
        }
        None => {
            let (_, month, day) = in_english(text).filter(|(year, ..)| year.is_none())?;
            (month, day)
        }
    };
    Some((month.try_into().ok()?, day.try_into().ok()?))
}

/// `march 5, 2027`, `5 march 2027`, `mar 5th`, `5th of march`: the optional year, the month and the day.
fn in_english(text: &str) -> Option<(Option<i64>, i64, i64)> {
    let words: Vec<&str> =
        text.split([' ', ',']).filter(|word| !word.is_empty() && !["of", "the"].contains(word)).collect();
    let month = |word: &str| {
        let word = word.trim_end_matches('.');
        let short = |name: &&str| *name == word || (3..=4).contains(&word.len()) && name.starts_with(word);
        MONTHS.iter().position(short).map(|index| index as i64 + 1)
    };
    let day = |word: &str| {
        let ending = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending));
        let digits = ending.unwrap_or(word);
        digits.parse::<i64>().ok().filter(|_| digits.len() <= 2)
    };
    let year = |word: &str| word.parse::<i64>().ok().filter(|_| word.len() == 4);
    match words.as_slice() {
        [one, other] => match (month(one), month(other)) {
            (Some(month), _) => Some((None, month, day(other)?)),
            (None, Some(month)) => Some((None, month, day(one)?)),
            (None, None) => None,
        },
        [one, other, last] => match (month(one), month(other)) {
            (Some(month), _) => Some((Some(year(last)?), month, day(other)?)),
            (None, Some(month)) => Some((Some(year(last)?), month, day(one)?)),
            (None, None) => None,
        },
        _ => None,
    }
}

/// `2026-3-29`, `2026年3月29日`, `3月29日`, `March 29`, `tomorrow`, `next monday`, `Christmas`.
fn day(text: &str, today: Date) -> Option<Date> {
    if let Some(days) = days_to_weekday(text, today) {
        return today.checked_add(Span::new().days(days)).ok();
    }
    if let Some(span) = offset::word(text) {
        return today.checked_add(span).ok();
    }
    if let Some(day) = holidays::named(text, today) {
        return Some(day);
    }
    if let Some((year, month, day)) = in_english(text) {
        let year = year.unwrap_or(today.year().into());
        return Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok();
    }
    if let Some(day) = day_of_month(text, today) {
        return Some(day);
    }
    let text = text.trim_end_matches(['日', '号']);
    let parts: Vec<&str> = text.split(['-', '/', '.', '年', '月']).map(str::trim).collect();
    let (year, month, day) = match parts.as_slice() {
        [year, month, day] if year.chars().count() == 4 => (numerals::parse(year)?, *month, *day),
        [month, day] if text.contains('月') => (today.year().into(), *month, *day),
        _ => return None,
    };
    let (month, day) = (numerals::parse(month)?, numerals::parse(day)?);
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// 下个月1号, 本月15日.
fn day_of_month(text: &str, today: Date) -> Option<Date> {
    let months = [("下个月", 1), ("下月", 1), ("上个月", -1), ("上月", -1), ("这个月", 0), ("本月", 0)];
    let (months, day) = months.iter().find_map(|(word, months)| Some((*months, text.strip_prefix(word)?)))?;
    let day = numerals::parse(day.trim().strip_suffix(['日', '号'])?.trim())?;
    let first = today.first_of_month().checked_add(Span::new().months(months)).ok()?;
    Date::new(first.year(), first.month(), day.try_into().ok()?).ok()
}

/// Prefixes and suffixes for the half of the day; `true` for the second half.
const HALVES: [(&str, bool); 12] = [
    ("a.m.", false),
    ("am", false),
    ("p.m.", true),
    ("pm", true),
    ("凌晨", false),
    ("早上", false),
    ("上午", false),
    ("中午", true),
    ("下午", true),
    ("傍晚", true),
    ("晚上", true),
    ("晚", true),
];

/// `15:30`, `3pm`, `3:30 p.m.`, `下午3点半`, `十五点三十分`.
fn time(text: &str) -> Option<Time> {
    let text = text.strip_prefix("at ").unwrap_or(text).trim();
    match text {
        "noon" | "正午" | "中午" => return Some(Time::constant(12, 0, 0, 0)),
        "midnight" | "午夜" => return Some(Time::midnight()),
        _ => {}
    }
    let half = HALVES.iter().find_map(|(word, second)| {
        let rest = text.strip_prefix(word).or_else(|| text.strip_suffix(word))?;
        Some((rest.trim(), *second))
    });
    let (clock, second_half) = half.map_or((text, None), |(rest, second)| (rest, Some(second)));
    let is_named = second_half.is_some() || clock.contains([':', '点', '时']);
    if !is_named {
        return None;
    }
    let clock = clock.replace("点半", ":30").replace("点一刻", ":15").replace("点三刻", ":45");
    let clock = clock.trim_end_matches(['分', '秒', '整', '钟']).replace(['点', '时', '分'], ":");
    let mut parts = clock.trim_end_matches(':').split(':').map(|part| numerals::parse(part.trim()));
    let hour = parts.next()??;
    let minute = parts.next().unwrap_or(Some(0))?;
    let second = parts.next().unwrap_or(Some(0))?;
    let hour = match second_half {
        Some(true) if hour < 12 && !(hour == 11 && text.starts_with("中午")) => hour + 12,
        Some(false) if hour == 12 => 0,
        Some(false) if hour > 12 => return None,
        // 12 o'clock in the evening belongs to the next day.
        Some(true) if hour == 12 && text.starts_with('晚') => return None,
        _ => hour,
    };
    let time = Time::new(hour.try_into().ok()?, minute.try_into().ok()?, second.try_into().ok()?, 0).ok();
    time.filter(|_| parts.next().is_none())
}
