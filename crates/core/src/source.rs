//! Where a tool comes from; what it takes to reach a source is left to its host.

use std::fmt;
use std::sync::Arc;

/// The id of a configured MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(Arc<str>);

impl ServerId {
    /// Names that mean something else in a call's `source`, and so cannot be a server's id.
    pub const RESERVED: [&'static str; 4] = ["native", "skill", "appflowy", "mcp"];

    /// An id as it is written in the configuration.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Built into the hub, or added to it by the program that embeds it.
    Native,
    /// An Agent Skill.
    Skill,
    /// One MCP server.
    Server(ServerId),
}

impl Source {
    /// The source of that name, as [`Source`] is written.
    pub fn named(name: &str) -> Self {
        match name {
            "native" => Self::Native,
            "skill" => Self::Skill,
            id => Self::Server(ServerId::new(id)),
        }
    }

    /// Which of the three kinds this is.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Native => SourceKind::Native,
            Self::Skill => SourceKind::Skill,
            Self::Server(_) => SourceKind::Mcp,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Skill => f.write_str("skill"),
            Self::Server(id) => id.fmt(f),
        }
    }
}

/// A kind of source: what the routing order speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// MCP servers.
    Mcp,
    /// Skills.
    Skill,
    /// Native tools.
    Native,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mcp => "mcp",
            Self::Skill => "skill",
            Self::Native => "native",
        })
    }
}
