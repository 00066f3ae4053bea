//! A server during conversion between formats, and the outcome of the conversion.

use std::time::Duration;

use toolhub_core::OAuthSpec;
use toolhub_core::lang::LocalizedText;

use crate::transport::TransportSpec;

/// A server in the internal representation, during conversion from one file to another.
#[derive(Debug, Clone)]
pub struct ClientServer {
    /// The name, unchanged.
    pub id: String,
    /// The transport; variables have the form `${VAR}` or `${VAR:-default}`.
    pub transport: TransportSpec,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Settings that `mcp.json` does not support.
    pub extras: Extras,
    /// Fields without a counterpart.
    pub left_out: Vec<String>,
    /// Hints for the owner.
    pub notes: Vec<LocalizedText>,
}

/// Settings that `mcp.json` does not support, but `[[servers]]` in `toolhub.toml` does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// The connect timeout.
    pub connect_timeout: Option<Duration>,
    /// The call timeout.
    pub call_timeout: Option<Duration>,
    /// The allowed tools.
    pub tools: Option<Vec<String>>,
    /// The OAuth settings.
    pub oauth: OAuthSpec,
}

/// An entry that cannot be used.
#[derive(Debug, Clone)]
pub struct UnusableEntry {
    /// The name.
    pub id: String,
    /// The reason.
    pub why: LocalizedText,
}

/// An entry of a client's file.
pub type ReadResult = Result<ClientServer, UnusableEntry>;

/// The action taken for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAction {
    /// It was added.
    Added,
    /// An existing server of that name was kept.
    Kept,
    /// An existing server of that name was replaced.
    Replaced,
    /// It was not written.
    Skipped,
}

impl ServerAction {
    /// The name of the action.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Skipped => "skipped",
        }
    }
}

/// The outcome for one server.
#[derive(Debug, Clone)]
pub struct ServerOutcome {
    /// The server.
    pub id: String,
    /// The action.
    pub action: ServerAction,
    /// Why it was kept or skipped.
    pub why: Option<LocalizedText>,
    /// Fields that were not carried over.
    pub left_out: Vec<String>,
    /// Hints for the owner.
    pub notes: Vec<LocalizedText>,
}

impl ServerOutcome {
    /// A server that was not written, with the reason.
    pub fn not_written(id: &str, action: ServerAction, why: LocalizedText) -> Self {
        Self { id: id.to_owned(), action, why: Some(why), left_out: Vec::new(), notes: Vec::new() }
    }
}
