//! The hub over HTTP: the MCP gateway, health and metrics, and who may come in.

mod door;
mod error;
mod mcp;
mod measures;
mod pieces;
mod serve;
mod site;
mod sse;
mod turnstile;

pub use door::{Door, Token, hash_of};
pub use error::ServeError;
pub use measures::Measures;
pub use serve::{ServeOptions, Serving};
pub use site::{Health, Site};
