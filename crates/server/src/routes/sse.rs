//! `/sse` and `/messages`: the HTTP+SSE transport of revision 2024-11-05, for clients that support no other.

use axum::body::Body;
use http::{Response, StatusCode};
use toolhub_mcp_gateway::random_token;

use super::exchange::{GatewayMessage, RouteExchange};
use super::mcp::stream_response as events;
use crate::responses::{empty_response, retry_later};
use crate::revocation::until_revoked;

/// Opens the event stream of a client.
pub(super) async fn open(mut exchange: RouteExchange<'_>) -> Response<Body> {
    let GatewayMessage { gateway, principal, context, .. } = match exchange.message().await {
        Ok(message) => message,
        Err(refused) => return *refused,
    };
    let (shared, credential) = (exchange.shared, exchange.stream_credential(&principal));
    let opening = async {
        let Some(name) = random_token() else { return empty_response(StatusCode::INTERNAL_SERVER_ERROR) };
        let endpoint = match exchange.profile {
            Some(profile) => format!("/messages/{profile}?sessionId={name}"),
            None => format!("/messages?sessionId={name}"),
        };
        match shared.legacy_clients.open(&gateway, &principal, name, &endpoint) {
            Ok(messages) => events(until_revoked(messages, credential), &principal),
            Err(exceeded) => retry_later(StatusCode::TOO_MANY_REQUESTS, &exceeded.to_string()),
        }
    };
    context.scope(opening).await
}

/// Receives a message of a client, which names its stream in the query.
pub(super) async fn receive(mut exchange: RouteExchange<'_>) -> Response<Body> {
    let GatewayMessage { principal, body, context, .. } = match exchange.message().await {
        Ok(message) => message,
        Err(refused) => return *refused,
    };
    let RouteExchange { shared, parts, .. } = exchange;
    let query = parts.uri.query();
    let name = query.and_then(|query| query.split('&').find_map(|one| one.strip_prefix("sessionId=")));
    let receiving = shared.legacy_clients.take(name.unwrap_or_default(), &principal, &body);
    Box::pin(context.scope(receiving)).await
}
