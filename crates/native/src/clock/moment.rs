//! Given moments: ISO 8601 with or without a zone, Unix time, and a time with a place after it.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::zone;

/// The moment that `text` means, in `zone`. Without an offset or a place it is the local time of `zone`; where that
/// was skipped or repeated by a change of the clocks, jiff's `compatible` rule holds: the time goes on from the gap,
/// and the earlier of two is meant.
pub(super) fn parse(text: &str, zone: &TimeZone, now: &Zoned) -> Result<Zoned, String> {
    let bad = || {
        format!(
            "`{text}` is no time: write `2026-03-29T15:00`, with `Z`, `+02:00` or a place after it where it is not the \
             local time of `zone`"
        )
    };
    if text.eq_ignore_ascii_case("now") || text == "现在" {
        return Ok(now.with_time_zone(zone.clone()));
    }
    if let Some(timestamp) = unix(text) {
        return Ok(timestamp.to_zoned(zone.clone()));
    }
    // `2026/03/29` is common, but no ISO.
    let dashed = match text.as_bytes() {
        [.., _] if text.get(4..5) == Some("/") => text.replacen('/', "-", 2),
        _ => text.to_owned(),
    };
    if let Ok(zoned) = dashed.parse::<Zoned>() {
        return Ok(zoned.with_time_zone(zone.clone()));
    }
    if let Ok(timestamp) = dashed.parse::<Timestamp>() {
        return Ok(timestamp.to_zoned(zone.clone()));
    }
    if let Some(local) = local_time(&dashed, zone, now) {
        return zone.to_zoned(local).map_err(|_| bad());
    }
    // A place after the time, of one word or of several.
    for (at, _) in dashed.match_indices(' ') {
        let (time, place) = dashed.split_at(at);
        // The time first: looking for a place that is none is slow.
        if local_time(time.trim(), zone, now).is_some()
            && let Ok(from) = zone::resolve(place.trim(), now)
            && let Some(local) = local_time(time.trim(), &from, now)
        {
            return from.to_zoned(local).map(|moment| moment.with_time_zone(zone.clone())).map_err(|_| bad());
        }
    }
    Err(bad())
}

/// A date and time, or a time alone, which is today's.
fn local_time(text: &str, zone: &TimeZone, now: &Zoned) -> Option<DateTime> {
    if let Ok(time) = text.parse::<DateTime>() {
        return Some(time);
    }
    let time = text.contains(':').then(|| text.parse::<Time>().ok()).flatten()?;
    Some(now.with_time_zone(zone.clone()).date().to_datetime(time))
}

/// Seconds, or milliseconds where there are too many, since 1970.
fn unix(text: &str) -> Option<Timestamp> {
    let digits = text.strip_prefix('@').unwrap_or(text);
    let count = digits.strip_prefix('-').unwrap_or(digits).len();
    let number: i64 = digits.parse().ok().filter(|_| count >= 9 || text.starts_with('@'))?;
    if count >= 12 { Timestamp::from_millisecond(number).ok() } else { Timestamp::from_second(number).ok() }
}
