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
            if let Some(unfit) = unfit(headers) {
                return unfit;
            }
            gateway.post(headers, body, who).await
        }
        Method::GET => {
            if !accepts(headers, "text/event-stream") {
                return not_so("POST", HERE);
            }
            gateway.get(headers, who).await
        }
        Method::DELETE => gateway.delete(headers, who).await,
        _ => return not_so("GET, POST, DELETE", HERE),
    };
    match reply {
        Reply::Body { status: 405, body, .. } if body.is_empty() => not_so("POST", HERE),
        Reply::Body { status, body, session } => {
            if let (Some(account), [whole]) = (account, &body[..]) {
                account.told(whole);
            }
            let mut response = Response::new(crate::pieces::body(body));
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

/// What belongs here.
const HERE: &str = "MCP clients send messages here with POST; a stream is opened with GET, and a session ended with DELETE, \
                    within a session that `initialize` began";

/// The wrong verb: what would do, and what for.
pub(crate) fn not_so(verbs: &'static str, hint: &str) -> Response<Body> {
    let mut response = said(StatusCode::METHOD_NOT_ALLOWED, hint);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(verbs));
    response
}

/// A status, and a line for whoever reads it.
fn said(status: StatusCode, line: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{line}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A status without more.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Why a message cannot be taken as it comes.
fn unfit(headers: &HeaderMap) -> Option<Response<Body>> {
    // What clients say as a rule; the rest is for those that say it in another way.
    let usual = |name, value: &[u8]| headers.get(name).is_some_and(|said| said.as_bytes() == value);
    let takes_usual = usual(header::ACCEPT, b"application/json, text/event-stream");
    if takes_usual && usual(header::CONTENT_TYPE, b"application/json") {
        return None;
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        let hint = "a message is JSON: send it with `Content-Type: application/json`";
        return Some(said(StatusCode::UNSUPPORTED_MEDIA_TYPE, hint));
    }
    let takes = accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    let hint = "an answer is JSON or a stream: send `Accept: application/json, text/event-stream`";
    (!takes).then(|| said(StatusCode::NOT_ACCEPTABLE, hint))
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
