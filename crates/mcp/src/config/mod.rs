//! The configuration of MCP servers: the specification of a server, and reading and writing of `mcpServers` files.

pub mod clients;
mod edit;
mod error;
mod expand;
mod identity;
mod oauth;
mod permitted;
mod program;
mod read;
mod spec;
mod write;

pub use edit::{ServerEntry, add_server, remove_server, set_enabled};
pub use error::ConfigError;
pub use expand::{expand, references};
pub(crate) use identity::LaunchIdentity;
pub use oauth::{Grant, OAuthSpec};
pub(crate) use permitted::Permitted;
pub use program::with_ending;
pub use read::{read_servers, servers_in};
pub use spec::{HttpSpec, Instances, ServerSpec, StdioSpec, TransportSpec};
pub use write::write_whole;
