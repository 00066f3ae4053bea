//! Days of the week, relative to a date.

use jiff::civil::Date;
use toolhub_core::calendar::WEEKDAYS;

/// The number of days to `monday`, `next monday` (the first one after today), `周一` (of this week), `下周一` (of the next).
pub(super) fn days_to_weekday(text: &str, today: Date) -> Option<i64> {
    let today = i64::from(today.weekday().to_monday_zero_offset());
    let (week, name) = match text.split_once(' ') {
        Some((week @ ("this" | "next" | "last"), name)) => (week, name.trim()),
        _ => ("this", text),
    };
    if let Some(weekday) = english_weekday(name) {
        let (ahead, back) = ((weekday - today).rem_euclid(7), (today - weekday).rem_euclid(7));
        return Some(match week {
            "next" if ahead == 0 => 7,
            "last" if back == 0 => -7,
            "last" => -back,
            _ => ahead,
        });
    }
    let weeks = [("下下", 2), ("上上", -2), ("下", 1), ("上", -1), ("本", 0), ("这", 0), ("", 0)];
    let (week, rest) = weeks.iter().find_map(|(word, week)| Some((week, text.strip_prefix(word)?)))?;
    let rest = rest.strip_prefix('个').unwrap_or(rest);
    let day = ["周", "星期", "礼拜"].iter().find_map(|unit| rest.strip_prefix(unit))?;
    let weekday = "一二三四五六日".chars().position(|c| day == c.to_string());
    let weekday = if day == "天" { Some(6) } else { weekday }?;
    Some(week * 7 + weekday as i64 - today)
}

fn english_weekday(name: &str) -> Option<i64> {
    let found = WEEKDAYS
        .iter()
        .position(|full| *full == name || name.len() >= 3 && name.len() < 5 && full.starts_with(name));
    found.map(|at| at as i64)
}
