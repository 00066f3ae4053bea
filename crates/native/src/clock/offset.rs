//! Parses relative times: `+3h`, `3 hours ago`, `tomorrow`, `两个半小时后`.

use jiff::Span;
use jiff::civil::Date;
use toolhub_core::lang::LocalizedText;

use super::plain::plain;
use super::{numerals, weekday};

/// Words for an offset in days, months and years.
const WORDS: [(&str, [i64; 3]); 34] = [
    ("now", [0, 0, 0]),
    ("today", [0, 0, 0]),
    ("tomorrow", [1, 0, 0]),
    ("yesterday", [-1, 0, 0]),
    ("day after tomorrow", [2, 0, 0]),
    ("the day after tomorrow", [2, 0, 0]),
    ("day before yesterday", [-2, 0, 0]),
    ("the day before yesterday", [-2, 0, 0]),
    ("next week", [7, 0, 0]),
    ("last week", [-7, 0, 0]),
    ("next month", [0, 1, 0]),
    ("last month", [0, -1, 0]),
    ("next year", [0, 0, 1]),
    ("last year", [0, 0, -1]),
    ("现在", [0, 0, 0]),
    ("今天", [0, 0, 0]),
    ("明天", [1, 0, 0]),
    ("明日", [1, 0, 0]),
    ("昨天", [-1, 0, 0]),
    ("昨日", [-1, 0, 0]),
    ("后天", [2, 0, 0]),
    ("前天", [-2, 0, 0]),
    ("大后天", [3, 0, 0]),
    ("大前天", [-3, 0, 0]),
    ("下周", [7, 0, 0]),
    ("下星期", [7, 0, 0]),
    ("上周", [-7, 0, 0]),
    ("上星期", [-7, 0, 0]),
    ("下个月", [0, 1, 0]),
    ("上个月", [0, -1, 0]),
    ("今年", [0, 0, 0]),
    ("明年", [0, 0, 1]),
    ("后年", [0, 0, 2]),
    ("去年", [0, 0, -1]),
];

/// Parses a span, relative to the date `from`.
pub(super) fn parse(text: &str, from: Date) -> Result<Span, LocalizedText> {
    if let Some(at) = text.find('M').filter(|at| is_unit_alone(text, *at)) {
        let number = text[..at].trim_end();
        return Err(LocalizedText::new(
            format!("`{text}` has two readings: write `{number}min` for minutes, `{number}mo` for months"),
            format!("`{text}` 有两种读法：分钟请写 `{number}min`，月请写 `{number}mo`"),
        ));
    }
    let plain = plain(text);
    if let Some(span) = span(&plain, from) {
        return Ok(span);
    }
    // If the text is valid with a small number, the number is too large.
    let mut small = String::new();
    for c in plain.chars() {
        match c.is_ascii_digit() {
            true if small.ends_with('1') => {}
            true => small.push('1'),
            false => small.push(c),
        }
    }
    Err(if span(&small, from).is_some() {
        too_far(text)
    } else {
        LocalizedText::new(
            format!(
                "`{text}` is no offset: write `+3h`, `-90m`, `in 2 days`, `3 hours ago`, `tomorrow`, `next monday` or \
                 `2天后`"
            ),
            format!("`{text}` 不是时间偏移：请写成 `+3h`、`-90m`、`2天后`、`三小时前`、`明天` 或 `下周一`"),
        )
    })
}

/// The message for an offset outside of the calendar.
pub(super) fn too_far(text: &str) -> LocalizedText {
    LocalizedText::new(
        format!("`{text}` is too far: it leads out of the calendar, which ends with the year 9999"),
        format!("`{text}` 太远：超出了日历，日历到 9999 年为止"),
    )
}

/// The span of a word.
pub(super) fn word(plain: &str) -> Option<Span> {
    let (_, [days, months, years]) = WORDS.iter().find(|(word, _)| *word == plain)?;
    Amounts { days: *days, months: *months, years: *years, ..Amounts::default() }.span()
}

fn span(plain: &str, from: Date) -> Option<Span> {
    let weekday = || Span::new().try_days(weekday::days_to_weekday(plain, from)?).ok();
    word(plain).or_else(weekday).or_else(|| if plain.is_ascii() { english(plain) } else { chinese(plain) })
}

/// Whether the letter at `at` is the unit of a number, as in `+1M` but not in `PT1M`.
fn is_unit_alone(text: &str, at: usize) -> bool {
    text[..at].trim_end().ends_with(|c: char| c.is_ascii_digit())
        && !text[at + 1..].starts_with(|c: char| c.is_alphabetic())
        && !text.contains(['P', 'p'])
}

/// English words around a duration that jiff parses.
fn english(text: &str) -> Option<Span> {
    let (mut rest, mut sign) = (text, 1);
    for (before, direction) in [("in ", 1), ("after ", 1), ("+", 1), ("-", -1), ("minus ", -1), ("plus ", 1)]
    {
        if let Some(after) = rest.strip_prefix(before) {
            (rest, sign) = (after.trim_start(), direction);
            break;
        }
    }
    for (after, direction) in [
        (" from now", 1),
        (" from today", 1),
        (" after today", 1),
        (" before today", -1),
        (" before now", -1),
        (" after", 1),
        (" from", 1),
        (" before", -1),
        (" later", 1),
        (" hence", 1),
        (" ahead", 1),
        (" ago", -1),
        (" earlier", -1),
        (" back", -1),
    ] {
        if let Some(before) = rest.strip_suffix(after) {
            (rest, sign) = (before.trim_end(), sign * direction);
            break;
        }
    }
    if rest.starts_with(['+', '-']) {
        return None;
    }
    // ISO 8601 requires capitals.
    if rest.starts_with('p') {
        let span: Span = rest.to_uppercase().parse().ok()?;
        return span.checked_mul(sign).ok();
    }
    let rest = rest.replace("half an hour", "30 minutes").replace("half hour", "30 minutes");
    let words: Vec<&str> = rest.split_whitespace().filter(|word| *word != "and").map(number_word).collect();
    let span: Span = words.join(" ").parse().ok()?;
    span.checked_mul(sign).ok()
}

fn number_word(word: &str) -> &str {
    match word {
        "a" | "an" | "one" => "1",
        "two" => "2",
        "three" => "3",
        "four" => "4",
        "five" => "5",
        "six" => "6",
        "seven" => "7",
        "eight" => "8",
        "nine" => "9",
        "ten" => "10",
        "eleven" => "11",
        "twelve" => "12",
        "fifteen" => "15",
        "twenty" => "20",
        "thirty" => "30",
        "forty" => "40",
        "fifty" => "50",
        "sixty" => "60",
        "ninety" => "90",
        "hundred" => "100",
        other => other,
    }
}

/// Amounts per unit.
#[derive(Debug, Default, Clone, Copy)]
struct Amounts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
}

impl Amounts {
    fn span(self) -> Option<Span> {
        Span::new()
            .try_years(self.years)
            .and_then(|span| span.try_months(self.months))
            .and_then(|span| span.try_days(self.days))
            .and_then(|span| span.try_hours(self.hours))
            .and_then(|span| span.try_minutes(self.minutes))
            .and_then(|span| span.try_seconds(self.seconds))
            .ok()
    }

    /// Adds `count` of a unit, plus half of one if `half`.
    fn add(&mut self, unit: &str, count: i64, half: bool) -> Option<()> {
        let (whole, each, part, half_each) = match unit {
            "年" => (&mut self.years, 1, &mut self.months, 6),
            "月" => (&mut self.months, 1, &mut self.days, 15),
            "周" | "星期" | "礼拜" => (&mut self.days, 7, &mut self.hours, 84),
            "天" | "日" => (&mut self.days, 1, &mut self.hours, 12),
            "小时" | "钟头" | "时" => (&mut self.hours, 1, &mut self.minutes, 30),
            "刻钟" => (&mut self.minutes, 15, &mut self.seconds, 450),
            "分钟" | "分" => (&mut self.minutes, 1, &mut self.seconds, 30),
            "秒钟" | "秒" if !half => {
                self.seconds = self.seconds.checked_add(count)?;
                return Some(());
            }
            _ => return None,
        };
        *whole = whole.checked_add(count.checked_mul(each)?)?;
        if half {
            *part = part.checked_add(half_each)?;
        }
        Some(())
    }
}

/// Units, longest first among those with a common prefix.
const UNITS: [&str; 15] =
    ["年", "月", "星期", "礼拜", "周", "天", "日", "小时", "钟头", "时", "刻钟", "分钟", "分", "秒钟", "秒"];

/// `2天后`, `一个半小时前`, `1小时30分钟之后`, `半年前`.
fn chinese(text: &str) -> Option<Span> {
    let mut rest: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut sign = 1;
    for from in ["从今天起", "从今天开始", "从现在起", "今天起", "今天", "现在", "从今天算起", "自今天起"]
    {
        rest = rest.strip_prefix(from).map_or(rest.clone(), str::to_owned);
    }
    for (before, direction) in [("再过", 1), ("过", 1), ("+", 1), ("-", -1)] {
        if let Some(after) = rest.strip_prefix(before) {
            (rest, sign) = (after.to_owned(), direction);
            break;
        }
    }
    for (after, direction) in [("之后", 1), ("以后", 1), ("后", 1), ("之前", -1), ("以前", -1), ("前", -1)]
    {
        if let Some(before) = rest.strip_suffix(after) {
            (rest, sign) = (before.to_owned(), sign * direction);
            break;
        }
    }
    let mut amounts = Amounts::default();
    let mut rest = rest.as_str();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c| !numerals::is_numeral(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        // A half precedes the unit (`一个半小时`, `半天`) or follows it (`两天半`).
        let after = after.strip_prefix('个').unwrap_or(after);
        let (half_before, after) = after.strip_prefix('半').map_or((false, after), |after| (true, after));
        let after = after.strip_prefix('个').unwrap_or(after);
        let unit = UNITS.into_iter().find(|unit| after.starts_with(unit))?;
        let after = &after[unit.len()..];
        let (half_after, after) = after.strip_prefix('半').map_or((false, after), |after| (true, after));
        let count = match numerals::parse(number) {
            Some(count) => count,
            None if number.is_empty() && half_before => 0,
            None => return None,
        };
        amounts.add(unit, count, half_before || half_after)?;
        rest = after.trim_start_matches(['零', '又', ',', '、']);
    }
    amounts.span()?.checked_mul(sign).ok()
}
