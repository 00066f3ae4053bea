//! The record of changes by `toolhub init`, with the text of each file before and after. It is stored in the data folder, for
//! `toolhub init --undo`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolhub_core::lang::Text;
use toolhub_mcp::config::{ConfigError, write_whole};
use toolhub_store::private;

/// The file name in the data folder. The file contains earlier texts of other programs' files, including secrets, so only its
/// owner may read it.
const FILE: &str = "init.json";
/// The version of the format.
const VERSION: u32 = 1;

/// All runs that are not undone, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) runs: Vec<Run>,
}

/// One run of `toolhub init` that changed something.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// When it ran, in seconds since 1970.
    pub(super) at: u64,
    pub(super) files: Vec<FileChange>,
}

/// The role of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// A client's file.
    Client,
    /// The user's `mcp.json`.
    Servers,
    /// The user's `toolhub.toml`.
    Settings,
}

/// The change of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileChange {
    pub(super) role: Role,
    /// The name of the client, for a client's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    /// The path before resolving links.
    pub(super) file: PathBuf,
    /// The canonical path.
    pub(super) real: PathBuf,
    /// The previous text; `None` if the file did not exist.
    pub(super) before: Option<String>,
    /// The new text.
    pub(super) after: String,
}

impl Record {
    pub(super) fn path(home: &Path) -> PathBuf {
        home.join(FILE)
    }

    /// Reads the record; empty if it does not exist.
    pub(super) fn read(home: &Path) -> Result<Self, ConfigError> {
        let file = Self::path(home);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { version: VERSION, runs: Vec::new() });
            }
            Err(error) => return Err(ConfigError::io(&file, &error)),
        };
        let damaged = |why: String| {
            let what = Text::new(
                format!(
                    "the record of `toolhub init` cannot be read: {why}; it holds the earlier texts of the changed files under `before`"
                ),
                format!("无法读取 `toolhub init` 的记录：{why}；被修改文件的原文在 `before` 中"),
            );
            ConfigError::whole(&file, what)
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        match record.version {
            VERSION => Ok(record),
            other => Err(damaged(format!("version {other}"))),
        }
    }

    /// Writes the record atomically; removes it if there is nothing left to undo.
    pub(super) fn write(&self, home: &Path) -> Result<(), ConfigError> {
        let file = Self::path(home);
        let failed = |error: std::io::Error| ConfigError::io(&file, &error);
        if self.runs.is_empty() {
            return match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        private::create_dir(home).map_err(failed)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        write_whole(&file, &(text + "\n"))
    }
}
