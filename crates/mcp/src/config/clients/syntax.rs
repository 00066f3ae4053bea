//! The languages that config files are written in: each is read into one tree, and gets entries at a place in it.

use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::Text;

use super::super::error::ConfigError;
use super::{json, toml, yaml};

/// A language of config files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    Toml,
    Yaml,
}

/// Why a text did not get its entries.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The file is not right as it is.
    Config(ConfigError),
    /// It is right, but written in a way that cannot be edited without touching the rest.
    Unsafe(Text),
}

impl From<ConfigError> for Obstacle {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// The text of a file, and which file it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

/// Servers as a file is to hold them, by name.
pub(super) type Entries = Vec<(String, Map<String, Value>)>;

impl Syntax {
    /// The text as a tree; an empty one is an empty object.
    pub(super) fn parse(self, file: &Path, text: &str) -> Result<Value, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        match self {
            Self::Json => json::parse(file, text),
            Self::Toml => toml::parse(file, text),
            Self::Yaml => yaml::parse(file, text),
        }
    }

    /// The text with these entries in the object at `path`; an entry of the same name goes.
    pub(super) fn insert(
        self,
        source: Source<'_>,
        path: &[&str],
        entries: &Entries,
    ) -> Result<String, Obstacle> {
        match self {
            Self::Json => json::insert(source, path, entries),
            Self::Toml => toml::insert(source, path, entries),
            Self::Yaml => yaml::insert(source, path, entries),
        }
    }

    /// The text without the entries of these names in the object at `path`.
    pub(super) fn remove(self, source: Source<'_>, path: &[&str], ids: &[&str]) -> Result<String, Obstacle> {
        match self {
            Self::Json => json::remove(source, path, ids),
            Self::Toml => toml::remove(source, path, ids),
            Self::Yaml => yaml::remove(source, path, ids),
        }
    }
}

/// The object at a path, where there is one.
pub(super) fn object_at<'v>(document: &'v Value, path: &[&str]) -> Option<&'v Map<String, Value>> {
    path.iter().try_fold(document, |value, key| value.get(key))?.as_object()
}

/// What is said of a value at `path` that should be an object.
pub(super) fn not_an_object(file: &Path, path: &[&str]) -> ConfigError {
    let what = match path {
        [] => return ConfigError::whole(file, Text::new("the file should be an object", "文件应为对象")),
        path => format!("`{}`", path.join(".")),
    };
    ConfigError::whole(file, Text::new(format!("{what} should be an object"), format!("{what} 应为对象")))
}
