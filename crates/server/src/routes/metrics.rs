//! `/metrics`: the metrics of the server and of the hub, in the text format of Prometheus.

use std::sync::atomic::Ordering;

use axum::body::Body;
use http::{Response, StatusCode};

use super::exchange::RouteExchange;
use crate::metrics_text::{MetricKind, MetricsText};
use crate::responses::{text_response, typed_response};

pub(super) fn render(exchange: &RouteExchange<'_>) -> Response<Body> {
    let shared = exchange.shared;
    let authenticator = &shared.access.authenticator;
    let principal = exchange.principal.as_ref().map(|principal| principal.identity());
    let Some(principal) = principal.filter(|principal| authenticator.may_read_metrics(principal)) else {
        return text_response(
            StatusCode::FORBIDDEN,
            "metrics need one of the roles `viewer`, `operator`, `auditor` and `owner`",
        );
    };
    let mut out = MetricsText::default();
    shared.metrics.write(&mut out);
    out.family("toolhub_http_connections", MetricKind::Gauge, "Open connections.")
        .value(shared.connections.len());
    let on_io_threads = shared.io_threads.len();
    out.family(
        "toolhub_http_io_thread_connections",
        MetricKind::Gauge,
        "Connections served by one of the I/O threads, which happens under load.",
    )
    .value(on_io_threads);
    // The earlier name, for existing dashboards.
    out.family(
        "toolhub_http_worker_connections",
        MetricKind::Gauge,
        "Deprecated: the same as toolhub_http_io_thread_connections.",
    )
    .value(on_io_threads);
    for (name, count) in &shared.losses {
        let help = format!("What could not be kept: {}.", name.replace('_', " "));
        out.family(&format!("toolhub_{name}_lost_total"), MetricKind::Counter, &help)
            .value(count.load(Ordering::Relaxed));
    }
    shared.service.write_metrics(principal, &mut out);
    typed_response(StatusCode::OK, "text/plain; version=0.0.4", out.into_text())
}
