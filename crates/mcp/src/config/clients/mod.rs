//! Configuration files of other MCP clients: the supported clients and their formats.

mod check;
mod claude;
mod codex;
mod detect;
mod editors;
mod entry;
mod fields;
mod gemini;
mod goose;
mod held;
mod json;
mod login;
mod members;
mod merge;
mod own;
mod places;
mod reading;
mod remove;
mod syntax;
mod toml;
mod variables;
mod yaml;
mod yaml_text;
mod yaml_tree;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;

pub use detect::detect;
pub use entry::{Action, ClientServer, Extras, Found, Outcome, Unusable};
pub use held::Held;
pub use merge::{Edited, Refused, Target, merge};
pub use places::{Place, Scope, Surroundings, System, places};
pub use remove::{Reversal, entries, entry_of, remove, revert};

use super::error::ConfigError;
use reading::Context;
use syntax::Syntax;

/// A client whose servers can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Anthropic's desktop application.
    ClaudeDesktop,
    /// Anthropic's command line.
    ClaudeCode,
    /// The editor Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// OpenAI's Codex.
    Codex,
    /// Google's Gemini CLI.
    Gemini,
    /// goose.
    Goose,
}

impl Client {
    /// All clients, in display order.
    pub const ALL: [Self; 7] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Goose,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
        }
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "goose",
        }
    }

    /// The client of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// The format of its file.
    pub fn format(self) -> Format {
        match self {
            Self::ClaudeDesktop => claude::DESKTOP,
            Self::ClaudeCode => claude::CODE,
            Self::Cursor => editors::CURSOR,
            Self::VsCode => editors::VS_CODE,
            Self::Codex => codex::FORMAT,
            Self::Gemini => gemini::FORMAT,
            Self::Goose => goose::FORMAT,
        }
    }
}

/// The format of a file and its capabilities.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Whether it can contain disabled servers.
    pub disables: bool,
    syntax: Syntax,
    /// The keys that lead to the servers.
    path: &'static [&'static str],
    write: fn(&ClientServer) -> members::Written,
}

/// The format of toolhub's own `mcp.json`.
pub const OWN_FORMAT: Format = own::FORMAT;

/// Reads the servers from the text of a client's file, in its order. An invalid entry does not affect the others.
pub fn read(place: &Place, text: &str, around: &Surroundings) -> Result<Vec<Found>, ConfigError> {
    let document = parse(place.client.format().syntax, &place.file, text)?;
    let context = Context::new(place, around);
    Ok(match place.client {
        Client::ClaudeDesktop => claude::read_desktop(&document, &context),
        Client::ClaudeCode => claude::read_code(&document, &context),
        Client::Cursor => editors::read_cursor(&document, &context),
        Client::VsCode => editors::read_vs_code(&document, &context),
        Client::Codex => codex::read(&document, &context),
        Client::Gemini => gemini::read(&document, &context),
        Client::Goose => goose::read(&document, &context),
    })
}

/// The text without a byte order mark, which some editors on Windows add.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn parse(syntax: Syntax, file: &Path, text: &str) -> Result<Value, ConfigError> {
    syntax.parse(file, without_mark(text))
}
