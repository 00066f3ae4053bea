//! The parts of MCP that the client side and the gateway share: messages, the scanner that reads them, the protocol eras, and the
//! errors of requests. Payloads are kept as raw JSON, so that unknown members are preserved. No connections are opened here.

pub mod era;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod io_thread;
pub mod jsonrpc;
mod length_prefixed;
mod offer;
pub mod scan;

pub use era::Era;
pub use error::McpError;
pub use length_prefixed::length_prefixed;
pub use offer::Offer;
