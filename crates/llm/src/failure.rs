//! The failure of an attempt: the error, and whether a retry may succeed.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use toolhub_core::model::ModelError;

use crate::endpoint::Endpoint;
use crate::retry::RetryAdvice;

/// Maximum length of an endpoint's error message that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 400;

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct AttemptFailure {
    pub(crate) error: ModelError,
    pub(crate) retry_advice: RetryAdvice,
}

impl AttemptFailure {
    /// The request could not be sent, or no response arrived.
    pub(crate) fn send(endpoint: &Endpoint, error: &reqwest::Error) -> Self {
        let (model, cause) = (endpoint.name(), endpoint.redact(&root_cause(error)));
        if error.is_timeout() {
            let cause = "no connection in time".to_owned();
            return Self {
                error: ModelError::Unreachable { model, cause },
                retry_advice: RetryAdvice::Backoff,
            };
        }
        // An invalid request stays invalid.
        let retry_advice = if error.is_builder() { RetryAdvice::Never } else { RetryAdvice::Backoff };
        Self { error: ModelError::Unreachable { model, cause }, retry_advice }
    }

    /// An HTTP error status with its message.
    pub(crate) fn status(endpoint: &Endpoint, status: StatusCode, reported: &EndpointError) -> Self {
        let model = endpoint.name();
        let detail = displayed(endpoint, &reported.message);
        let number = status.as_u16();
        let busy = matches!(number, 429 | 503 | 529) || reported.is_busy();
        let (error, retry_advice) = match number {
            // An exhausted quota is reported as 429, too; a retry does not help then.
            429 if reported.is_quota_exhausted() => {
                (ModelError::Refused { model, status: number, detail }, RetryAdvice::Never)
            }
            _ if busy => {
                let retry_advice = reported.retry_after.map_or(RetryAdvice::Backoff, RetryAdvice::After);
                (ModelError::Busy { model, retry_after: reported.retry_after }, retry_advice)
            }
            401 | 403 => (ModelError::Unauthorized { model, detail }, RetryAdvice::Never),
            408 | 500..=599 => {
                let retry_advice = reported.retry_after.map_or(RetryAdvice::Backoff, RetryAdvice::After);
                (ModelError::Refused { model, status: number, detail }, retry_advice)
            }
            _ => (ModelError::Refused { model, status: number, detail }, RetryAdvice::Never),
        };
        Self { error, retry_advice }
    }

    /// An error event within a response.
    pub(crate) fn reported(endpoint: &Endpoint, reported: &EndpointError) -> Self {
        match reported.status() {
            Some(status) => Self::status(endpoint, status, reported),
            None => Self::truncated(endpoint, &reported.message),
        }
    }

    /// The response ended prematurely.
    pub(crate) fn truncated(endpoint: &Endpoint, detail: &str) -> Self {
        let (model, detail) = (endpoint.name(), displayed(endpoint, detail));
        Self { error: ModelError::Truncated { model, detail }, retry_advice: RetryAdvice::Backoff }
    }

    /// The response does not match the wire format.
    pub(crate) fn unreadable(endpoint: &Endpoint, detail: &str) -> Self {
        let (model, detail) = (endpoint.name(), displayed(endpoint, detail));
        Self { error: ModelError::Unreadable { model, detail }, retry_advice: RetryAdvice::Never }
    }

    /// The idle timeout expired.
    pub(crate) fn timed_out(endpoint: &Endpoint, after: Duration) -> Self {
        Self {
            error: ModelError::TimedOut { model: endpoint.name(), after },
            retry_advice: RetryAdvice::Never,
        }
    }
}

/// An error reported by an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EndpointError {
    /// The message.
    pub(crate) message: String,
    /// The error code or type.
    pub(crate) kind: String,
    /// The requested delay before a retry.
    pub(crate) retry_after: Option<Duration>,
}

impl EndpointError {
    /// Parses the body of an error response in any format.
    pub(crate) fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of(value.get("error").unwrap_or(&value), body),
            Err(_) => Self { message: body.trim().to_owned(), ..Self::default() },
        }
    }

    /// Parses the member `error` of a response: an object or a text.
    pub(crate) fn of(error: &Value, body: &str) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = |name: &str| error.get(name).and_then(Value::as_u64).map(|number| number.to_string());
        let message = error.as_str().or_else(|| text("message")).or_else(|| text("detail")).unwrap_or(body);
        let code = text("code").map(str::to_owned).or_else(|| number("code")).or_else(|| number("status"));
        let kind = match (code, text("type")) {
            (Some(code), Some(kind)) => format!("{code} {kind}"),
            (code, kind) => code.or_else(|| kind.map(str::to_owned)).unwrap_or_default(),
        };
        Self { message: message.trim().to_owned(), kind, retry_after: None }
    }

    /// The HTTP status that corresponds to an error within a response, if any.
    fn status(&self) -> Option<StatusCode> {
        let number = self.kind.split(' ').find_map(|word| word.parse::<u16>().ok());
        let known = [
            ("overloaded_error", 529),
            ("rate_limit", 429),
            ("authentication_error", 401),
            ("permission_error", 403),
            ("invalid_request_error", 400),
            ("not_found_error", 404),
        ];
        let named = known.iter().find(|(word, _)| self.kind.contains(word)).map(|(_, status)| *status);
        let status = number.or(named).and_then(|number| StatusCode::from_u16(number).ok());
        status.filter(|status| status.is_client_error() || status.is_server_error())
    }

    fn is_busy(&self) -> bool {
        self.kind.contains("overloaded_error")
    }

    fn is_quota_exhausted(&self) -> bool {
        self.kind.contains("insufficient_quota")
    }
}

/// Shortens a message to a single line without secrets.
fn displayed(endpoint: &Endpoint, text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = endpoint.redact(plain.trim());
    if plain.is_empty() {
        return "no details".to_owned();
    }
    match plain.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain,
    }
}

/// The innermost error: outer errors include the URL.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
