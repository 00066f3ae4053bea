//! Detects impossible dates and times: February 30, 25:61, an end before its start.

use toolhub_core::lang::LocalizedText;

/// Problems with the dates and times of a text.
pub(super) fn issues(text: &str) -> Vec<LocalizedText> {
    let letters: Vec<char> = text.chars().collect();
    let mut issues = Vec::new();
    let mut dates = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let begins = letters[at].is_ascii_digit() && (at == 0 || !joined(letters[at - 1]));
        if !begins {
            at += 1;
        } else if let Some((date, end)) = date(&letters, at) {
            if !date.exists() {
                let quoted: String = letters[at..end].iter().collect();
                issues.push(LocalizedText::new(
                    format!("`{quoted}` is no date"),
                    format!("`{quoted}` 不是有效日期"),
                ));
            }
            dates.push((date, at, end));
            at = end;
        } else if let Some((possible, end)) = time(&letters, at) {
            if !possible {
                let quoted: String = letters[at..end].iter().collect();
                issues.push(LocalizedText::new(
                    format!("`{quoted}` is no time"),
                    format!("`{quoted}` 不是有效时间"),
                ));
            }
            at = end;
        } else {
            at += letters[at..].iter().take_while(|letter| letter.is_ascii_digit()).count();
        }
    }
    issues.extend(end_before_start(&letters, &dates));
    issues
}

/// Whether digits after this character are part of a longer token: a version, an address, a word.
fn joined(before: char) -> bool {
    before.is_ascii_alphanumeric() || matches!(before, '.' | '-' | '/' | ':' | '_')
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    fn exists(self) -> bool {
        let leap =
            self.year.is_multiple_of(4) && !self.year.is_multiple_of(100) || self.year.is_multiple_of(400);
        let days = match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            _ => 0,
        };
        (1..=days).contains(&self.day)
    }
}

/// Parses `2026-11-15`, `2026/11/15` or `2026年11月15日`. Returns the date and its end.
fn date(letters: &[char], at: usize) -> Option<(Date, usize)> {
    let (year, end) = digits(letters, at, 4..=4)?;
    let separator = *letters.get(end)?;
    let second = match separator {
        '-' | '/' => separator,
        '年' => '月',
        _ => return None,
    };
    let (month, end) = digits(letters, end + 1, 1..=2)?;
    (*letters.get(end)? == second).then_some(())?;
    let (day, mut end) = digits(letters, end + 1, 1..=2)?;
    if separator == '年' {
        (*letters.get(end)? == '日').then_some(())?;
        end += 1;
    } else if letters.get(end).is_some_and(|next| matches!(next, '-' | '/') || next.is_ascii_digit()) {
        return None;
    }
    ((1000..=9999).contains(&year)).then_some((Date { year, month, day }, end))
}

/// Parses `14:30` or `14:30:59`. Both parts have two digits, so that `16:9` and `3:2` do not match. Returns validity
/// and end.
fn time(letters: &[char], at: usize) -> Option<(bool, usize)> {
    let (hour, end) = digits(letters, at, 2..=2)?;
    (*letters.get(end)? == ':').then_some(())?;
    let (minute, mut end) = digits(letters, end + 1, 2..=2)?;
    let mut second = 0;
    if letters.get(end) == Some(&':') {
        (second, end) = digits(letters, end + 1, 2..=2)?;
    }
    if letters.get(end).is_some_and(|next| next.is_ascii_digit() || *next == ':') {
        return None;
    }
    let midnight = hour == 24 && minute == 0 && second == 0;
    Some((midnight || hour < 24 && minute < 60 && second <= 60, end))
}

fn digits(letters: &[char], at: usize, count: std::ops::RangeInclusive<usize>) -> Option<(u32, usize)> {
    let digit_count = letters.get(at..)?.iter().take_while(|letter| letter.is_ascii_digit()).count();
    if !count.contains(&digit_count) {
        return None;
    }
    let number: String = letters[at..at + digit_count].iter().collect();
    Some((number.parse().ok()?, at + digit_count))
}

/// Reports two dates joined by `to` or `至` of which the second is before the first.
fn end_before_start(letters: &[char], dates: &[(Date, usize, usize)]) -> Option<LocalizedText> {
    dates.windows(2).find_map(|pair| {
        let [(from, start, end), (to, next, last)] = pair else { return None };
        let between: String = letters[*end..*next].iter().collect();
        let joins = ["to", "until", "till", "–", "~", "至", "到"].contains(&between.trim());
        if !(joins && from.exists() && to.exists() && to < from) {
            return None;
        }
        let quoted: String = letters[*start..*last].iter().collect();
        Some(LocalizedText::new(
            format!("`{quoted}` ends before it begins"),
            format!("`{quoted}` 结束早于开始"),
        ))
    })
}
