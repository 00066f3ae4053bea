//! `/healthz` and `/readyz`: whether the process is alive, and whether it accepts requests.

use std::sync::atomic::Ordering;

use axum::body::Body;
use http::{Response, StatusCode};

use super::exchange::RouteExchange;
use crate::responses::{close_connection, typed_response};

/// Answers as long as the process serves.
pub(super) fn alive(exchange: &RouteExchange<'_>) -> Response<Body> {
    respond(exchange, true)
}

/// Fails until the hub is ready, and during shutdown.
pub(super) fn ready(exchange: &RouteExchange<'_>) -> Response<Body> {
    respond(exchange, false)
}

fn respond(exchange: &RouteExchange<'_>, only_alive: bool) -> Response<Body> {
    let health = exchange.shared.service.health();
    let draining = exchange.shared.draining.load(Ordering::Acquire);
    let passes = only_alive || (health.ready && !draining);
    let status = if passes { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = match (passes, health.degraded.is_empty()) {
        _ if draining => "draining",
        (false, _) => "not ready",
        (true, false) => "degraded",
        (true, true) => "ok",
    };
    let mut body = serde_json::json!({"status": word});
    // Probes carry no token, and then get only the status.
    if let Some(principal) = &exchange.principal {
        body["degraded"] = exchange.shared.service.visible_problems(principal.identity()).into();
    }
    let mut response = typed_response(status, "application/json", body.to_string());
    if draining {
        close_connection(&mut response);
    }
    response
}
