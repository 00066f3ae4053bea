//! The syntaxes of configuration files: each is parsed into one tree type, and supports inserting and removing entries.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::ConfigError;
use crate::source::{Entries, Obstacle, SourceFile};
use crate::{json, toml, yaml};

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Toml,
    Yaml,
}

impl Syntax {
    /// Parses the text; an empty text is an empty object.
    pub(crate) fn parse(self, file: &Path, text: &str) -> Result<Value, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        match self {
            Self::Json => json::parse(file, text),
            Self::Toml => toml::parse(file, text),
            Self::Yaml => yaml::parse(file, text),
        }
    }

    /// The text with these entries in the object at `path`; entries of the same name are replaced.
    pub(crate) fn insert(
        self,
        source: SourceFile<'_>,
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
    pub(crate) fn remove(
        self,
        source: SourceFile<'_>,
        path: &[&str],
        ids: &[&str],
    ) -> Result<String, Obstacle> {
        match self {
            Self::Json => json::remove(source, path, ids),
            Self::Toml => toml::remove(source, path, ids),
            Self::Yaml => yaml::remove(source, path, ids),
        }
    }
}

/// The object at a path, if there is one.
pub(crate) fn object_at<'v>(document: &'v Value, path: &[&str]) -> Option<&'v Map<String, Value>> {
    path.iter().try_fold(document, |value, key| value.get(key))?.as_object()
}
