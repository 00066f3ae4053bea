//! `/mcp` and `/mcp/{profile}`: Streamable HTTP, both eras. What is said is the gateway's; how it travels is here.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use toolhub_mcp::gateway::{Events, Gateway, Principal, Reply};

use crate::account::Account;

/// Answers one request to the endpoint.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    (method, headers): (&Method, &HeaderMap),
    (body, who): (Bytes, &Principal),
    account: Option<&mut Account>,
) -> Response<Body> {
    let reply = match *method {
        Method::POST => {
            if let Some(status) = unfit(headers) {
                return plain(status);
            }
            gateway.post(headers, &body, who).await
        }
        Method::GET => {
            if !accepts(headers, "text/event-stream") {
                return plain(StatusCode::METHOD_NOT_ALLOWED);
            }
            gateway.get(headers, who).await
        }
        Method::DELETE => gateway.delete(headers, who).await,
        _ => return plain(StatusCode::METHOD_NOT_ALLOWED),
    };
    match reply {
        Reply::Body { status, body, session } => {
            if let Some(account) = account {
                account.told(body.as_bytes());
            }
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let has_body = response.body().size_hint_exact() != Some(0);
            let headers = response.headers_mut();
            if has_body {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
                headers.insert("mcp-session-id", session);
            }
            response
        }
        Reply::Events(events) => stream(events),
    }
}

/// A stream of events as a response.
pub(crate) fn stream(events: Events) -> Response<Body> {
    let body = Body::from_stream(events.map(|event| Ok::<_, Infallible>(Bytes::from(event))));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A status without more.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Why a message cannot be taken as it comes.
fn unfit(headers: &HeaderMap) -> Option<StatusCode> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        return Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let takes = accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    (!takes).then_some(StatusCode::NOT_ACCEPTABLE)
}

/// Whether whoever asks takes that kind; one that says nothing takes all.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        said = true;
        let Ok(value) = value.to_str() else { continue };
        let family = kind.split('/').next().unwrap_or_default();
        let takes = |one: &str| {
            let one = one.split(';').next().unwrap_or_default().trim();
            one == "*/*" || one.eq_ignore_ascii_case(kind) || one.strip_suffix("/*") == Some(family)
        };
        if value.split(',').any(takes) {
            return true;
        }
    }
    !said
}

trait SizeHintExact {
    fn size_hint_exact(&self) -> Option<u64>;
}

impl SizeHintExact for Body {
    fn size_hint_exact(&self) -> Option<u64> {
        axum::body::HttpBody::size_hint(self).exact()
    }
}
