//! A relay: a process uses the connections of another one, a `toolhub serve` that runs with the same configuration, in place
//! of connections of its own. Routing, confirmation, deadlines and records stay with the process that makes the call;
//! the hub only forwards requests of one server, over the connection it has.
//!
//! Each link serves one server and carries lines of JSON. The client sends a [`Hello`]; the hub answers with one or two
//! [`Welcome`]s; from then on both sides exchange JSON-RPC messages in the form of the server's era. Requests carry the members of [`Forwarding`]
//! beside those of JSON-RPC, and the `data` of an error is a [`failure::Failure`]. Transport and access are decided
//! by the programs that open the streams.

mod caller;
mod failure;
mod link;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use toolhub_core::{BoxFuture, RawJson, RawObject};

pub(crate) use failure::Failure;
pub use link::Relay;

use crate::config::LaunchIdentity;
use crate::connection::Greeting;
use crate::era::Era;

/// Changes with the messages of a link.
const PROTOCOL: u32 = 1;
/// How long each side waits for the first message of the other. Beyond that the hub hangs, and is not used.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// The code of every error on a link; what failed is in its data.
pub(crate) const FAILED: i64 = -32099;

/// A stream of bytes to another process.
pub trait RelayStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> RelayStream for T {}

/// Opens streams to hubs that run already.
pub trait Dialer: Send + Sync {
    /// A stream to each hub that can be reached. Does not wait for hubs that hang.
    fn dial(&self) -> BoxFuture<'_, Vec<Dialed>>;
}

/// A stream to a hub.
pub struct Dialed {
    /// The stream.
    pub stream: Box<dyn RelayStream>,
    /// What the hub expects of its clients: proof that they can read the owner's files.
    pub secret: String,
}

impl std::fmt::Debug for Dialed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialed").finish_non_exhaustive()
    }
}

/// The first message of a client: which server it wants, and how it would connect to it itself.
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
    /// The server is not served over this link; nothing was started.
    Refused { en: String, zh: String },
    /// The hub connects to the server, or is connected; another answer follows.
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
    Failed { failure: Failure },
}

impl Welcome {
    fn ready(greeting: &Greeting) -> Self {
        Self::Ready {
            era: greeting.era.name().to_owned(),
            version: greeting.version.clone(),
            peer: greeting.peer.clone(),
            capabilities: greeting.capabilities.clone().into_raw().get().to_owned(),
            instructions: greeting.instructions.clone(),
        }
    }

    /// What the server said of itself; `None` for other answers, and for one that cannot be read.
    pub(crate) fn greeting(self) -> Option<Greeting> {
        let Self::Ready { era, version, peer, capabilities, instructions } = self else { return None };
        let era: Era = era.parse().ok()?;
        let capabilities: RawObject = RawJson::parse(capabilities).ok()?.object()?;
        Some(Greeting { era, doubtful: false, version, peer, capabilities, instructions })
    }
}

/// What a request says beside its message.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Forwarding {
    /// What it is about, as a modern server wants it in a header.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Headers beside the usual ones.
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    /// Whether it may be sent a second time.
    #[serde(default)]
    pub(crate) repeatable: bool,
}

#[cfg(test)]
mod tests;
