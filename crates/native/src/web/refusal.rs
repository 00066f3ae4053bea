//! Interprets HTTP error responses of a service.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::brave;
use super::failure::{Limit, SearchFailure};
use super::plain::plain;
use super::provider::SearchProvider;
use super::setup::Target;

const MAX_SAID: usize = 300;

/// An HTTP error response.
pub(super) struct Refused<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// Converts an error response of `target` to a failure.
pub(super) fn refusal(target: &Target, refused: &Refused<'_>) -> SearchFailure {
    let place = target.place();
    let (provider, status) = (target.provider, refused.status);
    let told: Value = serde_json::from_slice(refused.body).unwrap_or_default();
    let said = target.hide(&plain(words(&told).unwrap_or_default()));
    let said = match said.char_indices().nth(MAX_SAID) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    };
    match (status, provider) {
        (429, _) => {
            let wait = retry_after(refused.headers).or_else(|| brave::wait(refused.headers));
            SearchFailure::RateLimited(Limit { provider, place, wait, said })
        }
        (403, SearchProvider::Searxng) => SearchFailure::NoJson { place },
        (401, SearchProvider::Searxng) => SearchFailure::LoginWanted { place },
        (401 | 403, _) => SearchFailure::KeyRefused { provider, key: target.key_place, status, said },
        _ if provider == SearchProvider::Brave && brave::refuses_key(&told) => {
            SearchFailure::KeyRefused { provider, key: target.key_place, status, said }
        }
        _ => SearchFailure::Status { provider, place, status, said },
    }
}

/// The error message, from the members that the services use.
fn words(told: &Value) -> Option<&str> {
    let places = ["/detail/error", "/detail", "/error/detail", "/error/message", "/error", "/message"];
    places.iter().find_map(|place| told.pointer(place)?.as_str())
}

/// The delay of `Retry-After`: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let moment = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(moment.duration_since(Timestamp::now())).ok()
}
