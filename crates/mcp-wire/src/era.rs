//! The protocol eras of MCP: their versions and the metadata of requests.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toolhub_core::RawObject;

/// The versions with an `initialize` handshake, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The stateless versions, newest first.
pub const MODERN: [&str; 1] = ["2026-07-28"];

/// The protocol era of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize` and sessions.
    Legacy,
    /// From 2026-07-28: stateless.
    Modern,
}

impl Era {
    /// The name in the configuration.
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Era {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            _ => Err(()),
        }
    }
}

/// The error code of a modern server that does not support the requested version.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Error codes that only modern servers use (2026-07-28, basic/index: error codes).
#[inline]
pub fn is_modern_error(code: i64) -> bool {
    (UNSUPPORTED_VERSION..=-32020).contains(&code)
}

/// Name and version of toolhub, for both sides of a handshake.
pub fn client_info() -> RawObject {
    RawObject::default().with("name", "toolhub").with("version", env!("CARGO_PKG_VERSION"))
}

/// The same as JSON text.
pub(crate) const CLIENT_INFO: &str =
    concat!(r#"{"name":"toolhub","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The `_meta` member with the protocol version of a modern request.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` member with the client's capabilities.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` member with the minimum level of log messages.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `_meta` member with the client's name and version.
pub const INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The params by which a client retries a request after an `input_required` result (2026-07-28, patterns/mrtr): the answers of
/// the client.
pub const INPUT_RESPONSES: &str = "inputResponses";
/// The same: the state that the server returned.
pub const REQUEST_STATE: &str = "requestState";
/// The name of the extension for skills.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";
