//! A relay lets a process use the server connections of a running `toolhub serve` with the same configuration instead of
//! opening its own. Routing, confirmation, deadlines and records stay with the calling process; the hub only forwards the
//! requests for one server over its connection.
//!
//! Each link serves one server and carries newline-delimited JSON. The client sends a [`Hello`]; the hub answers with one or
//! two [`Welcome`]s; after that both sides exchange JSON-RPC messages in the form of the server's era. Requests carry the
//! members of [`Forwarding`] beside those of JSON-RPC, and the `data` of an error is a [`failure::RelayedError`]. The programs that
//! open the streams choose the transport and control access. A command may also ask for the states of servers, or for a restart
//! (`control`).

mod caller;
mod control;
mod failure;
mod link;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use toolhub_core::{BoxFuture, RawJson, RawObject};
use toolhub_mcp_wire::Era;

pub(crate) use caller::{Peer, ProgressForwarder, RequestCaller};
pub use control::{LiveServer, RestartOutcome, live_servers, restart_at_hub};
pub(crate) use failure::RelayedError;
pub use link::Relay;

use crate::config::LaunchIdentity;
use crate::connection::ServerInfo;

/// The version of the link protocol.
const PROTOCOL: u32 = 1;
/// How long each side waits for the first message of the other. After that, the hub counts as hanging and is not used.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a write to a link may block.
pub(crate) const LINK_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The code of every error on a link; the failure is in its `data`.
pub(crate) const FAILURE_CODE: i64 = -32099;

/// A byte stream to another process.
pub trait RelayStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> RelayStream for T {}

/// Opens streams to hubs that are already running.
pub trait Dialer: Send + Sync {
    /// Opens a stream to each reachable hub. Does not wait for hubs that hang.
    fn dial(&self) -> BoxFuture<'_, Vec<HubStream>>;
}

/// A stream to a hub.
pub struct HubStream {
    /// The stream.
    pub stream: Box<dyn RelayStream>,
    /// The secret that the hub expects: proof that the client can read the owner's files.
    pub secret: String,
}

impl std::fmt::Debug for HubStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubStream").finish_non_exhaustive()
    }
}

/// The first message of a client: the requested server, and the client's own launch configuration for it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    protocol: u32,
    secret: String,
    server: String,
    identity: LaunchIdentity,
}

impl Hello {
    pub(crate) fn new(secret: &str, server: &str, identity: LaunchIdentity) -> Self {
        Self { protocol: PROTOCOL, secret: secret.to_owned(), server: server.to_owned(), identity }
    }
}

/// The answers of the hub to a [`Hello`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(crate) enum Welcome {
    /// The hub does not serve this server to the client; nothing was started.
    Refused { en: String, zh: String },
    /// The hub is connecting or connected to the server; another answer follows.
    Connecting,
    /// The server is connected.
    Ready {
        era: String,
        version: String,
        peer: String,
        /// A JSON object.
        capabilities: String,
        instructions: Option<String>,
    },
    /// The server could not be connected.
    Failed { failure: RelayedError },
}

impl Welcome {
    pub(crate) fn ready(server_info: &ServerInfo) -> Self {
        Self::Ready {
            era: server_info.era.name().to_owned(),
            version: server_info.version.clone(),
            peer: server_info.peer.clone(),
            capabilities: server_info.capabilities.clone().into_raw().get().to_owned(),
            instructions: server_info.instructions.clone(),
        }
    }

    /// The server's description; `None` for other answers, and for an invalid one.
    pub(crate) fn server_info(self) -> Option<ServerInfo> {
        let Self::Ready { era, version, peer, capabilities, instructions } = self else { return None };
        let era: Era = era.parse().ok()?;
        let capabilities: RawObject = RawJson::parse(capabilities).ok()?.object()?;
        Some(ServerInfo { era, era_uncertain: false, version, peer, capabilities, instructions })
    }
}

/// The members of a request beside those of JSON-RPC.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Forwarding {
    /// The value of the `Mcp-Name` header for modern servers.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Additional headers.
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    /// Whether it may be sent a second time.
    #[serde(default)]
    pub(crate) repeatable: bool,
}

#[cfg(test)]
mod tests;
