//! `get_time`: the current or a given time, anywhere. The submodules parse zones, moments and offsets; only the tool
//! function reads the clock.

mod cities;
mod civil;
mod distance;
mod holidays;
mod moment;
mod numerals;
mod offset;
mod plain;
mod weekday;
mod zone;

use jiff::civil::Weekday;
use jiff::{Span, Timestamp, Zoned, tz::TimeZone};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};
use toolhub_macros::tool;

use crate::localized_output::with_chinese;

use distance::Distance;

const MAX_ARGUMENT_BYTES: usize = 200;

/// Tells the time now, or converts a given time, for any time zone, city or country; counts the days until a date.
///
/// Answers with the local time, its UTC offset, the weekday and the Unix time; with `until`, with how long it is until then,
/// or since then.
#[tool(read_only, open_world = false, crate = crate::private)]
pub async fn get_time(
    #[doc = "IANA zone (`Asia/Tokyo`), city, country or region in English, Chinese or Japanese (`New York`, `北京`, \
             `US Eastern`), or offset (`UTC+8`); the system's own zone if left out"]
    zone: Option<String>,
    #[doc = "Shift from that time: `+3h`, `-90m`, `+1mo`, `in 2 days`, `3 hours ago`, `tomorrow`, `next monday`, `2天后`, \
             `三小时前`, `下周一`, `P1DT2H`"]
    offset: Option<String>,
    #[doc = "The time to convert instead of now: `2026-03-29T01:30` (local time of `zone`), `2026-03-29T01:30Z`, \
             `2026-03-29 15:00 New York`, `3pm`, `tomorrow 15:30`, `明天下午3点`"]
    at: Option<String>,
    #[doc = "Count the days from that time until this one: `2026-12-25`, `Christmas`, `国庆节`, `next friday`, `18:00`; a day \
             that is past counts the days since then"]
    until: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let system = TimeZone::try_system().unwrap_or_else(|_| match std::env::var_os("TZ") {
        Some(_) => TimeZone::unknown(),
        // A system without a configured zone uses UTC.
        None => TimeZone::UTC,
    });
    let now = Timestamp::now().to_zoned(system);
    let answer = time_at(&now, &TimeRequest { zone, offset, at, until }).map_err(ToolError::failed)?;
    ToolOutput::from_raw(answer.describe()).ok_or(ToolError::Internal)
}

/// A request to the clock.
#[derive(Debug, Clone, Default)]
pub struct TimeRequest {
    /// The place; the zone of `now` if `None`.
    pub zone: Option<String>,
    /// The offset to add.
    pub offset: Option<String>,
    /// The time; now if `None`.
    pub at: Option<String>,
    /// The end of a distance in days, if requested.
    pub until: Option<String>,
}

/// A moment in the requested zone.
#[derive(Debug, Clone)]
pub struct TimeAnswer {
    /// The moment.
    pub moment: Zoned,
    /// Whether the requested local time is `skipped` or `repeated` by a clock change, and a note about it.
    pub clock_change: Option<(&'static str, LocalizedText)>,
    /// The distance to another moment, if requested.
    distance: Option<Distance>,
}

impl From<Zoned> for TimeAnswer {
    fn from(moment: Zoned) -> Self {
        Self { moment, clock_change: None, distance: None }
    }
}

/// Computes the requested moment in the requested zone, for the current time `now`.
pub fn time_at(now: &Zoned, request: &TimeRequest) -> Result<TimeAnswer, LocalizedText> {
    let zone = validated(&request.zone)?;
    let at = validated(&request.at)?;
    let offset = validated(&request.offset)?;
    let zone = match zone {
        Some(name) => zone::resolve(name, now)?,
        None => now.time_zone().clone(),
    };
    let answer = match at {
        Some(text) => moment::parse(text, &zone, now)?,
        None => now.with_time_zone(zone).into(),
    };
    let answer = match offset {
        Some(text) => {
            let span = offset::parse(text, answer.moment.date())?;
            shift(answer, span).map_err(|_| offset::too_far(text))?
        }
        None => answer,
    };
    let Some(text) = validated(&request.until)? else { return Ok(answer) };
    let zone = answer.moment.time_zone().clone();
    let until = match civil::next(text, answer.moment.date()) {
        Some(day) => moment::resolve_local(day.to_datetime(jiff::civil::Time::midnight()), &zone)
            .map_err(|_| moment::no_time(text))?,
        None => moment::parse(text, &zone, now)?,
    };
    let from_now = at.is_none() && offset.is_none();
    let distance = Distance { from: answer.moment.clone(), from_now, until: until.moment };
    Ok(TimeAnswer { distance: Some(distance), ..answer })
}

fn shift(from: TimeAnswer, span: Span) -> Result<TimeAnswer, jiff::Error> {
    let moment = from.moment.checked_add(span)?;
    // Adding days or months yields a local time, which a clock change may skip or repeat.
    let local = from.moment.datetime().checked_add(span)?;
    let by_days =
        [span.get_hours().into(), span.get_minutes(), span.get_seconds()] == [0; 3] && !span.is_zero();
    let clock_change =
        if by_days { moment::resolve_local(local, moment.time_zone())?.clock_change } else { None };
    Ok(TimeAnswer { moment, clock_change: from.clock_change.or(clock_change), distance: None })
}

/// The trimmed text unless it is blank. Rejects long texts, for which the search for similar names would be slow.
fn validated(text: &Option<String>) -> Result<Option<&str>, LocalizedText> {
    match text.as_deref().map(str::trim) {
        Some(text) if text.len() > MAX_ARGUMENT_BYTES => {
            let length = text.len();
            Err(LocalizedText::new(
                format!("an argument has {length} bytes, more than {MAX_ARGUMENT_BYTES}"),
                format!("参数有 {length} 字节，超过 {MAX_ARGUMENT_BYTES}"),
            ))
        }
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

impl TimeAnswer {
    /// The answer as text in both languages, and as an object.
    fn describe(&self) -> RawJson {
        let (mut fields, mut message) = match &self.distance {
            Some(distance) => distance_fields(distance),
            None => moment_fields(&self.moment),
        };
        if let Some((change, note)) = &self.clock_change {
            fields = fields.with("clock_change", *change);
            message = with_note(&message, note);
        }
        if self.moment.time_zone().is_unknown() {
            let note = LocalizedText::new(
                "the variable `TZ` of this machine names no zone, so this is UTC: give `zone`",
                "本机的变量 `TZ` 不是时区，因此这是 UTC：请给出 `zone`",
            );
            message = with_note(&message, &note);
        }
        let fields = fields.with("text", message.localize(Lang::En));
        with_chinese(&message).with("structuredContent", fields).into_raw()
    }
}

fn moment_fields(moment: &Zoned) -> (RawObject, LocalizedText) {
    let zone = zone::name(moment);
    let weekday = moment.strftime("%A").to_string();
    let utc_offset = moment.strftime("%:z").to_string();
    let time = format!("{} {utc_offset}", moment.strftime("%Y-%m-%d %H:%M:%S"));
    let message = LocalizedText::new(
        format!("{time} ({zone}, {weekday})"),
        format!("{time}（{zone}，{}）", weekday_in_chinese(moment.weekday())),
    );
    let fields = RawObject::default()
        .with("time", moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        .with("zone", zone)
        .with("weekday", weekday)
        .with("utc_offset", utc_offset)
        .with("unix", RawJson::of(&moment.timestamp().as_second()));
    (fields, message)
}

fn distance_fields(distance: &Distance) -> (RawObject, LocalizedText) {
    let written = |moment: &Zoned| moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    let seconds = distance.until.timestamp().as_second() - distance.from.timestamp().as_second();
    let fields = RawObject::default()
        .with("from", written(&distance.from))
        .with("until", written(&distance.until))
        .with("weekday", distance.until.strftime("%A").to_string())
        .with("days", RawJson::of(&distance.days()))
        .with("seconds", RawJson::of(&seconds));
    (fields, distance.text())
}

fn with_note(message: &LocalizedText, note: &LocalizedText) -> LocalizedText {
    let with = |lang: Lang| format!("{} [{}]", message.localize(lang), note.localize(lang));
    LocalizedText::new(with(Lang::En), with(Lang::Zh))
}

pub(super) fn weekday_in_chinese(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "星期一",
        Weekday::Tuesday => "星期二",
        Weekday::Wednesday => "星期三",
        Weekday::Thursday => "星期四",
        Weekday::Friday => "星期五",
        Weekday::Saturday => "星期六",
        Weekday::Sunday => "星期日",
    }
}

#[cfg(test)]
mod tests;
