//! The HTTP server of the hub: the MCP gateway, health and metrics endpoints, access control, the access log and
//! telemetry.

mod access;
mod access_log;
mod api_app;
mod authenticator;
mod authority;
mod body;
mod body_pieces;
mod connection;
mod content_encoding;
mod envelope;
mod error;
mod fast_path;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod io_threads;
mod legacy_clients;
mod metrics;
mod metrics_text;
mod request_record;
mod responses;
mod revocation;
mod routes;
mod serve;
mod service;
mod shared;
mod shedding;
mod stream_recorder;
mod telemetry;
mod web_app;

pub use access::ServerAccess;
pub use access_log::{AccessLog, LogDestination, ReportProblem};
pub use api_app::{ApiApp, ApiRequest};
pub use authenticator::{AuthenticatedToken, Authenticator, KeyTable, StaticKey, TokenRefusal, hash_of};
pub use error::ServeError;
pub use metrics::ServerMetrics;
pub use metrics_text::{MetricFamily, MetricKind, MetricsText};
pub use serve::{HubServer, PendingConnections, ServeOptions};
pub use service::{Health, HubService, LoginCookie, LoginPage, LoginPageRequest, LoginStep};
pub use stream_recorder::StreamRecorder;
pub use telemetry::{Sampler, Telemetry, TelemetryOptions};
pub use toolhub_mcp_gateway::BudgetLimits;
pub use web_app::{WebApp, WebContext};
