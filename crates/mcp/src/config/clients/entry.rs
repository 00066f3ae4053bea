//! One server between two formats, and what became of it.

use std::time::Duration;

use toolhub_core::lang::Text;

use super::super::oauth::OAuthSpec;
use super::super::spec::TransportSpec;

/// A server in our words, on its way from one file to another.
#[derive(Debug, Clone)]
pub struct ClientServer {
    /// Its name, as it was written.
    pub id: String,
    /// How it is reached; variables are in the form `${VAR}` or `${VAR:-default}`.
    pub transport: TransportSpec,
    /// Whether it is used.
    pub enabled: bool,
    /// What `mcp.json` has no place for.
    pub extras: Extras,
    /// Fields that have no counterpart.
    pub left_out: Vec<String>,
    /// What its owner should know.
    pub notes: Vec<Text>,
}

/// What `mcp.json` has no place for, and `[[servers]]` in `toolhub.toml` has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// Connecting.
    pub connect_timeout: Option<Duration>,
    /// A call.
    pub call_timeout: Option<Duration>,
    /// The only tools to be used.
    pub tools: Option<Vec<String>>,
    /// How to log in.
    pub oauth: OAuthSpec,
}

/// An entry that is no server for us.
#[derive(Debug, Clone)]
pub struct Unusable {
    /// Its name.
    pub id: String,
    /// Why it cannot be used.
    pub why: Text,
}

/// An entry of a client's file.
pub type Found = Result<ClientServer, Unusable>;

/// What was done with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is new there.
    Added,
    /// One of its name was there, and stays.
    Kept,
    /// One of its name was there, and went.
    Replaced,
    /// It is not written.
    Skipped,
}

impl Action {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Skipped => "skipped",
        }
    }
}

/// What became of one server.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which server.
    pub id: String,
    /// What was done.
    pub action: Action,
    /// Why it was kept or skipped.
    pub why: Option<Text>,
    /// Fields that were not carried over.
    pub left_out: Vec<String>,
    /// What its owner should know.
    pub notes: Vec<Text>,
}

impl Outcome {
    /// A server that is not written, and why.
    pub fn not_written(id: &str, action: Action, why: Text) -> Self {
        Self { id: id.to_owned(), action, why: Some(why), left_out: Vec::new(), notes: Vec::new() }
    }
}
