//! `get_time`: the time now, or at a given moment, anywhere. Reading zones, moments and offsets is left to the files
//! beside it; nothing here but the tool itself looks at the clock.

mod cities;
mod moment;
mod numerals;
mod offset;
mod zone;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use toolhub_core::{RawJson, RawObject, ToolError, ToolOutput};
use toolhub_macros::tool;

const MAX_TEXT: usize = 200;

/// Tells the time now, or converts a given time, for any time zone, city or country.
///
/// Answers with the local time, its UTC offset, the weekday and the Unix time.
#[tool(read_only, open_world = false, crate = crate::private)]
pub async fn get_time(
    #[doc = "IANA zone (`Asia/Tokyo`), city or country in English or Chinese (`New York`, `北京`), or offset (`UTC+8`); \
             the system's own zone if left out"]
    zone: Option<String>,
    #[doc = "Shift from that time: `+3h`, `-90m`, `in 2 days`, `3 hours ago`, `tomorrow`, `2天后`, `三小时前`, `P1DT2H`"]
    offset: Option<String>,
    #[doc = "The time to convert instead of now: `2026-03-29T01:30` (local time of `zone`), `2026-03-29T01:30Z`, \
             `2026-03-29 15:00 New York`"]
    at: Option<String>,
) -> Result<ToolOutput, ToolError> {
    // A machine that does not know its zone runs on UTC.
    let system = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let now = Timestamp::now().to_zoned(system);
    let moment = time_at(&now, &TimeRequest { zone, offset, at }).map_err(ToolError::failed)?;
    ToolOutput::from_raw(describe(&moment)).ok_or(ToolError::Internal)
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

/// The moment that `request` asks for, in the zone it asks for, when the time is `now`.
pub fn time_at(now: &Zoned, request: &TimeRequest) -> Result<Zoned, String> {
    let zone = given(&request.zone)?;
    let at = given(&request.at)?;
    let offset = given(&request.offset)?;
    let zone = match zone {
        Some(name) => zone::resolve(name, now)?,
        None => now.time_zone().clone(),
    };
    let moment = match at {
        Some(text) => moment::parse(text, &zone, now)?,
        None => now.with_time_zone(zone),
    };
    match offset {
        Some(text) => moment
            .checked_add(offset::parse(text)?)
            .map_err(|_| format!("`{text}` leads out of the calendar, which ends with the year 9999")),
        None => Ok(moment),
    }
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
fn describe(moment: &Zoned) -> RawJson {
    let zone = zone::name(moment);
    let weekday = moment.strftime("%A").to_string();
    let utc_offset = moment.strftime("%:z").to_string();
    let text = format!("{} {utc_offset} ({zone}, {weekday})", moment.strftime("%Y-%m-%d %H:%M:%S"));
    let fields = RawObject::default()
        .with("time", moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        .with("zone", zone)
        .with("weekday", weekday)
        .with("utc_offset", utc_offset)
        .with("unix", RawJson::of(&moment.timestamp().as_second()))
        .with("text", text.as_str());
    let block = RawObject::default().with("type", "text").with("text", text);
    RawObject::default().with("content", RawJson::of(&[block])).with("structuredContent", fields).into_raw()
}

#[cfg(test)]
mod tests;
