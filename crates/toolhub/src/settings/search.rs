//! `[search]` of `toolhub.toml`: how tools are found.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `[search]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SearchSettings {
    /// A folder with a sentence encoder; relative ones count from the config file's folder. Words alone without one.
    pub model: Option<PathBuf>,
}

impl SearchSettings {
    /// The model's folder, where there is one.
    pub fn model_folder(&self, config: &Path) -> Option<PathBuf> {
        let folder = self.model.as_ref()?;
        Some(config.parent().unwrap_or(Path::new(".")).join(folder))
    }
}
