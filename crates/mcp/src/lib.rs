//! The only crate that knows MCP: our own wire layer with raw payloads, so that what is not understood is kept.

mod asker;
mod breaker;
pub mod config;
mod connection;
mod doorman;
mod era;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
mod greet;
mod handler;
mod handshake;
mod headers;
mod host;
mod inquiry;
mod instances;
pub mod lane;
mod likeness;
mod listing;
mod news;
pub mod oauth;
mod passage;
mod relay;
mod request_state;
mod scan;
pub mod skills;
mod standing;
mod supervisor;
mod task_call;
mod transport;
mod wire;

pub use era::Era;
pub use error::McpError;
pub use handler::{ClientHandler, HandlerAnswer, Refusal};
pub use host::McpHost;
pub use inquiry::Listed;
pub use likeness::Likeness;
pub use listing::{Listing, Offer};
pub use passage::Passage;
pub use relay::{Dialed, Dialer, Relay, RelayStream};
pub use standing::{Past, ServerState};
pub use supervisor::{Server, ServerContext};
pub use transport::{Enclosure, Fence, last_lines};

/// Ends the children that a hub left which was killed, where the system tells whose they were. Blocks.
pub fn sweep_left_behind() {
    #[cfg(target_os = "linux")]
    transport::sweep::now();
}
