//! The record of changes by `toolhub init`, with the text of each file before and after. It is stored in the data folder, for
//! `toolhub init --undo`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolhub_client_config::{ConfigError, write_atomically};
use toolhub_core::lang::LocalizedText;
use toolhub_private_files::create_private_dir;

/// The file name in the data folder. The file contains earlier texts of other programs' files, including secrets, so only its
/// owner may read it.
const FILE: &str = "init.json";
/// The version of the format.
const FORMAT_VERSION: u32 = 1;

/// All runs that are not undone, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct InitRecord {
    version: u32,
    pub(crate) runs: Vec<InitRun>,
}

/// One run of `toolhub init` that changed something.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InitRun {
    /// When it ran, in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) files: Vec<FileChange>,
}

/// The role of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileRole {
    /// A client's file.
    Client,
    /// The user's `mcp.json`.
    Servers,
    /// The user's `toolhub.toml`.
    Settings,
}

/// The change of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileChange {
    pub(crate) role: FileRole,
    /// The name of the client, for a client's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The path before resolving links.
    pub(crate) file: PathBuf,
    /// The canonical path.
    pub(crate) real: PathBuf,
    /// The previous text; `None` if the file did not exist.
    pub(crate) before: Option<String>,
    /// The new text.
    pub(crate) after: String,
}

impl InitRecord {
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    /// Reads the record; empty if it does not exist.
    pub(crate) fn read(data_dir: &Path) -> Result<Self, ConfigError> {
        let file = Self::path(data_dir);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { version: FORMAT_VERSION, runs: Vec::new() });
            }
            Err(error) => return Err(ConfigError::io(&file, &error)),
        };
        let damaged = |why: String| {
            let what = LocalizedText::new(
                format!(
                    "the record of `toolhub init` cannot be read: {why}; it contains the earlier texts of the changed files under `before`"
                ),
                format!("无法读取 `toolhub init` 的记录：{why}；被修改文件的原文在 `before` 中"),
            );
            ConfigError::whole(&file, what)
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        match record.version {
            FORMAT_VERSION => Ok(record),
            other => Err(damaged(format!("version {other}"))),
        }
    }

    /// Writes the record atomically; removes it if there is nothing left to undo.
    pub(crate) fn write(&self, data_dir: &Path) -> Result<(), ConfigError> {
        let file = Self::path(data_dir);
        let failed = |error: std::io::Error| ConfigError::io(&file, &error);
        if self.runs.is_empty() {
            return match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        create_private_dir(data_dir).map_err(failed)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        write_atomically(&file, &(text + "\n"))
    }
}
