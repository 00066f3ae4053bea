//! Days and times as a parameter wants them written.

use jiff::civil::{Date, DateTime, Time};
use serde_json::Value as Json;

use super::candidate::{Candidate, FAIR, GOOD, Given, Scene};
use super::date::Moment;
use super::labels::Place;
use super::mention::Value;
use super::parameter::Parameter;
use super::role::Role;

pub(super) fn candidates(parameter: &Parameter, scene: &Scene<'_>, places: &[Place]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for mention in &scene.reading.mentions {
        let Value::When(moment) = mention.value else { continue };
        let written = scene.reading.written(mention);
        let Some((text, base)) = text(parameter, moment, written) else { continue };
        let score = base + scene.labelled(places, mention.start, mention.end);
        found.push(Candidate {
            value: Given::Said(Json::from(text)),
            start: mention.start,
            end: mention.end,
            score,
        });
    }
    found
}

/// The moment in the form that the schema asks for; as it was written where it asks for none.
fn text(parameter: &Parameter, moment: Moment, written: &str) -> Option<(String, f32)> {
    let description = parameter.description.to_lowercase();
    let asks = |form: &str| description.contains(form);
    let date = |date: Date| {
        let (year, month, day) = (date.year(), date.month(), date.day());
        if asks("mm/dd/yyyy") {
            format!("{month:02}/{day:02}/{year}")
        } else if asks("dd/mm/yyyy") {
            format!("{day:02}/{month:02}/{year}")
        } else if asks("mm-dd-yyyy") {
            format!("{month:02}-{day:02}-{year}")
        } else if asks("yyyymmdd") {
            format!("{year}{month:02}{day:02}")
        } else if asks("yyyy/mm/dd") {
            format!("{year}/{month:02}/{day:02}")
        } else {
            date.to_string()
        }
    };
    let clock = |time: Time| {
        let (hour, minute) = (time.hour(), time.minute());
        if asks("hh:mm:ss") { format!("{hour:02}:{minute:02}:00") } else { format!("{hour:02}:{minute:02}") }
    };
    let whole = |moment: DateTime| {
        if asks("yyyy-mm-dd hh:mm:ss") {
            format!("{} {}", moment.date(), clock(moment.time()))
        } else if asks("yyyy-mm-dd hh:mm") {
            format!("{} {:02}:{:02}", moment.date(), moment.hour(), moment.minute())
        } else {
            format!("{}T{:02}:{:02}:00", moment.date(), moment.hour(), moment.minute())
        }
    };
    Some(match (parameter.role, moment) {
        (Role::Date, Moment::Date(day)) => (date(day), GOOD),
        (Role::Date, Moment::DateTime(moment)) => (date(moment.date()), GOOD),
        (Role::Time, Moment::Time(time)) if asks("am/pm") || asks("am or pm") => {
            (spoken(time, written), GOOD)
        }
        (Role::Time, Moment::Time(time)) => (clock(time), GOOD),
        (Role::Time, Moment::DateTime(moment)) => (clock(moment.time()), GOOD),
        (Role::DateTime, Moment::DateTime(moment)) => (whole(moment), GOOD + 0.3),
        (Role::DateTime, Moment::Date(day)) => (date(day), FAIR),
        (Role::DateTime, Moment::Time(_)) => (written.to_owned(), FAIR),
        _ => return None,
    })
}

fn spoken(time: Time, written: &str) -> String {
    if written.to_lowercase().contains('m') {
        written.to_owned()
    } else {
        format!("{:02}:{:02}", time.hour(), time.minute())
    }
}
