//! Refuses encoded bodies, for all routes alike: the server decodes nothing, and a body that is declared as encoded is not read
//! as plain text.

use axum::body::{Body, HttpBody as _};
use http::{Method, Request, Response, StatusCode};
use toolhub_mcp_gateway::HeaderLookup;

use crate::responses::text;

/// What a client does instead.
pub(crate) const ENCODED: &str = "compressed bodies are not accepted: send the body uncompressed, without the header `Content-Encoding` \
     (不支持压缩的请求体：请发送未压缩的内容，并去掉 `Content-Encoding`)";

/// Refuses a request with an encoded body (RFC 9110, section 15.5.16). Returns `None` if it has none.
pub(crate) fn reject_encoding(request: &Request<Body>) -> Option<Response<Body>> {
    let has_body =
        !request.body().is_end_stream() || !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_refused = has_body && is_encoded(request.headers());
    is_refused.then(|| text(StatusCode::UNSUPPORTED_MEDIA_TYPE, ENCODED))
}

/// Returns whether a body is compressed or otherwise encoded. No encoding is supported.
pub(crate) fn is_encoded(headers: &dyn HeaderLookup) -> bool {
    headers.any("content-encoding", &mut |value| !value.trim_ascii().eq_ignore_ascii_case(b"identity"))
}
