//! The format of a configuration file: its syntax, where its servers are, and how one is written.

use crate::entry::ClientServer;
use crate::entry_builder::WriteResult;
use crate::syntax::Syntax;

/// The format of a file and its capabilities.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Whether it can contain disabled servers.
    pub disables: bool,
    pub(crate) syntax: Syntax,
    /// The keys that lead to the servers.
    pub(crate) path: &'static [&'static str],
    pub(crate) write: fn(&ClientServer) -> WriteResult,
}

/// The text without a byte order mark, which some editors on Windows add.
pub(crate) fn strip_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
