//! `/mcp` and `/mcp/{profile}`: the Streamable HTTP transport, for both eras of the protocol. The gateway handles the
//! messages; this module maps them to HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use toolhub_mcp_gateway::{
    BudgetedResource, Gateway, HeaderLookup, HttpReply, PROTOCOL_VERSION, PrincipalHandle, SESSION_ID,
    SseEvents,
};
use toolhub_mcp_wire::headers::{METHOD_HEADER, NAME_HEADER};

use super::exchange::{GatewayMessage, RouteExchange};
use crate::body::{MAX_UNCOUNTED, budgeted_bytes};
use crate::content_encoding::{ENCODED, is_encoded};
use crate::request_record::RequestRecord;
use crate::responses::{method_not_allowed, set_challenge, text_response};
use crate::revocation::{StreamCredential, until_revoked};

/// Handles one request to the endpoint.
pub(super) async fn handle(mut exchange: RouteExchange<'_>) -> Response<Body> {
    let GatewayMessage { gateway, principal, body, context } = match exchange.message().await {
        Ok(message) => message,
        Err(refused) => return *refused,
    };
    let credential = exchange.stream_credential(&principal);
    let RouteExchange { shared, parts, record, profile, .. } = exchange;
    let step_up = context.step_up.clone();
    let caller = ResponseTarget { credential, record };
    let mut response = context.scope(respond(&gateway, parts, body, caller)).await;
    if let Some(scopes) = step_up.scopes() {
        // RFC 6750, section 3.1: the client may obtain a token with these scopes and repeat the request.
        *response.status_mut() = StatusCode::FORBIDDEN;
        set_challenge(&mut response, &shared.access.authenticator.scope_challenge(profile, scopes));
    }
    response
}

/// The client that a response is for.
struct ResponseTarget<'a> {
    credential: StreamCredential,
    record: Option<&'a mut RequestRecord>,
}

async fn respond(
    gateway: &Arc<Gateway>,
    parts: &Parts,
    body: Bytes,
    ResponseTarget { credential, record }: ResponseTarget<'_>,
) -> Response<Body> {
    let principal = &credential.principal.clone();
    let headers = &parts.headers;
    let reply = match parts.method {
        Method::POST => {
            if let Err((status, hint)) = valid_headers(headers) {
                return text_response(status, hint);
            }
            gateway.post(headers, body, principal).await
        }
        Method::GET => {
            if !accepts(headers, "text/event-stream") {
                return method_not_allowed("POST", WRONG_METHOD);
            }
            gateway.get(headers, principal).await
        }
        Method::DELETE => gateway.delete(headers, principal).await,
        _ => return method_not_allowed("GET, POST, DELETE", WRONG_METHOD),
    };
    match reply {
        HttpReply::Body { status: 405, body, .. } if body.is_empty() => {
            method_not_allowed("POST", WRONG_METHOD)
        }
        HttpReply::Body { status, mut body, session } => {
            let length = body.len();
            let permit = (length > MAX_UNCOUNTED)
                .then(|| principal.take(BudgetedResource::Unread, length))
                .transpose();
            let permit = permit.unwrap_or_else(|exceeded| {
                body = body.dropped(exceeded);
                None
            });
            if let Some(record) = record {
                record.record_error(&body);
            }
            let mut pieces = body.into_pieces();
            // A long body has one long piece, which holds the permit until it is written completely.
            let longest = pieces.iter_mut().max_by_key(|piece| piece.len());
            if let (Some(longest), Some(permit)) = (longest, permit) {
                *longest = budgeted_bytes(std::mem::take(longest), permit);
            }
            let mut response = Response::new(crate::body_pieces::body(pieces));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let has_body = response.body().size_hint_exact() != Some(0);
            let headers = response.headers_mut();
            match status {
                429 => {
                    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                }
                405 => {
                    headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                }
                _ => {}
            }
            if has_body {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
                headers.insert(SESSION_ID, session);
            }
            response
        }
        HttpReply::Events(events) => stream_response(until_revoked(events, credential), principal),
    }
}

/// Returns a stream of events as a response. The stream ends before an event that would exceed the budget of unread
/// bytes.
pub(crate) fn stream_response(events: SseEvents, principal: &PrincipalHandle) -> Response<Body> {
    let principal = principal.clone();
    let written = move |event: String| {
        let event = Bytes::from(event);
        let permit = match event.len() {
            ..=MAX_UNCOUNTED => return std::future::ready(Some(Ok::<_, Infallible>(event))),
            length => principal.take(BudgetedResource::Unread, length),
        };
        std::future::ready(permit.ok().map(|permit| Ok(budgeted_bytes(event, permit))))
    };
    let events = events.scan((), move |(), event| written(event));
    let body = Body::from_stream(events);
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // `X-Accel-Buffering: no` keeps proxies from buffering events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The hint in responses to a wrong method.
pub(super) const WRONG_METHOD: &str = "MCP clients send messages here with POST; a stream is opened with GET, and a session ended with DELETE, \
                    within a session that `initialize` began";

/// Headers that may occur only once, as they determine how a message is interpreted.
const SINGLE_HEADERS: [&str; 4] = [SESSION_ID, PROTOCOL_VERSION, METHOD_HEADER, NAME_HEADER];

fn is_repeated(headers: &dyn HeaderLookup, name: &str) -> bool {
    let mut count = 0;
    headers.any(name, &mut |_| {
        count += 1;
        count > 1
    })
}

/// Checks the headers of a POST request. Returns the status and hint of the refusal. The fast path leaves such requests to
/// hyper, where `Shared::respond` refuses encoded ones of all routes.
pub(crate) fn valid_headers(headers: &dyn HeaderLookup) -> Result<(), (StatusCode, &'static str)> {
    if is_encoded(headers) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, ENCODED));
    }
    // A proxy might read the last occurrence, and the gateway the first.
    if SINGLE_HEADERS.iter().any(|name| is_repeated(headers, name)) {
        let hint = "`Mcp-Session-Id`, `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` are sent once each";
        return Err((StatusCode::BAD_REQUEST, hint));
    }
    // The values that most clients send; other spellings are parsed below.
    let has_common_accept = headers.value("accept") == Some(b"application/json, text/event-stream");
    if has_common_accept && headers.value("content-type") == Some(b"application/json") {
        return Ok(());
    }
    let kind = headers.text("content-type").unwrap_or_default();
    if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
        let hint = "a message is JSON: send it with `Content-Type: application/json`";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, hint));
    }
    if accepts(headers, "application/json") && accepts(headers, "text/event-stream") {
        return Ok(());
    }
    let hint = "an answer is JSON or a stream: send `Accept: application/json, text/event-stream`";
    Err((StatusCode::NOT_ACCEPTABLE, hint))
}

/// Returns whether the client accepts a media type. Without an `Accept` header it accepts any.
fn accepts(headers: &dyn HeaderLookup, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let is_match = |media_type: &str| {
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        media_type == "*/*"
            || media_type.eq_ignore_ascii_case(kind)
            || media_type.strip_suffix("/*") == Some(family)
    };
    let mut any = |value: &[u8]| std::str::from_utf8(value).is_ok_and(|value| value.split(',').any(is_match));
    headers.value("accept").is_none() || headers.any("accept", &mut any)
}

trait SizeHintExact {
    fn size_hint_exact(&self) -> Option<u64>;
}

impl SizeHintExact for Body {
    fn size_hint_exact(&self) -> Option<u64> {
        axum::body::HttpBody::size_hint(self).exact()
    }
}
