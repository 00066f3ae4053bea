//! `/v1`: the API beside MCP, if the hub has one.

use axum::body::Body;
use http::{Response, StatusCode};

use super::exchange::RouteExchange;
use crate::api_app::ApiRequest;
use crate::responses::{empty_response, text_response};

/// The path of the API.
pub(super) const PATH: &str = "/v1";

pub(super) async fn handle(mut exchange: RouteExchange<'_>) -> Response<Body> {
    let Some(app) = exchange.shared.api_app.clone() else {
        return text_response(
            StatusCode::NOT_FOUND,
            "this hub has no OpenAI-compatible endpoint: see `[openai]`",
        );
    };
    let Some(principal) = exchange.principal.clone() else { return empty_response(StatusCode::UNAUTHORIZED) };
    let body = match exchange.read_body(&principal).await {
        Ok(body) => body,
        Err(response) => return *response,
    };
    let parts = exchange.parts;
    let path = parts.uri.path();
    let path = path.strip_prefix(PATH).unwrap_or(path).trim_matches('/');
    let request = ApiRequest {
        method: parts.method.clone(),
        path: path.to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers.clone(),
        body,
        principal,
    };
    app.respond(request).await
}
