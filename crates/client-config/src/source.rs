//! A file to edit, the entries to write, and the obstacles.

use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::error::ConfigError;

/// Why the entries could not be inserted or removed.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The file is invalid.
    Config(ConfigError),
    /// The file is valid, but cannot be edited without changing other content.
    Unsafe(LocalizedText),
}

impl From<ConfigError> for Obstacle {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// A file and its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceFile<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
}

/// The server entries to write, by name.
pub(crate) type Entries = Vec<(String, Map<String, Value>)>;

/// The error for a value at `path` that is not an object.
pub(crate) fn not_an_object(file: &Path, path: &[&str]) -> ConfigError {
    let what = match path {
        [] => {
            return ConfigError::whole(
                file,
                LocalizedText::new("the file should be an object", "文件应为对象"),
            );
        }
        path => format!("`{}`", path.join(".")),
    };
    ConfigError::whole(
        file,
        LocalizedText::new(format!("{what} should be an object"), format!("{what} 应为对象")),
    )
}
