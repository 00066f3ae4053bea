//! The interface between the server and an API that it serves beside MCP, with the same access rules and limits as `/mcp`.

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use toolhub_core::BoxFuture;
use toolhub_mcp_gateway::PrincipalHandle;

/// The content type of errors of the server itself.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
/// Maximum length of such an error.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A request of an authenticated principal.
#[derive(Debug)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The path below `/v1`, without a slash at its beginning and end.
    pub path: String,
    /// The query.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The principal.
    pub principal: PrincipalHandle,
}

/// An API below `/v1`. The server authenticates requests, applies limits and reads bodies.
pub trait ApiApp: Send + Sync {
    /// Responds to a request.
    fn respond(&self, request: ApiRequest) -> BoxFuture<'_, Response<Body>>;

    /// The name of the profile that a request is for; `None` for the default one. A token is verified for this profile.
    fn profile<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str>;

    /// Whether a path is one of this API without `/v1`, as from a client with a wrong base URL.
    fn is_misplaced(&self, path: &str) -> bool;

    /// The JSON body of an error.
    fn error_body(&self, status: StatusCode, message: &str) -> String;
}

/// The response with its error in the form of the API, if it is an error of the server itself.
pub(crate) async fn in_form_of(app: &dyn ApiApp, response: Response<Body>) -> Response<Body> {
    let is_plain = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == HeaderValue::from_static(PLAIN_TEXT));
    if !is_plain {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_ERROR_BYTES).await.unwrap_or_default();
    let body = app.error_body(parts.status, String::from_utf8_lossy(&text).trim());
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(Bytes::from(body)))
}
