//! The hub over HTTP: the MCP gateway, health and metrics, and who may come in.

mod access_log;
mod account;
mod answers;
mod arrival;
mod authority;
mod connection;
mod door;
mod envelope;
mod error;
mod exposition;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod lanes;
mod mcp;
mod measures;
mod pieces;
mod serve;
mod shedding;
mod short;
mod site;
mod sse;
mod stream_account;
mod telemetry;

pub use access_log::{AccessLog, LogPlace, Trouble};
pub use door::{Door, Token, hash_of};
pub use error::ServeError;
pub use exposition::{Exposition, Family, Kind};
pub use measures::Measures;
pub use serve::{ServeOptions, Serving, Unfinished};
pub use site::{Health, Site};
pub use stream_account::StreamAccount;
pub use telemetry::{Sampler, Telemetry, TelemetryOptions};
pub use toolhub_mcp::gateway::Limits;
