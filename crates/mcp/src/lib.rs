//! The only crate that implements MCP, as client and as gateway. The wire layer is our own and keeps payloads as raw JSON, so
//! that unknown members are preserved.

mod breaker;
mod cached_head;
pub mod config;
mod connection;
mod era;
mod error;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
mod handler;
mod handshake;
mod headers;
mod host;
mod initialize;
mod instances;
mod listing;
pub mod oauth;
mod relay;
mod request_origin;
mod request_state;
mod scan;
mod server_requests;
mod server_status;
mod singleflight;
pub mod skills;
mod subscription_stream;
mod supervisor;
mod task_call;
mod transport;
mod wire;
pub mod worker;

pub use cached_head::CachedHead;
pub use era::Era;
pub use error::McpError;
pub use forward::ForwardedRequest;
pub use handler::{ClientHandler, HandlerAnswer, Refusal};
pub use host::McpHost;
pub use listing::{Listing, Offer};
pub use relay::{Dialed, Dialer, Relay, RelayStream};
pub use server_status::{FailureHistory, ServerState};
pub use singleflight::Listed;
pub use supervisor::{Server, ServerContext};
pub use transport::{ProcessSandbox, SandboxedProcess, last_lines};

/// Kills child processes left behind by a killed hub, on systems that allow identifying them (Linux). Blocks.
pub fn sweep_left_behind() {
    #[cfg(target_os = "linux")]
    transport::sweep::now();
}
