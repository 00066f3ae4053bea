//! Refuses encoded bodies, for all routes alike: the server decodes nothing, and a body that is declared as encoded is not read
//! as plain text.

use axum::body::{Body, HttpBody as _};
use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use toolhub_mcp_gateway::HeaderLookup;

use crate::responses::text_response;

/// What a client does instead.
pub(crate) const ENCODED: &str = "compressed bodies are not accepted: send the body uncompressed, without the header `Content-Encoding` \
     (不支持压缩的请求体：请发送未压缩的内容，并去掉 `Content-Encoding`)";

const CODED: &str =
    "`Transfer-Encoding` may only be `chunked`, once (`Transfer-Encoding` 只能是单个 `chunked`)";

/// Refuses a request with an encoded body (RFC 9110, section 15.5.16), or with another transfer coding than `chunked` alone: proxies
/// differ in where such a body ends. Returns `None` if it has neither.
pub(crate) fn reject_encoding(request: &Request<Body>) -> Option<Response<Body>> {
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    let is_plain = codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if !is_plain || codings.next().is_some() {
        let mut response = text_response(StatusCode::NOT_IMPLEMENTED, CODED);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Some(response);
    }
    let has_body =
        !request.body().is_end_stream() || !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_refused = has_body && is_encoded(request.headers());
    is_refused.then(|| text_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, ENCODED))
}

/// Returns whether a body is compressed or otherwise encoded. No encoding is supported.
pub(crate) fn is_encoded(headers: &dyn HeaderLookup) -> bool {
    headers.any("content-encoding", &mut |value| !value.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_transfer_codings_beside_chunked() {
        let status = |codings: &[&str]| {
            let mut request = Request::post("/mcp");
            for coding in codings {
                request = request.header(TRANSFER_ENCODING, *coding);
            }
            reject_encoding(&request.body(Body::empty()).unwrap()).map(|response| response.status())
        };
        assert_eq!((status(&[]), status(&["chunked"]), status(&["Chunked"])), (None, None, None));
        for codings in
            [&["identity, chunked"][..], &["chunked, chunked"], &["chunked", "chunked"], &["gzip, chunked"]]
        {
            assert_eq!(status(codings), Some(StatusCode::NOT_IMPLEMENTED), "{codings:?}");
        }
    }
}
