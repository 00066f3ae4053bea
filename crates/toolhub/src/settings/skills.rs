//! `[skills]` of `toolhub.toml`: where skills are looked for, what their scripts may do, and whether they are used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolhub_skills::{Grants, Origin, Root, SkillOptions};

use super::places::Places;
use super::sandbox::ProtectionName;

/// Folders in which agents keep skills, below a project or a user's home.
const USUAL: [&str; 2] = [".agents/skills", ".claude/skills"];
/// How far above the current folder the project may begin.
const HIGHEST: usize = 16;

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

impl SkillSettings {
    /// What the skills of these places are made with.
    pub fn options(&self, places: &Places) -> SkillOptions {
        SkillOptions {
            roots: if self.enabled { self.roots(places) } else { Vec::new() },
            grants: self.grants.clone(),
            allow_missing: self.allow_missing.iter().map(|name| name.0).collect(),
            python: self.python.clone(),
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
        for folder in project(places) {
            USUAL.iter().for_each(|usual| add(folder.join(usual), Origin::Project));
        }
        let beside = places.config.parent().unwrap_or(Path::new(""));
        add(beside.join("skills"), Origin::Config);
        for folder in &self.folders {
            let home = std::env::home_dir().and_then(|home| Some(home.join(folder.strip_prefix("~").ok()?)));
            add(home.unwrap_or_else(|| beside.join(folder)), Origin::Config);
        }
        if let Some(user) = &places.user {
            USUAL.iter().for_each(|usual| add(user.join(usual), Origin::User));
        }
        roots
    }
}

/// The folders of the project: the current one, and those above it up to where its repository begins. The user's own
/// folder is no project.
fn project(places: &Places) -> Vec<PathBuf> {
    let Some(here) = places.project.as_ref().and_then(|here| here.canonicalize().ok()) else {
        return Vec::new();
    };
    let home = places.user.as_ref().and_then(|user| user.canonicalize().ok());
    let mine = |folder: &&Path| Some(*folder) != home.as_deref();
    let above: Vec<&Path> = here.ancestors().take(HIGHEST).take_while(mine).collect();
    let top = above.iter().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    above.into_iter().take(top + 1).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_goes_up_to_its_repository_and_not_to_the_users_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let inner = home.join("work/app/src");
        std::fs::create_dir_all(home.join("work/app/.git")).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        let at = |here: &Path| Places {
            config: home.join(".config/toolhub/toolhub.toml"),
            servers: home.join("mcp.json"),
            project_servers: None,
            home: home.join("data"),
            project: Some(here.to_owned()),
            user: Some(home.clone()),
        };
        assert_eq!(project(&at(&inner)), [inner.clone(), home.join("work/app")]);
        assert_eq!(project(&at(&home.join("work"))), [home.join("work")]);
        assert_eq!(project(&at(&home)), Vec::<PathBuf>::new());
        let roots = SkillSettings::default().roots(&at(&home.join("work")));
        let origins: Vec<&str> = roots.iter().map(|root| root.origin.name()).collect();
        assert_eq!(origins, ["project", "project", "config", "user", "user"]);
    }
}
