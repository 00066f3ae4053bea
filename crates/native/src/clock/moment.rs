//! Parses moments: ISO 8601 with or without a zone, Unix time, a local time in words, and any of these with a place.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use toolhub_core::lang::LocalizedText;

use super::{TimeAnswer, civil, zone};

/// Parses a moment and converts it to `zone`. Without an offset or a place it is a local time of `zone`.
pub(super) fn parse(text: &str, zone: &TimeZone, now: &Zoned) -> Result<TimeAnswer, LocalizedText> {
    let bad = || no_time(text);
    if text.eq_ignore_ascii_case("now") || text == "现在" {
        return Ok(now.with_time_zone(zone.clone()).into());
    }
    if let Some(timestamp) = unix(text) {
        return Ok(timestamp.to_zoned(zone.clone()).into());
    }
    // `2026/03/29` is common, but not ISO 8601.
    let dashed = match text.as_bytes() {
        [.., _] if text.get(4..5) == Some("/") => text.replacen('/', "-", 2),
        _ => text.to_owned(),
    };
    if let Ok(zoned) = dashed.parse::<Zoned>() {
        return Ok(zoned.with_time_zone(zone.clone()).into());
    }
    if let Ok(timestamp) = dashed.parse::<Timestamp>() {
        return Ok(timestamp.to_zoned(zone.clone()).into());
    }
    let local_time =
        |text: &str, zone: &TimeZone| civil::parse(text, now.with_time_zone(zone.clone()).date());
    if let Some(local) = local_time(&dashed, zone) {
        return resolve_local(local, zone).map_err(|_| bad());
    }
    // A place after the time, of one or several words; or before it, as in `北京时间下午3点`.
    let after = dashed.match_indices(' ').map(|(at, _)| dashed.split_at(at));
    let before = dashed.split_once("时间").into_iter().map(|(zone_name, time)| (time, zone_name));
    for (time, zone_name) in after.chain(before) {
        let zone_name = zone_name.trim();
        let zone_name = zone_name.strip_prefix("in ").unwrap_or(zone_name);
        // Parses the time first, since searching for an unknown place is slow.
        if local_time(time.trim(), zone).is_some()
            && let Ok(from) = zone::resolve(zone_name, now)
            && let Some(local) = local_time(time.trim(), &from)
        {
            let local_answer = resolve_local(local, &from).map_err(|_| bad())?;
            return Ok(TimeAnswer {
                moment: local_answer.moment.with_time_zone(zone.clone()),
                ..local_answer
            });
        }
    }
    Err(bad())
}

/// The message for an invalid time.
pub(super) fn no_time(text: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "`{text}` is no time: write `2026-03-29T15:00`, `3pm` or `tomorrow 15:30`, with `Z`, `+02:00` or a place \
             after it where it is not the local time of `zone`"
        ),
        format!(
            "`{text}` 不是时间：请写成 `2026-03-29T15:00`、`3pm` 或 `明天15:30`；若不是 `zone` 的当地时间，在后面加上 `Z`、\
             `+02:00` 或地名"
        ),
    )
}

/// Converts a local time to a moment. If a clock change skips or repeats it, jiff's `compatible` strategy applies: a
/// skipped time is shifted forward by the gap, and the earlier of two is used.
pub(super) fn resolve_local(local: DateTime, zone: &TimeZone) -> Result<TimeAnswer, jiff::Error> {
    let ambiguous = zone.to_ambiguous_zoned(local);
    let moment = ambiguous.clone().compatible()?;
    let (requested, zone_name) = (local.strftime("%Y-%m-%d %H:%M"), zone::name(&moment));
    let clock_change = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => {
            let note = LocalizedText::new(
                format!("{requested} does not exist in {zone_name}: the clocks skip it"),
                format!("{zone_name} 没有 {requested}：时钟在此跳过"),
            );
            Some(("skipped", note))
        }
        AmbiguousOffset::Fold { .. } => {
            let later = ambiguous.later()?;
            let offset = later.strftime("%:z");
            let note = LocalizedText::new(
                format!(
                    "{requested} comes twice in {zone_name}; this is the first, the second has the offset {offset}"
                ),
                format!("{zone_name} 有两次 {requested}；这是第一次，第二次的时差为 {offset}"),
            );
            Some(("repeated", note))
        }
    };
    Ok(TimeAnswer { moment, clock_change, distance: None })
}

/// Unix time in seconds, or in milliseconds if it has 12 or more digits.
fn unix(text: &str) -> Option<Timestamp> {
    let digits = text.strip_prefix('@').unwrap_or(text);
    let count = digits.strip_prefix('-').unwrap_or(digits).len();
    let number: i64 = digits.parse().ok().filter(|_| count >= 9 || text.starts_with('@'))?;
    if count >= 12 { Timestamp::from_millisecond(number).ok() } else { Timestamp::from_second(number).ok() }
}
