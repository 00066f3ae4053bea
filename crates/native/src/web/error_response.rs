//! Interprets HTTP error responses of a service.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::brave;
use super::error::{RateLimit, SearchError};
use super::plain::plain;
use super::provider::SearchProvider;
use super::setup::Target;

const MAX_MESSAGE_CHARS: usize = 300;

/// An HTTP error response.
pub(super) struct ErrorResponse<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// Converts an error response of `target` to a failure.
pub(super) fn error_response(target: &Target, response: &ErrorResponse<'_>) -> SearchError {
    let location = target.location();
    let (provider, status) = (target.provider, response.status);
    let body_json: Value = serde_json::from_slice(response.body).unwrap_or_default();
    let message = target.hide(&plain(error_message(&body_json).unwrap_or_default()));
    let message = match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    };
    match (status, provider) {
        (429, _) => {
            let wait = retry_after(response.headers).or_else(|| brave::wait(response.headers));
            SearchError::RateLimited(RateLimit { provider, location, wait, message })
        }
        (403, SearchProvider::Searxng) => SearchError::NoJson { location },
        (401, SearchProvider::Searxng) => SearchError::AuthRequired { location },
        (401 | 403, _) => SearchError::KeyRejected { provider, key: target.key_source, status, message },
        _ if provider == SearchProvider::Brave && brave::rejects_key(&body_json) => {
            SearchError::KeyRejected { provider, key: target.key_source, status, message }
        }
        _ => SearchError::Status { provider, location, status, message },
    }
}

/// The error message, from the members that the services use.
fn error_message(body_json: &Value) -> Option<&str> {
    let places = ["/detail/error", "/detail", "/error/detail", "/error/message", "/error", "/message"];
    places.iter().find_map(|location| body_json.pointer(location)?.as_str())
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
