//! The responses that are not MCP messages.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use toolhub_mcp_gateway::RateLimitExceeded;

use crate::access::AccessRefusal;
use crate::api_app::PLAIN_TEXT;

/// A plain-text response of one line.
pub(crate) fn text_response(status: StatusCode, text: &str) -> Response<Body> {
    typed_response(status, PLAIN_TEXT, format!("{text}\n"))
}

pub(crate) fn typed_response(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The response to requests during shutdown.
pub(crate) fn shutting_down() -> Response<Body> {
    let mut response =
        retry_later(StatusCode::SERVICE_UNAVAILABLE, "the gateway is ending and takes nothing new");
    close_connection(&mut response);
    response
}

/// The 429 response to a principal that exceeds its rate limit, with the time to wait.
pub(crate) fn rate_limited(RateLimitExceeded { setting, wait }: RateLimitExceeded) -> Response<Body> {
    let why = match wait {
        Some(_) => {
            format!("too many requests: wait as long as `Retry-After` says (`{setting}` in `[serve]`)")
        }
        None => format!(
            "this batch has more messages than may be sent in a second (`{setting}` in `[serve]`): send smaller ones"
        ),
    };
    let mut response = text_response(StatusCode::TOO_MANY_REQUESTS, &why);
    let seconds = wait.unwrap_or(Duration::from_secs(1)).as_millis().div_ceil(1_000).max(1);
    let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// A refusal that may be retried after one second.
pub(crate) fn retry_later(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = text_response(status, why);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Closes the connection after this response.
pub(crate) fn close_connection(response: &mut Response<Body>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// The response to a refused request, with the challenge if a token was refused.
pub(crate) fn access_denied(refusal: AccessRefusal, challenge: Option<&str>) -> Response<Body> {
    let mut response = text_response(refusal.status(), refusal.why());
    if let Some(challenge) = challenge {
        set_challenge(&mut response, challenge);
    }
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Sets the header `WWW-Authenticate`.
pub(crate) fn set_challenge(response: &mut Response<Body>, challenge: &str) {
    if let Ok(challenge) = HeaderValue::from_str(challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// Adds the CORS headers that let a web page of an allowed origin read the response.
pub(crate) fn allow_origin(request_headers: &HeaderMap, headers: &mut HeaderMap) {
    let Some(origin) = request_headers.get(header::ORIGIN).cloned() else { return };
    let lists = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, OPTIONS"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id, www-authenticate"),
        (header::VARY, "origin"),
    ];
    // Some headers carry the names of tool arguments (`Mcp-Param-…`), so that no fixed list covers them.
    if let Some(requested) = request_headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in lists {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A 405 response with the allowed methods and a hint.
pub(crate) fn method_not_allowed(allowed: &'static str, hint: &str) -> Response<Body> {
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, hint);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A response without a body.
pub(crate) fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
