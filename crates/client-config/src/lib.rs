//! The configuration files of MCP clients: Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini CLI and goose. Their servers
//! are read into one representation, merged into the files of other clients, and removed again; everything else in a file stays
//! as it is. Nothing is started or contacted here, and no variable is expanded unless a caller asks for it.

mod check;
mod clients;
mod detect;
mod entry;
mod entry_builder;
mod environment;
mod error;
mod expand;
mod fields;
mod format;
mod json;
mod locations;
mod locked_file;
mod login;
mod members;
mod merge;
mod read;
mod reading;
mod remove;
mod sample;
mod source;
mod syntax;
mod toml;
mod toolhub_format;
mod transport;
mod variables;
mod write;
mod yaml;
mod yaml_text;
mod yaml_tree;

#[cfg(test)]
mod tests;

pub use clients::Client;
pub use detect::detect_client;
pub use entry::{ClientServer, Extras, ReadResult, ServerAction, ServerOutcome, UnusableEntry};
pub use environment::{ClientEnvironment, FileScope, OperatingSystem};
pub use error::ConfigError;
pub use expand::{expand_variables, variable_references};
pub use format::Format;
pub use locations::{ConfigLocation, config_locations};
pub use locked_file::LockedFile;
pub use merge::{EditError, MergeResult, TargetFile, merge_servers};
pub use read::read_servers;
pub use remove::{RevertResult, entry_of, raw_entries, remove_servers, revert_change};
pub use toolhub_format::TOOLHUB_FORMAT;
pub use transport::{HttpSpec, StdioSpec, TransportSpec};
pub use write::{FileLock, lock_file, write_atomically};
