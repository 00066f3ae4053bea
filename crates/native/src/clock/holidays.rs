//! Days with names: holidays with a fixed date, with a rule (`the fourth Thursday of November`), and festivals of the
//! Chinese calendar from a table.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Span;
use jiff::civil::{Date, Weekday};
use toolhub_core::name_tables::HOLIDAYS;

/// The festivals of the Chinese calendar by year.
const FESTIVALS: &str = include_str!("../../data/festivals.tsv");

/// How the date in a year is computed.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// A month and a day.
    On(i8, i8),
    /// The nth weekday of a month, plus a number of days.
    Nth(i8, i8, Weekday, i64),
    /// Days after Easter.
    Easter(i64),
    /// A column of the festivals, plus a number of days.
    Festival(usize, i64),
}

static RULES: LazyLock<HashMap<&'static str, Rule>> = LazyLock::new(|| {
    let mut rules = HashMap::new();
    for row in HOLIDAYS.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = row.split('\t');
        let Some(rule) = columns.next().and_then(Rule::read) else { continue };
        let names = columns.flat_map(|names| names.split('|')).filter(|name| !name.is_empty());
        rules.extend(names.map(|name| (name, rule)));
    }
    rules
});

impl Rule {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        Some(match words.as_slice() {
            [day] => {
                let (month, day) = day.split_once('-')?;
                Self::On(month.parse().ok()?, day.parse().ok()?)
            }
            ["easter", later] => Self::Easter(later.parse().ok()?),
            ["festival", column, later] => Self::Festival(column.parse().ok()?, later.parse().ok()?),
            [month, nth, weekday, later] => {
                let weekday = match *weekday {
                    "monday" => Weekday::Monday,
                    "thursday" => Weekday::Thursday,
                    "sunday" => Weekday::Sunday,
                    _ => return None,
                };
                Self::Nth(month.parse().ok()?, nth.parse().ok()?, weekday, later.parse().ok()?)
            }
            _ => return None,
        })
    }
}

/// Prefixes that select a year, as an offset from the current one.
const YEARS: [(&str, i16); 10] = [
    ("this ", 0),
    ("this years ", 0),
    ("next years ", 1),
    ("last years ", -1),
    ("今年的", 0),
    ("今年", 0),
    ("明年的", 1),
    ("明年", 1),
    ("去年的", -1),
    ("去年", -1),
];

/// The date of a named day. Without a year it is the next one, including today; `last` is the one before today.
pub(super) fn named(plain: &str, today: Date) -> Option<Date> {
    let text = plain.replace(['\'', '’'], "").replace('-', " ");
    let text = text.trim();
    let text = text.strip_prefix("the ").unwrap_or(text);
    for (word, years) in YEARS {
        if let Some(rule) = text.strip_prefix(word).and_then(rule) {
            return on(rule, today.year() + years);
        }
    }
    if let Some((year, name)) = with_year(text) {
        return on(rule(name)?, year);
    }
    let coming = |rule: Rule| {
        let years = [today.year() - 1, today.year(), today.year() + 1];
        years.into_iter().filter_map(|year| on(rule, year)).find(|day| *day >= today)
    };
    let past = |rule: Rule| {
        let years = [today.year(), today.year() - 1];
        years.into_iter().filter_map(|year| on(rule, year)).find(|day| *day < today)
    };
    for before in ["last ", "上个", "上一个"] {
        if let Some(rule) = text.strip_prefix(before).and_then(rule) {
            return past(rule);
        }
    }
    for before in ["next ", "下个", "下一个"] {
        if let Some(rule) = text.strip_prefix(before).and_then(rule) {
            return coming(rule);
        }
    }
    coming(rule(text)?)
}

/// `christmas 2027`, `2027年圣诞节`.
fn with_year(text: &str) -> Option<(i16, &str)> {
    let digits = |text: &str| text.parse::<i16>().ok().filter(|year| (1..=9999).contains(year));
    let after = || text.rsplit_once(' ').and_then(|(name, year)| Some((digits(year)?, name.trim_end())));
    let before = || text.split_once(' ').and_then(|(year, name)| Some((digits(year)?, name.trim_start())));
    let chinese = || {
        let (year, name) = text.split_once('年')?;
        let year = digits(year.trim())?;
        Some((year, name.trim().strip_prefix('的').unwrap_or(name.trim())))
    };
    after().or_else(before).or_else(chinese)
}

fn rule(name: &str) -> Option<Rule> {
    RULES.get(name.trim()).copied()
}

/// The date in a year; `None` if the table does not contain that year.
fn on(rule: Rule, year: i16) -> Option<Date> {
    let later = |day: Date, days: i64| day.checked_add(Span::new().try_days(days).ok()?).ok();
    match rule {
        Rule::On(month, day) => Date::new(year, month, day).ok(),
        Rule::Nth(month, nth, weekday, days) => {
            later(Date::new(year, month, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()?, days)
        }
        Rule::Easter(days) => later(easter(year)?, days),
        Rule::Festival(column, days) => later(festival(column, year)?, days),
    }
}

fn festival(column: usize, year: i16) -> Option<Date> {
    let rows = FESTIVALS.lines().filter(|line| !line.starts_with('#'));
    let mut columns = rows
        .map(|row| row.split('\t'))
        .find_map(|mut columns| (columns.next()?.parse::<i16>().ok()? == year).then_some(columns))?;
    let (month, day) = columns.nth(column.checked_sub(1)?)?.split_once('-')?;
    Date::new(year, month.parse().ok()?, day.parse().ok()?).ok()
}

/// Easter Sunday of the Gregorian calendar (algorithm of Meeus, Jones and Butcher).
fn easter(year: i16) -> Option<Date> {
    let year = i32::from(year);
    let golden = year % 19;
    let (century, rest) = (year / 100, year % 100);
    let correction = (century - (century + 8) / 25 + 1) / 3;
    let moon = (19 * golden + century - century / 4 - correction + 15) % 30;
    let weekday = (32 + 2 * (century % 4) + 2 * (rest / 4) - moon - rest % 4) % 7;
    let late = (golden + 11 * moon + 22 * weekday) / 451;
    let days = moon + weekday - 7 * late + 114;
    Date::new(year.try_into().ok()?, (days / 31).try_into().ok()?, (days % 31 + 1).try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_holidays() {
        // A Sunday.
        let today = Date::constant(2026, 11, 15);
        let check = |name: &str, expect: &str| {
            let found = named(name, today).map(|day| day.to_string()).unwrap_or_default();
            assert_eq!(found, expect, "{name}");
        };
        check("christmas", "2026-12-25");
        check("new year's eve", "2026-12-31");
        check("圣诞节", "2026-12-25");
        check("halloween", "2027-10-31");
        check("last halloween", "2026-10-31");
        check("last christmas", "2025-12-25");
        check("next easter", "2027-03-28");
        check("easter 2024", "2024-03-31");
        check("thanksgiving", "2026-11-26");
        check("black friday", "2026-11-27");
        check("mother's day", "2027-05-09");
        check("labor day", "2027-09-06");
        check("labour day", "2027-05-01");
        check("国庆", "2027-10-01");
        check("明年国庆节", "2027-10-01");
        check("2030年春节", "2030-02-03");
        check("春节", "2027-02-06");
        check("除夕", "2027-02-05");
        check("中秋节", "2027-09-15");
        check("chinese new year", "2027-02-06");
        check("mid-autumn festival", "2027-09-15");
        check("清明", "2027-04-05");
        check("春节 2070", "");
        check("tea day", "");
        check("", "");
    }

    #[test]
    fn every_holiday_row_has_a_date() {
        let rows: Vec<&str> = HOLIDAYS.lines().filter(|line| !line.starts_with('#')).collect();
        for row in &rows {
            let rule = Rule::read(row.split('\t').next().unwrap());
            assert!(rule.and_then(|rule| on(rule, 2026)).is_some(), "{row}");
        }
    }

    #[test]
    fn holiday_today_is_the_next_one() {
        assert_eq!(named("christmas", Date::constant(2026, 12, 25)), Some(Date::constant(2026, 12, 25)));
    }
}
