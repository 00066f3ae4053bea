//! `get_time`: the time now, or at a given moment, anywhere. Reading zones, moments and offsets is left to the files
//! beside it; nothing here but the tool itself looks at the clock.

mod cities;
mod civil;
mod moment;
mod numerals;
mod offset;
mod plain;
mod zone;

use crate::in_chinese::in_chinese;
use jiff::{Span, Timestamp, Zoned, tz::TimeZone};
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};
use toolhub_macros::tool;

const MAX_TEXT: usize = 200;

/// Tells the time now, or converts a given time, for any time zone, city or country.
///
/// Answers with the local time, its UTC offset, the weekday and the Unix time.
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
) -> Result<ToolOutput, ToolError> {
    let system = TimeZone::try_system().unwrap_or_else(|_| match std::env::var_os("TZ") {
        Some(_) => TimeZone::unknown(),
        // A machine that does not say its zone runs on UTC.
        None => TimeZone::UTC,
    });
    let now = Timestamp::now().to_zoned(system);
    let answer = time_at(&now, &TimeRequest { zone, offset, at })
        .map_err(|error| ToolError::failed(in_chinese(error)))?;
    ToolOutput::from_raw(describe(&answer)).ok_or(ToolError::Internal)
}

/// What is asked of the clock.
#[derive(Debug, Clone, Default)]
pub struct TimeRequest {
    /// Where; the zone of `now` if not given.
    pub zone: Option<String>,
    /// How much later or earlier.
    pub offset: Option<String>,
    /// When; now if not given.
    pub at: Option<String>,
}

/// A moment, in the zone that was asked for.
#[derive(Debug, Clone)]
pub struct TimeAnswer {
    /// The moment.
    pub moment: Zoned,
    /// Whether the local time that was asked for is `skipped` or `repeated` by a change of the clocks, and what is to be
    /// said about it.
    pub clock_change: Option<(&'static str, String)>,
}

impl From<Zoned> for TimeAnswer {
    fn from(moment: Zoned) -> Self {
        Self { moment, clock_change: None }
    }
}

/// The moment that `request` asks for, in the zone it asks for, when the time is `now`.
pub fn time_at(now: &Zoned, request: &TimeRequest) -> Result<TimeAnswer, String> {
    let zone = given(&request.zone)?;
    let at = given(&request.at)?;
    let offset = given(&request.offset)?;
    let zone = match zone {
        Some(name) => zone::resolve(name, now)?,
        None => now.time_zone().clone(),
    };
    let answer = match at {
        Some(text) => moment::parse(text, &zone, now)?,
        None => now.with_time_zone(zone).into(),
    };
    match offset {
        Some(text) => {
            let span = offset::parse(text, answer.moment.date())?;
            shift(answer, span).map_err(|_| offset::too_far(text))
        }
        None => Ok(answer),
    }
}

fn shift(from: TimeAnswer, span: Span) -> Result<TimeAnswer, jiff::Error> {
    let moment = from.moment.checked_add(span)?;
    // Days and months lead to a local time, which the clocks may skip or repeat.
    let local = from.moment.datetime().checked_add(span)?;
    let by_days =
        [span.get_hours().into(), span.get_minutes(), span.get_seconds()] == [0; 3] && !span.is_zero();
    let clock_change = if by_days { moment::settle(local, moment.time_zone())?.clock_change } else { None };
    Ok(TimeAnswer { moment, clock_change: from.clock_change.or(clock_change) })
}

/// What was given, unless it is blank. A long text is none of ours, and looking for names near to it takes long.
fn given(text: &Option<String>) -> Result<Option<&str>, String> {
    match text.as_deref().map(str::trim) {
        Some(text) if text.len() > MAX_TEXT => {
            Err(format!("an argument has {} bytes, more than {MAX_TEXT}", text.len()))
        }
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// The moment for people, as one text, and for programs, as an object.
fn describe(answer: &TimeAnswer) -> RawJson {
    let moment = &answer.moment;
    let zone = zone::name(moment);
    let weekday = moment.strftime("%A").to_string();
    let utc_offset = moment.strftime("%:z").to_string();
    let mut text = format!("{} {utc_offset} ({zone}, {weekday})", moment.strftime("%Y-%m-%d %H:%M:%S"));
    let mut fields = RawObject::default()
        .with("time", moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        .with("zone", zone)
        .with("weekday", weekday)
        .with("utc_offset", utc_offset)
        .with("unix", RawJson::of(&moment.timestamp().as_second()));
    if let Some((change, note)) = &answer.clock_change {
        fields = fields.with("clock_change", *change);
        text.push_str(&format!(" [{note}]"));
    }
    if moment.time_zone().is_unknown() {
        text.push_str(" [the variable `TZ` of this machine names no zone, so this is UTC: give `zone`]");
    }
    let fields = fields.with("text", text.as_str());
    let block = RawObject::default().with("type", "text").with("text", text);
    RawObject::default().with("content", RawJson::of(&[block])).with("structuredContent", fields).into_raw()
}

#[cfg(test)]
mod tests;
