//! The configuration of MCP servers: the specification of a server, and reading and writing of `mcpServers` files.

mod edit;
mod identity;
mod launch;
mod login;
mod permitted;
mod program;
mod read;
mod spec;
mod unread;

pub use edit::{ServerEntry, add_server, remove_server, set_enabled};
pub(crate) use identity::LaunchIdentity;
pub(crate) use permitted::{NeedsConsent, PermittedSpec, permitted_stdio};
pub use program::find_executable;
pub use read::{parse_servers, read_servers};
pub use spec::{Credentials, Instances, ServerSpec};
pub use unread::{ENTRY_MEMBERS, UnreadMember, unread_members};
