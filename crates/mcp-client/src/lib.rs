//! The client side of MCP: connects to servers, supervises them, lists their tools and skills, and sends requests to them. It also
//! reads and edits `mcp.json`. Messages are in `toolhub_mcp_wire`, logins in `toolhub_oauth`.

mod breaker;
pub mod config;
mod connection;
mod failed_request;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod handshake;
mod host;
mod hub_members;
mod initialize;
mod instance_pool;
mod instances;
mod listing;
mod listing_flight;
mod relay;
pub mod remote;
mod request_origin;
mod request_state;
mod server_context;
mod server_requests;
mod server_status;
mod singleflight;
pub mod skills;
mod subscription_stream;
mod supervisor;
mod task_call;
mod task_support;
mod transport;

pub use forward::ForwardedRequest;
pub use handler::{ClientHandler, HandlerAnswer, RejectingHandler};
pub use host::McpHost;
pub use listing::ToolListing;
pub use listing_flight::ServerListing;
pub use relay::{
    Dialer, HubStream, LiveServer, Relay, RelayStream, RestartOutcome, live_servers, restart_at_hub,
};
pub use request_state::share_state_keys;
pub use server_context::ServerContext;
pub use server_status::{FailureHistory, ServerState};
pub use supervisor::Server;
pub use transport::last_lines;

/// Kills child processes left behind by a killed hub, on systems that allow identifying them (Linux). Blocks.
pub fn kill_orphans() {
    #[cfg(target_os = "linux")]
    transport::sweep::sweep_now();
}
