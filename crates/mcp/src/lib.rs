//! The only crate that knows MCP: our own wire layer with raw payloads, so that what is not understood is kept.

pub mod config;
mod connection;
mod era;
mod error;
mod handshake;
mod headers;
mod host;
mod listing;
mod supervisor;
mod transport;
mod wire;

pub use era::Era;
pub use error::McpError;
pub use host::McpHost;
pub use listing::Listing;
pub use supervisor::{Server, ServerState};
