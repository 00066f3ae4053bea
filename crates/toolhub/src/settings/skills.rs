//! `[skills]` of `toolhub.toml`: the folders of skills, the permissions of their scripts, and whether skills are used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolhub_skills::{SkillGrants, SkillOptions, SkillOrigin, SkillRoot};

use super::paths::Paths;
use super::sandbox::ProtectionName;
use crate::trust::AGENT_SKILLS;

/// `[skills]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct SkillSettings {
    /// Whether skills are used.
    pub enabled: bool,
    /// Folders of skills besides the default ones; relative to the folder of the config file.
    pub folders: Vec<PathBuf>,
    /// Permissions of scripts, by the name of the skill.
    pub grants: BTreeMap<String, SkillGrants>,
    /// Protections of the sandbox that may be missing for scripts if the system does not support them.
    pub allow_missing: Vec<ProtectionName>,
    /// The Python interpreter for Python skills.
    pub python: Option<String>,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            folders: Vec::new(),
            grants: BTreeMap::new(),
            allow_missing: Vec::new(),
            python: None,
        }
    }
}

/// A command of the config: a relative path is resolved against the config's folder.
fn rooted(command: &str, config: &Path) -> String {
    if !command.contains('/') || command.starts_with('~') {
        return command.to_owned();
    }
    let path = config.parent().unwrap_or(Path::new("")).join(command);
    std::path::absolute(&path).unwrap_or(path).display().to_string()
}

impl SkillSettings {
    /// The options of the skill registry.
    pub fn options(&self, paths: &Paths) -> SkillOptions {
        SkillOptions {
            roots: if self.enabled { self.roots(paths) } else { Vec::new() },
            grants: self.grants.clone(),
            allow_missing: self.allow_missing.iter().map(|name| name.0).collect(),
            python: self.python.as_deref().map(|python| rooted(python, &paths.config)),
            data: Some(paths.data_dir.clone()),
            builtin: BTreeSet::new(),
        }
    }

    /// The folders of skills: the project's before the owner's.
    fn roots(&self, paths: &Paths) -> Vec<SkillRoot> {
        let mut roots = Vec::new();
        // Absolute, because scripts run in another working directory.
        let absolute = |folder: PathBuf| std::path::absolute(&folder).unwrap_or(folder);
        let mut add =
            |folder: PathBuf, origin: SkillOrigin| roots.push(SkillRoot { folder: absolute(folder), origin });
        let workspace = &paths.workspace;
        for folder in workspace.skill_folders() {
            add(folder, SkillOrigin::Project);
        }
        let config_folder = paths.config.parent().unwrap_or(Path::new(""));
        let home = |folder: &Path| Some(std::env::home_dir()?.join(folder.strip_prefix("~").ok()?));
        let named =
            self.folders.iter().map(|folder| home(folder).unwrap_or_else(|| config_folder.join(folder)));
        for folder in [config_folder.join("skills")].into_iter().chain(named) {
            // Skills that the settings of a trusted project name still belong to the project: each is approved separately.
            if let Some(origin) = workspace.origin_of_skills(&paths.config, &folder) {
                add(folder, origin);
            }
        }
        if let Some(user) = &paths.home_dir {
            AGENT_SKILLS.iter().for_each(|usual| add(user.join(usual), SkillOrigin::User));
        }
        roots
    }
}
