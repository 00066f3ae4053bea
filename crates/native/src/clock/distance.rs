//! The distance between two moments, in days if both are dates, as text in both languages.

use jiff::civil::Time;
use jiff::{Unit, Zoned};
use toolhub_core::lang::LocalizedText;

use super::weekday_in_chinese;

/// Two moments, and the origin of the first.
#[derive(Debug, Clone)]
pub(super) struct Distance {
    /// The start.
    pub(super) from: Zoned,
    /// Whether the start is the current time.
    pub(super) from_now: bool,
    /// The end.
    pub(super) until: Zoned,
}

/// The difference of two moments.
struct Between {
    /// Days, and the remaining hours, minutes and seconds; none is negative.
    days: i64,
    rest: [i64; 3],
    /// Years, months and days, if that is more informative.
    calendar: Option<[i64; 3]>,
    is_past: bool,
}

impl Distance {
    /// Whether only days are counted: for a date without a time, hours are irrelevant.
    pub(super) fn in_days(&self) -> bool {
        let is_day = |moment: &Zoned| moment.time() == Time::midnight();
        is_day(&self.until) && (self.from_now || is_day(&self.from))
    }

    /// The number of days from start to end; negative if the end is in the past.
    pub(super) fn days(&self) -> i64 {
        let from = self.from.with_time_zone(self.until.time_zone().clone());
        match self.in_days() {
            true => from.date().until(self.until.date()).map_or(0, |span| span.get_days().into()),
            false => (self.until.timestamp().as_second() - from.timestamp().as_second()) / 86_400,
        }
    }

    fn between(&self) -> Between {
        let is_past = self.until < self.from && !(self.in_days() && self.days() == 0);
        if self.in_days() {
            let from = self.from.with_time_zone(self.until.time_zone().clone()).date();
            let (first, last) = if is_past { (self.until.date(), from) } else { (from, self.until.date()) };
            let span = first.until((Unit::Year, last)).unwrap_or_default();
            let calendar = [span.get_years().into(), span.get_months().into(), span.get_days().into()];
            let months = calendar[0] > 0 || calendar[1] > 0;
            return Between {
                days: self.days().abs(),
                rest: [0; 3],
                calendar: months.then_some(calendar),
                is_past,
            };
        }
        let seconds = (self.until.timestamp().as_second() - self.from.timestamp().as_second()).abs();
        let rest = [seconds % 86_400 / 3_600, seconds % 3_600 / 60, seconds % 60];
        Between { days: seconds / 86_400, rest, calendar: None, is_past }
    }

    /// A text with the distance and the weekday of the end.
    pub(super) fn text(&self) -> LocalizedText {
        let between = self.between();
        let (en, zh) = (between.english(), between.chinese());
        let formatted = |moment: &Zoned| {
            let form = if self.in_days() { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
            let date = moment.strftime(form).to_string();
            let weekday = moment.strftime("%A").to_string();
            (format!("{date} ({weekday})"), format!("{date}（{}）", weekday_in_chinese(moment.weekday())))
        };
        let ((from, from_zh), (until, until_zh)) = (formatted(&self.from), formatted(&self.until));
        match (self.from_now, between.is_past) {
            (true, _) if self.in_days() && between.days == 0 => {
                LocalizedText::new(format!("{until} is today"), format!("{until_zh}就是今天"))
            }
            (true, false) => {
                LocalizedText::new(format!("{en} until {until}"), format!("距离 {until_zh}还有 {zh}"))
            }
            (true, true) => {
                LocalizedText::new(format!("{en} since {until}"), format!("距离 {until_zh}已过去 {zh}"))
            }
            (false, false) => LocalizedText::new(
                format!("{en} from {from} to {until}"),
                format!("从 {from_zh}到 {until_zh}共 {zh}"),
            ),
            (false, true) => LocalizedText::new(
                format!("{en} from {until} to {from}"),
                format!("从 {until_zh}到 {from_zh}共 {zh}"),
            ),
        }
    }
}

impl Between {
    fn english(&self) -> String {
        let some = |count: i64, unit: &str| match count {
            0 => None,
            1 => Some(format!("1 {unit}")),
            _ => Some(format!("{count} {unit}s")),
        };
        let [hours, minutes, seconds] = self.rest;
        let seconds = if self.days > 0 { 0 } else { seconds };
        let parts =
            [some(self.days, "day"), some(hours, "hour"), some(minutes, "minute"), some(seconds, "second")];
        let components: Vec<String> = parts.into_iter().flatten().collect();
        let mut text = if components.is_empty() { "0 days".to_owned() } else { components.join(" ") };
        let weeks = [some(self.days / 7, "week"), some(self.days % 7, "day")];
        let weeks: Vec<String> = weeks.into_iter().flatten().collect();
        let calendar = self.calendar.map(|[years, months, days]| {
            let parts = [some(years, "year"), some(months, "month"), some(days, "day")];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let long = self.days >= 7 && self.rest == [0; 3];
        let more: Vec<String> = long.then(|| weeks.join(" ")).into_iter().chain(calendar).collect();
        if !more.is_empty() {
            text.push_str(&format!(" ({})", more.join("; ")));
        }
        text
    }

    fn chinese(&self) -> String {
        let some = |count: i64, unit: &str| (count > 0).then(|| format!("{count} {unit}"));
        let [hours, minutes, seconds] = self.rest;
        let seconds = if self.days > 0 { 0 } else { seconds };
        let parts = [some(self.days, "天"), some(hours, "小时"), some(minutes, "分钟"), some(seconds, "秒")];
        let components: Vec<String> = parts.into_iter().flatten().collect();
        let mut text = if components.is_empty() { "0 天".to_owned() } else { components.join(" ") };
        let weeks = [some(self.days / 7, "周"), some(self.days % 7, "天")];
        let weeks: Vec<String> = weeks.into_iter().flatten().collect();
        let calendar = self.calendar.map(|[years, months, days]| {
            let parts = [some(years, "年"), some(months, "个月"), some(days, "天")];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let long = self.days >= 7 && self.rest == [0; 3];
        let more: Vec<String> = long.then(|| weeks.join(" ")).into_iter().chain(calendar).collect();
        if !more.is_empty() {
            text.push_str(&format!("（{}）", more.join("；")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::lang::{Lang, Localize as _};

    use super::*;

    #[test]
    fn formats_distances() {
        let check = |from: &str, until: &str, expect: (&str, &str)| {
            let (from, from_now) = from.strip_prefix("now ").map_or((from, false), |from| (from, true));
            let distance = Distance { from: from.parse().unwrap(), from_now, until: until.parse().unwrap() };
            let rendered = distance.text();
            assert_eq!(
                (rendered.localize(Lang::En).as_str(), rendered.localize(Lang::Zh).as_str()),
                expect,
                "{from} {until}"
            );
        };
        let now = "now 2026-11-15T03:34:56[UTC]";
        check(
            now,
            "2026-12-25T00:00[UTC]",
            (
                "40 days (5 weeks 5 days; 1 month 10 days) until 2026-12-25 (Friday)",
                "距离 2026-12-25（星期五）还有 40 天（5 周 5 天；1 个月 10 天）",
            ),
        );
        check(
            now,
            "2026-11-16T00:00[UTC]",
            ("1 day until 2026-11-16 (Monday)", "距离 2026-11-16（星期一）还有 1 天"),
        );
        check(now, "2026-11-15T00:00[UTC]", ("2026-11-15 (Sunday) is today", "2026-11-15（星期日）就是今天"));
        check(
            now,
            "2025-11-15T00:00[UTC]",
            (
                "365 days (52 weeks 1 day; 1 year) since 2025-11-15 (Saturday)",
                "距离 2025-11-15（星期六）已过去 365 天（52 周 1 天；1 年）",
            ),
        );
        check(
            "2026-03-01T00:00[UTC]",
            "2026-03-05T00:00[UTC]",
            (
                "4 days from 2026-03-01 (Sunday) to 2026-03-05 (Thursday)",
                "从 2026-03-01（星期日）到 2026-03-05（星期四）共 4 天",
            ),
        );
        check(
            now,
            "2026-11-15T18:00[UTC]",
            (
                "14 hours 25 minutes 4 seconds until 2026-11-15 18:00 (Sunday)",
                "距离 2026-11-15 18:00（星期日）还有 14 小时 25 分钟 4 秒",
            ),
        );
        check(
            "2026-03-05T00:00[UTC]",
            "2026-03-01T00:00[UTC]",
            (
                "4 days from 2026-03-01 (Sunday) to 2026-03-05 (Thursday)",
                "从 2026-03-01（星期日）到 2026-03-05（星期四）共 4 天",
            ),
        );
    }
}
