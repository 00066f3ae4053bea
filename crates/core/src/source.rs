//! The source of a tool. Its host implements the access to it.

use std::fmt;
use std::sync::Arc;

/// Separates a source from the name of its tool in `source__name`.
pub const SOURCE_SEPARATOR: &str = "__";

/// The id of a configured MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(Arc<str>);

impl ServerId {
    /// Names with another meaning in a call's `source`, which a server's id must not use.
    pub const RESERVED: [&'static str; 4] = ["native", "skill", "appflowy", "mcp"];

    /// An id from the configuration.
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

/// The source of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Built in, or added by the embedding program.
    Native,
    /// An Agent Skill.
    Skill,
    /// An MCP server.
    Server(ServerId),
}

impl Source {
    /// Parses the name of a source, the inverse of its `Display`.
    pub fn from_name(name: &str) -> Self {
        match name {
            "native" => Self::Native,
            "skill" => Self::Skill,
            id => Self::Server(ServerId::new(id)),
        }
    }

    /// The kind of this source.
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

/// A kind of source, as used in the routing order.
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
