//! `[search]` of `toolhub.toml`: how tools are found.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `[search]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SearchSettings {
    /// The folder of a sentence encoder; relative to the folder of the config file. Without it, search uses words only.
    pub model: Option<PathBuf>,
}

impl SearchSettings {
    /// The folder of the model, if one is set.
    pub fn model_folder(&self, config: &Path) -> Option<PathBuf> {
        let folder = self.model.as_ref()?;
        Some(config.parent().unwrap_or(Path::new(".")).join(folder))
    }
}
