//! What differs between the generations of MCP: versions, and what each request must carry.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toolhub_core::RawObject;

/// The versions that begin with `initialize`, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The versions that carry everything with each request, newest first.
pub(crate) const MODERN: [&str; 1] = ["2026-07-28"];

/// Which generation of MCP a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, and sessions.
    Legacy,
    /// From 2026-07-28: stateless.
    Modern,
}

impl Era {
    /// Its name.
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

/// The code of a modern server that does not speak the version it was addressed in.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// Codes that only a modern server uses (2026-07-28, basic/index: error codes).
pub(crate) fn is_modern_error(code: i64) -> bool {
    (UNSUPPORTED_VERSION..=-32020).contains(&code)
}

/// Who we are, as each side of a handshake says it.
pub(crate) fn client_info() -> RawObject {
    RawObject::default().with("name", "toolhub").with("version", env!("CARGO_PKG_VERSION"))
}

/// The same as it is written.
pub(crate) const CLIENT_INFO: &str =
    concat!(r#"{"name":"toolhub","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The version that a modern request is made in, as its `_meta` calls it.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What its client can be asked.
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// How grave what is logged must be for its client to hear of it.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who its client is.
pub(crate) const INFO: &str = "io.modelcontextprotocol/clientInfo";
