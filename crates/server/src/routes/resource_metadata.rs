//! `/.well-known/oauth-protected-resource`: where clients find the authorization servers of a profile (RFC 9728).

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

use super::exchange::RouteExchange;
use crate::responses::{text_response, typed_response};

/// Returns the metadata of the profile that the path names. It is public, and any web page may read it.
pub(super) fn describe(exchange: &RouteExchange<'_>) -> Response<Body> {
    let metadata = exchange.shared.access.authenticator.resource_metadata(exchange.profile);
    let Some(metadata) = metadata else {
        let hint = "no identity provider is configured: add `[[auth.issuers]]`, or use a key";
        return text_response(StatusCode::NOT_FOUND, hint);
    };
    let mut response = typed_response(StatusCode::OK, "application/json", metadata);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}
