//! The registry of clients. A client is one file that implements [`ClientProgram`], and one line in `REGISTRY`.

mod claude_code;
mod claude_desktop;
mod codex;
mod cursor;
mod gemini;
mod goose;
mod vscode;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::entry::ReadResult;
use crate::environment::ClientEnvironment;
use crate::format::Format;
use crate::reading::ReadContext;
use crate::sample::{Evidence, Sample};

/// All clients, in display order.
static REGISTRY: &[&dyn ClientProgram] = &[
    &claude_desktop::ClaudeDesktop,
    &claude_code::ClaudeCode,
    &cursor::Cursor,
    &vscode::VsCode,
    &codex::Codex,
    &gemini::Gemini,
    &goose::Goose,
];

/// A client program: its names, its files, and the format of its servers.
pub(crate) trait ClientProgram: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// The product name.
    fn title(&self) -> &'static str;

    /// The format of its file.
    fn format(&self) -> Format;

    /// Environment variables with folders that move its files.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// The file of a project, relative to the project's folder. A file with this path is recognized as this client's.
    fn project_file(&self) -> Option<&'static str> {
        None
    }

    /// The user's files, the default one first.
    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf>;

    /// The name by which a file of the user is recognized in any folder.
    fn file_name(&self) -> Option<&'static str> {
        None
    }

    /// The folder that exists if the client is installed, also before its file `file` is written.
    fn folder(&self, file: &Path, _environment: &ClientEnvironment) -> Option<PathBuf> {
        file.parent().map(Path::to_path_buf)
    }

    /// What in the content of a file with an unknown name points to this client.
    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence>;

    /// Reads the servers of a file, in its order.
    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult>;
}

/// A client whose servers can be read and written.
#[derive(Clone, Copy)]
pub struct Client(&'static dyn ClientProgram);

impl Client {
    /// All clients, in display order.
    pub fn all() -> impl Iterator<Item = Self> {
        REGISTRY.iter().copied().map(Self)
    }

    /// The client of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|client| client.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        self.0.title()
    }

    /// The format of its file.
    pub fn format(self) -> Format {
        self.0.format()
    }

    /// The folder that exists if the client is installed, also before its file `file` is written.
    pub fn folder(self, file: &Path, environment: &ClientEnvironment) -> Option<PathBuf> {
        self.0.folder(file, environment)
    }

    pub(crate) fn program(self) -> &'static dyn ClientProgram {
        self.0
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Client {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn clients_have_distinct_names_and_files() {
        let count = Client::all().count();
        let distinct = |of: fn(Client) -> &'static str| Client::all().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!((distinct(Client::name), distinct(Client::title)), (count, count));
        let files: Vec<_> = REGISTRY.iter().filter_map(|program| program.project_file()).collect();
        assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len(), "{files:?}");
    }
}
