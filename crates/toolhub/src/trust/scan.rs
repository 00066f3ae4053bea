//! Scans a project folder once: its config files, skills, and the files that servers name; and computes the digest of all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolhub_client_config::{StdioSpec, TransportSpec};
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::config::{ServerSpec, parse_servers};

use super::files::{self, FileState};
use super::launch::{LaunchFiles, LaunchSite};
use super::location::FolderLocation;
use crate::settings::Settings;

/// The settings of a project.
pub(crate) const CONFIG: &str = "toolhub.toml";
/// Its servers; read only if there are settings.
pub(crate) const SERVERS: &str = "mcp.json";
/// The servers in the file that other MCP clients read, too.
pub(crate) const SHARED_SERVERS: &str = ".mcp.json";
/// Folders of agents' skills, relative to a project or a user's home.
pub(crate) const AGENT_SKILLS: [&str; 2] = [".agents/skills", ".claude/skills"];
/// The folder of skills next to the settings.
const CONFIG_SKILLS: &str = "skills";
/// The maximum number and total size of the skill files of a project.
const MAX_SKILL_FILES: usize = 10_000;
const MAX_SKILL_BYTES: u64 = 256 << 20;
/// Folders that tools create and that are not part of a skill.
const IGNORED: [&str; 2] = [".git", "__pycache__"];

/// Which part of a workspace a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkspacePart {
    Config,
    Skill,
    Launched,
}

/// How much of a folder is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanDepth {
    /// The names of files. No file is opened: links may lead anywhere.
    Names,
    /// Also the config files, and the files that servers name.
    Config,
    /// Everything that trust is bound to.
    Full,
}

/// An entry, and what it loads from the project.
#[derive(Debug)]
pub(crate) struct ScannedLaunch {
    pub(crate) spec: StdioSpec,
    pub(crate) loaded: LaunchFiles,
}

/// The contents of a folder.
#[derive(Debug)]
pub(crate) struct FolderScan {
    pub(crate) location: FolderLocation,
    /// The folder's owner.
    pub(crate) owner: Option<u32>,
    /// The bytes of its config files, by name.
    pub(crate) configs: BTreeMap<&'static str, Vec<u8>>,
    /// Every file that trust is bound to.
    pub(crate) parts: BTreeMap<(WorkspacePart, PathBuf), FileState>,
    /// The files that each entry loads.
    pub(crate) launches: Vec<ScannedLaunch>,
    /// Non-empty folders of skills, by their path in the project.
    pub(crate) skill_folders: Vec<PathBuf>,
    /// Why it cannot be checked completely.
    pub(crate) problems: Vec<LocalizedText>,
}

impl FolderScan {
    /// A path relative to the folder.
    pub(super) fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.location.folder).unwrap_or(path).to_owned()
    }

    /// Scans a folder.
    pub(crate) fn of(location: FolderLocation, depth: ScanDepth) -> Self {
        let owner = std::fs::metadata(&location.folder).ok().and_then(|found| files::owner_of(&found));
        let mut scan = Self {
            location,
            owner,
            configs: BTreeMap::new(),
            parts: BTreeMap::new(),
            launches: Vec::new(),
            skill_folders: Vec::new(),
            problems: Vec::new(),
        };
        scan.config(CONFIG, depth);
        if scan.configs.contains_key(CONFIG) {
            scan.config(SERVERS, depth);
        }
        scan.config(SHARED_SERVERS, depth);
        let settings = scan.settings();
        scan.skills(settings.as_ref(), depth);
        if depth != ScanDepth::Names {
            scan.launched(settings.as_ref());
        }
        scan
    }

    /// Whether it contains nothing relevant.
    pub(crate) fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.skill_folders.is_empty() && self.problems.is_empty()
    }

    /// The text of a config file; `None` if it does not exist or is not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.configs.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The settings, if they exist and can be parsed.
    pub(crate) fn settings(&self) -> Option<Settings> {
        Settings::parse(Path::new(CONFIG), self.text(CONFIG)?).ok()
    }

    /// The servers of all its files that can be parsed.
    pub(crate) fn servers(&self) -> Vec<ServerSpec> {
        let in_file = |name: &str| parse_servers(Path::new(name), self.text(name)?).ok();
        [SERVERS, SHARED_SERVERS].into_iter().filter_map(in_file).flatten().collect()
    }

    /// The names of its files and folders, for display.
    pub(crate) fn names(&self) -> Vec<String> {
        let configs =
            [CONFIG, SERVERS, SHARED_SERVERS].into_iter().filter(|name| self.configs.contains_key(name));
        let configs = configs.map(str::to_owned);
        let short = |folder: &PathBuf| {
            folder.strip_prefix(&self.location.folder).unwrap_or(folder).display().to_string()
        };
        configs.chain(self.skill_folders.iter().map(short)).collect()
    }

    /// A user other than the current user and root who owns the folder or a file in it.
    pub(crate) fn foreign_owner(&self) -> Option<u32> {
        // Includes the parents of skill folders up to the folder itself: their owners can replace their contents.
        let ancestors = |root: &'_ PathBuf| {
            let parts = root.ancestors().take_while(|part| *part != self.location.folder);
            parts
                .filter_map(|part| part.symlink_metadata().ok())
                .map(|found| files::owner_of(&found))
                .collect::<Vec<_>>()
        };
        let folders = self.skill_folders.iter().flat_map(ancestors);
        let owners = self.parts.values().map(|state| state.owner).chain([self.owner]).chain(folders);
        let me = files::current_user()?;
        owners.flatten().find(|owner| *owner != me && *owner != 0)
    }

    /// SHA-256 of the canonical path, the owner and every file. Each part is prefixed with its length, so that the encoding is
    /// injective.
    pub(crate) fn digest(&self) -> String {
        let mut all = Sha256::new();
        let mut add = |bytes: &[u8]| {
            all.update((bytes.len() as u64).to_le_bytes());
            all.update(bytes);
        };
        add(b"toolhub workspace 2");
        add(self.location.folder.as_os_str().as_encoded_bytes());
        add(&owner_bytes(self.owner));
        add(&(self.parts.len() as u64).to_le_bytes());
        for ((part, path), state) in &self.parts {
            add(&[*part as u8]);
            files::add_to_digest(path, state, &mut add);
        }
        hex::encode(&all.finalize())
    }

    fn config(&mut self, name: &'static str, depth: ScanDepth) {
        let file = self.location.folder.join(name);
        if depth == ScanDepth::Names {
            if file.exists() {
                self.configs.insert(name, Vec::new());
            }
            return;
        }
        match files::read(&file) {
            Ok(Some((bytes, state))) => {
                self.configs.insert(name, bytes);
                self.parts.insert((WorkspacePart::Config, file), state);
            }
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Adds every file below the skill folders. Links are followed, as they are when skills are read.
    fn skills(&mut self, settings: Option<&Settings>, depth: ScanDepth) {
        let folder = self.location.folder.clone();
        let mut roots: Vec<PathBuf> = Vec::new();
        if !self.location.is_home {
            roots.extend(AGENT_SKILLS.iter().map(|name| folder.join(name)));
        }
        if self.configs.contains_key(CONFIG) {
            roots.push(folder.join(CONFIG_SKILLS));
            let named = settings.map(|settings| settings.skills.folders.clone()).unwrap_or_default();
            let inside = |root: &PathBuf| {
                root.canonicalize().is_ok_and(|real| real.starts_with(&self.location.project))
            };
            roots.extend(named.iter().map(|named| folder.join(named)).filter(inside));
        }
        let (mut seen, mut bytes) = (BTreeSet::new(), 0);
        for root in roots {
            if depth != ScanDepth::Full {
                if std::fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_some()) {
                    self.skill_folders.push(root);
                }
                continue;
            }
            let before = self.parts.len();
            if let Err(problem) = self.walk(&root, &mut seen, &mut bytes) {
                self.problems.push(problem);
                return;
            }
            if self.parts.len() > before {
                self.skill_folders.push(root);
            }
        }
    }

    fn walk(
        &mut self,
        root: &Path,
        seen: &mut BTreeSet<PathBuf>,
        bytes: &mut u64,
    ) -> Result<(), LocalizedText> {
        let mut waiting = vec![root.to_owned()];
        while let Some(folder) = waiting.pop() {
            let Ok(real) = folder.canonicalize() else { continue };
            if !real.is_dir() || !seen.insert(real) {
                continue;
            }
            let entries = std::fs::read_dir(&folder).map_err(|error| files::unreadable(&folder, &error))?;
            for entry in entries.flatten() {
                let path = entry.path();
                if entry.file_name().to_str().is_some_and(|name| IGNORED.contains(&name)) {
                    continue;
                }
                // Follows links, since linked folders are scanned, too.
                let Ok(found) = std::fs::metadata(&path) else { continue };
                if found.is_dir() {
                    waiting.push(path);
                } else if found.is_file() {
                    *bytes = bytes.saturating_add(found.len());
                    if *bytes <= MAX_SKILL_BYTES
                        && let Some(state) = files::hash(&path)?
                    {
                        self.parts.insert((WorkspacePart::Skill, path), state);
                    }
                }
                let many = seen.len() + waiting.len() + self.parts.len() > MAX_SKILL_FILES;
                if many || *bytes > MAX_SKILL_BYTES {
                    let (root, size) = (root.display(), MAX_SKILL_BYTES >> 20);
                    return Err(LocalizedText::new(
                        format!("`{root}` has more than {MAX_SKILL_FILES} files or {size} MiB"),
                        format!("`{root}` 超过 {MAX_SKILL_FILES} 个文件或 {size} MiB"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds the files of the project that servers, and the Python interpreter of skills, are started from.
    fn launched(&mut self, settings: Option<&Settings>) {
        let python = settings.and_then(|settings| settings.skills.python.clone());
        let python = python.map(|command| StdioSpec { command, ..StdioSpec::default() });
        let servers = self.servers().into_iter().filter_map(|spec| match spec.transport {
            TransportSpec::Stdio(stdio) => Some(stdio),
            TransportSpec::Http(_) | TransportSpec::Sse(_) => None,
        });
        let site = self.site();
        for spec in servers.chain(python).collect::<Vec<_>>() {
            match site.launch_files(&spec) {
                Ok(loaded) => {
                    let files = loaded.files.iter();
                    self.parts.extend(
                        files.map(|(file, state)| ((WorkspacePart::Launched, file.clone()), state.clone())),
                    );
                    self.launches.push(ScannedLaunch { spec, loaded });
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// The location where its entries are started.
    pub(crate) fn site(&self) -> LaunchSite {
        LaunchSite::of(&self.location)
    }
}

fn owner_bytes(owner: Option<u32>) -> Vec<u8> {
    owner.map(|owner| owner.to_le_bytes().to_vec()).unwrap_or_default()
}
