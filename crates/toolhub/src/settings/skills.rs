//! `[skills]` of `toolhub.toml`: where skills are looked for, what their scripts may do, and whether they are used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolhub_skills::{Grants, Origin, Root, SkillOptions};

use super::places::Places;
use super::sandbox::ProtectionName;
use crate::trust::AGENT_SKILLS;

/// `[skills]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct SkillSettings {
    /// Whether skills are used at all.
    pub enabled: bool,
    /// Folders of skills beside the usual ones; relative ones count from the config file's folder.
    pub folders: Vec<PathBuf>,
    /// What the scripts of skills may do, by the names of skills.
    pub grants: BTreeMap<String, Grants>,
    /// Protections of the sandbox that scripts may go without, where the system lacks them.
    pub allow_missing: Vec<ProtectionName>,
    /// Which Python runs Python skills.
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

/// A command as it is meant in the config: a relative path counts from the config's folder.
fn rooted(command: &str, config: &Path) -> String {
    if !command.contains('/') || command.starts_with('~') {
        return command.to_owned();
    }
    let path = config.parent().unwrap_or(Path::new("")).join(command);
    std::path::absolute(&path).unwrap_or(path).display().to_string()
}

impl SkillSettings {
    /// What the skills of these places are made with.
    pub fn options(&self, places: &Places) -> SkillOptions {
        SkillOptions {
            roots: if self.enabled { self.roots(places) } else { Vec::new() },
            grants: self.grants.clone(),
            allow_missing: self.allow_missing.iter().map(|name| name.0).collect(),
            python: self.python.as_deref().map(|python| rooted(python, &places.config)),
            data: Some(places.home.clone()),
            builtin: BTreeSet::new(),
        }
    }

    /// Where skills are looked for: the project's before the owner's.
    fn roots(&self, places: &Places) -> Vec<Root> {
        let mut roots = Vec::new();
        // Whoever runs a file does not run where we do.
        let whole = |folder: PathBuf| std::path::absolute(&folder).unwrap_or(folder);
        let mut add = |folder: PathBuf, origin: Origin| roots.push(Root { folder: whole(folder), origin });
        let workspace = &places.workspace;
        for folder in workspace.skill_folders() {
            add(folder, Origin::Project);
        }
        let beside = places.config.parent().unwrap_or(Path::new(""));
        let home = |folder: &Path| Some(std::env::home_dir()?.join(folder.strip_prefix("~").ok()?));
        let named = self.folders.iter().map(|folder| home(folder).unwrap_or_else(|| beside.join(folder)));
        for folder in [beside.join("skills")].into_iter().chain(named) {
            // What a trusted project's settings name is still the project's: each skill is approved by itself.
            if let Some(origin) = workspace.origin_of_skills(&places.config, &folder) {
                add(folder, origin);
            }
        }
        if let Some(user) = &places.user {
            AGENT_SKILLS.iter().for_each(|usual| add(user.join(usual), Origin::User));
        }
        roots
    }
}
