//! Resolves time zones: IANA names, places, offsets, and unambiguous abbreviations.

use jiff::Zoned;
use jiff::tz::{Offset, TimeZone};
use toolhub_core::lang::LocalizedText;

use super::cities;
use super::numerals;
use super::plain::plain;
use crate::suggest;

/// Abbreviations and their possible zones; ambiguous ones are rejected with a list. A summer or winter abbreviation
/// means the zone all year, as in common use.
const ABBREVIATIONS: [(&str, &[&str]); 27] = [
    ("aedt", &["Australia/Sydney"]),
    ("aest", &["Australia/Sydney"]),
    ("akdt", &["America/Anchorage"]),
    ("akst", &["America/Anchorage"]),
    ("ast", &["America/Halifax", "Asia/Riyadh"]),
    ("awst", &["Australia/Perth"]),
    ("bst", &["Europe/London", "Asia/Dhaka"]),
    ("cdt", &["America/Chicago"]),
    ("cest", &["Europe/Paris"]),
    ("cst", &["America/Chicago", "Asia/Shanghai", "America/Havana"]),
    ("ect", &["America/Guayaquil", "Europe/Paris"]),
    ("edt", &["America/New_York"]),
    ("est", &["America/New_York"]),
    ("hkt", &["Asia/Hong_Kong"]),
    ("ist", &["Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"]),
    ("jst", &["Asia/Tokyo"]),
    ("kst", &["Asia/Seoul"]),
    ("mdt", &["America/Denver"]),
    ("msk", &["Europe/Moscow"]),
    ("mst", &["America/Denver"]),
    ("nzdt", &["Pacific/Auckland"]),
    ("nzst", &["Pacific/Auckland"]),
    ("pdt", &["America/Los_Angeles"]),
    ("pst", &["America/Los_Angeles"]),
    ("sgt", &["Asia/Singapore"]),
    ("sst", &["Asia/Singapore", "Pacific/Pago_Pago"]),
    ("wst", &["Australia/Perth", "Pacific/Apia"]),
];

const LOCAL: [&str; 5] = ["local", "system", "here", "本地", "当地"];
const UTC: [&str; 7] = ["utc", "gmt", "z", "zulu", "greenwich mean time", "世界时", "格林威治时间"];

/// Resolves a zone name.
pub(super) fn resolve(name: &str, now: &Zoned) -> Result<TimeZone, LocalizedText> {
    let lower = plain(name);
    if LOCAL.contains(&lower.as_str()) {
        return Ok(now.time_zone().clone());
    }
    if UTC.contains(&lower.as_str()) {
        return Ok(TimeZone::UTC);
    }
    if let Some(offset) = fixed_offset(&lower) {
        return offset.map(TimeZone::fixed);
    }
    if let Some((_, zones)) = ABBREVIATIONS.iter().find(|(short, _)| *short == lower) {
        return choose(name, zones);
    }
    // Places take precedence over IANA names without a slash, which are legacy names, some of two letters.
    let iana = || TimeZone::get(&lower.replace(' ', "_"));
    let by_iana = if lower.contains('/') { iana().ok() } else { None };
    if let Some(zone) = by_iana {
        return Ok(zone);
    }
    match cities::zones(name).as_slice() {
        [] => iana().map_err(|_| unknown(name)),
        zones => choose(name, zones),
    }
}

fn choose(name: &str, zones: &[&str]) -> Result<TimeZone, LocalizedText> {
    match zones {
        [zone] => TimeZone::get(zone).map_err(|_| unknown(zone)),
        several => {
            let zones = suggest::list(several);
            Err(LocalizedText::new(
                format!("`{name}` is ambiguous: name the zone, one of {zones}"),
                format!("`{name}` 有多个可能：请写出时区，为 {zones} 之一"),
            ))
        }
    }
}

fn unknown(name: &str) -> LocalizedText {
    match cities::nearest(name).as_slice() {
        [] => LocalizedText::new(
            format!(
                "the time zone of `{name}` is not known: give an IANA name such as `Asia/Tokyo`, a larger city of the \
                 same zone, or an offset such as `UTC+8`"
            ),
            format!(
                "不知道 `{name}` 的时区：请给出 IANA 名称（如 `Asia/Tokyo`）、同一时区的大城市，或时差（如 `UTC+8`）"
            ),
        ),
        similar => {
            let similar = suggest::list(similar);
            LocalizedText::new(
                format!("the time zone of `{name}` is not known: did you mean {similar}?"),
                format!("不知道 `{name}` 的时区：是否指 {similar}？"),
            )
        }
    }
}

/// `UTC+8`, `+05:30`, `-0330`, `东八区`; `None` if the text is not an offset.
fn fixed_offset(text: &str) -> Option<Result<Offset, LocalizedText>> {
    let bad = || {
        Err(LocalizedText::new(
            format!("`{text}` is no offset: they run from -12:00 to +14:00"),
            format!("`{text}` 不是时差：时差从 -12:00 到 +14:00"),
        ))
    };
    if let Some(hours) = text.strip_suffix('区').and_then(chinese_offset) {
        let offset = Offset::from_hours(hours).ok().filter(|_| (-12..=14).contains(&hours));
        return Some(offset.map_or_else(bad, Ok));
    }
    let rest = text.strip_prefix("utc").or_else(|| text.strip_prefix("gmt")).unwrap_or(text).trim();
    let (sign, digits) = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
        (Some(digits), _) => (1, digits.trim()),
        (_, Some(digits)) => (-1, digits.trim()),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() > 2 && digits.is_ascii() => digits.split_at(digits.len() - 2),
        None => (digits, "0"),
    };
    let number = |text: &str, max: i32| {
        let fits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| text.parse::<i32>().ok()).flatten().filter(|number| *number <= max)
    };
    let seconds =
        number(hours, 14).zip(number(minutes, 59)).map(|(hours, minutes)| sign * (hours * 60 + minutes) * 60);
    let offset = seconds.filter(|seconds| (-12 * 3600..=14 * 3600).contains(seconds));
    Some(offset.and_then(|seconds| Offset::from_seconds(seconds).ok()).map_or_else(bad, Ok))
}

/// `东八` is eight hours ahead.
fn chinese_offset(text: &str) -> Option<i8> {
    let (sign, number) = match (text.strip_prefix('东'), text.strip_prefix('西')) {
        (Some(number), _) => (1, number),
        (_, Some(number)) => (-1, number),
        _ => return None,
    };
    let hours: i8 = numerals::parse(number)?.try_into().ok()?;
    hours.checked_mul(sign)
}

/// The name of a moment's zone.
pub(super) fn name(moment: &Zoned) -> String {
    match moment.time_zone().iana_name() {
        _ if moment.time_zone().is_unknown() => "UTC".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("UTC{}", moment.strftime("%:z")),
    }
}
