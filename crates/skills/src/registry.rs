//! The registry of discovered skills: which are used, which await approval, which are shadowed by another of the same
//! name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use toolhub_core::lang::LocalizedText;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Consent, Hints, RawJson, RawObject, Source, Tool, ToolDefinition, USE_SKILL, meta_keys};
use toolhub_sandbox::Protection;

use crate::approval_state::{ApprovalState, SkillApprovals, approval};
use crate::declarations::{Runner, SkillTool};
use crate::diagnostic::{Diagnostic, Severity};
use crate::discover::{Discovery, SkippedFile, discover};
use crate::file_set::{Digests, FileSet, Stamp};
use crate::grants::SkillGrants;
use crate::python::{InspectionMode, Python};
use crate::remote::RemoteSkill;
use crate::skill::{Skill, SkillOrigin, SkillRoot, SkillShape};
use crate::use_skill_definition;

/// The user's configuration of skills.
#[derive(Debug, Clone, Default)]
pub struct SkillOptions {
    /// Folders that are searched for skills, in order of precedence.
    pub roots: Vec<SkillRoot>,
    /// Grants by skill name.
    pub grants: BTreeMap<String, SkillGrants>,
    /// Sandbox protections that may be unavailable.
    pub allow_missing: Vec<Protection>,
    /// The Python interpreter of Python skills: a command or an absolute path. See
    /// [`SkillRegistry::with_python_consent`].
    pub python: Option<String>,
    /// The data folder, which holds the cache of inspected files.
    pub data: Option<PathBuf>,
    /// Names of built-in tools. A tool of a project skill never takes such a name, approved or not, so that the name
    /// means the same tool in every project.
    pub builtin: BTreeSet<String>,
}

/// A discovered skill and its state.
#[derive(Debug, Clone)]
pub struct RegisteredSkill {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The approval state.
    pub approval: ApprovalState,
    /// What the skill's scripts may access when they run.
    pub grants: SkillGrants,
    /// The file of the used skill that shadows this one, which has the same name.
    pub hidden_by: Option<PathBuf>,
    /// Catalog names of its tools, in the order of `skill.tools`.
    pub tool_names: Vec<String>,
}

impl RegisteredSkill {
    /// Whether the skill is approved and not shadowed.
    pub fn is_used(&self) -> bool {
        self.approval.may_be_used() && self.hidden_by.is_none()
    }
}

/// An immutable snapshot of all skills.
#[derive(Debug, Default)]
pub struct SkillSnapshot {
    /// The skills, in order of discovery.
    pub skills: Vec<RegisteredSkill>,
    /// Files that look like skills but cannot be used.
    pub skipped: Vec<SkippedFile>,
    /// Further notes for the user.
    pub notes: Vec<LocalizedText>,
    /// Skills of MCP servers, as far as listed.
    pub remote: Vec<RemoteSkill>,
    /// Maps a catalog name to the index of the skill and of the tool in it.
    by_tool: HashMap<String, (usize, usize)>,
}

impl SkillSnapshot {
    /// The names and descriptions of the skills that `use_skill` offers: those in use, sorted, and those of servers.
    fn offered(&self) -> Vec<(String, &str)> {
        let mut offered: Vec<(String, &str)> = self
            .used()
            .filter(|known| known.skill.shape == SkillShape::Folder)
            .map(|known| (known.skill.name.clone(), known.skill.description.as_str()))
            .collect();
        offered.sort();
        offered.extend(self.remote.iter().map(|skill| (skill.shown(), skill.description.as_str())));
        offered
    }

    /// Returns the used skill of that name, otherwise the first one of that name.
    pub fn named(&self, name: &str) -> Option<&RegisteredSkill> {
        let mut named = self.skills.iter().filter(|known| known.skill.name == name);
        let first = named.clone().next();
        named.find(|known| known.is_used()).or(first)
    }

    /// Returns the skill and its tool with that catalog name.
    pub fn with_tool(&self, name: &str) -> Option<(&RegisteredSkill, &SkillTool)> {
        let (skill, tool) = self.by_tool.get(name)?;
        let known = self.skills.get(*skill)?;
        Some((known, known.skill.tools.get(*tool)?))
    }

    /// The skills that are used.
    pub fn used(&self) -> impl Iterator<Item = &RegisteredSkill> {
        self.skills.iter().filter(|known| known.is_used())
    }
}

/// The registry of all skills.
#[derive(Debug)]
pub struct SkillRegistry {
    pub(crate) options: SkillOptions,
    pub(crate) python: Python,
    pub(crate) digests: Digests,
    approvals: Mutex<SkillApprovals>,
    snapshot: ArcSwap<SkillSnapshot>,
    texts: Mutex<HashMap<PathBuf, (Stamp, Arc<str>)>>,
    remote: Mutex<Vec<RemoteSkill>>,
    found: Mutex<Arc<Discovery>>,
}

impl SkillRegistry {
    /// Creates an empty registry; `refresh` fills it.
    pub fn new(options: SkillOptions) -> Self {
        let python = Python::new(options.python.as_deref(), options.data.as_deref(), None);
        Self {
            options,
            python,
            digests: Digests::default(),
            approvals: Mutex::default(),
            snapshot: ArcSwap::default(),
            texts: Mutex::default(),
            remote: Mutex::default(),
            found: Mutex::default(),
        }
    }

    /// Starts the interpreter of [`SkillOptions::python`] only if `consent` permits each start. Without this method
    /// every start is permitted, as for the default `python3`.
    #[must_use]
    pub fn with_python_consent(mut self, consent: Consent) -> Self {
        let SkillOptions { python, data, .. } = &self.options;
        self.python = Python::new(python.as_deref(), data.as_deref(), Some(consent));
        self
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<SkillSnapshot> {
        self.snapshot.load_full()
    }

    /// Locks the approved digests.
    pub fn approvals(&self) -> MutexGuard<'_, SkillApprovals> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches the folders again.
    pub async fn refresh(self: &Arc<Self>) {
        let registry = Arc::clone(self);
        // Project folders may be large, so the search runs on a blocking thread.
        let found =
            tokio::task::spawn_blocking(move || discover(&registry.options.roots)).await.unwrap_or_default();
        let found = Arc::new(self.with_classes(found).await);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        self.rebuild_snapshot().await;
    }

    /// Recomputes the approval state of each discovered skill.
    pub async fn rebuild_snapshot(self: &Arc<Self>) {
        let found = Arc::clone(&self.found.lock().unwrap_or_else(PoisonError::into_inner));
        let registry = Arc::clone(self);
        let snapshot =
            tokio::task::spawn_blocking(move || registry.build_snapshot(&found)).await.unwrap_or_default();
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Replaces the list of skills of MCP servers.
    pub fn set_remote(&self, skills: Vec<RemoteSkill>) {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&skills);
        let now = self.snapshot();
        let snapshot = SkillSnapshot {
            skills: now.skills.clone(),
            skipped: now.skipped.clone(),
            notes: now.notes.clone(),
            by_tool: now.by_tool.clone(),
            remote: skills,
        };
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Adds the tools defined by Python classes: in single files in the roots, and in `scripts/` of skills.
    async fn with_classes(&self, mut found: Discovery) -> Discovery {
        // `InspectionMode::Every`: a single file with a syntax error may be intended as a skill and is reported.
        let mut files: Vec<(PathBuf, InspectionMode)> =
            found.python_files.iter().map(|(file, _)| (file.clone(), InspectionMode::Every)).collect();
        let mut inside: Vec<(usize, String, PathBuf)> = Vec::new();
        for (at, skill) in found.skills.iter().enumerate() {
            for name in python_scripts(skill) {
                let file = skill.folder.join(&name);
                files.push((file.clone(), InspectionMode::Likely));
                inside.push((at, name, file));
            }
        }
        if files.is_empty() {
            return found;
        }
        let mut classes = self.python.classes(&files).await;
        for (at, name, file) in inside {
            let (Some(classes), Some(skill)) = (classes.remove(&file), found.skills.get_mut(at)) else {
                continue;
            };
            skill.diagnostics.extend(classes.diagnostics);
            skill
                .tools
                .extend(classes.tools.into_iter().map(|tool| SkillTool { file: name.clone(), ..tool }));
        }
        for (file, origin) in std::mem::take(&mut found.python_files) {
            let Some(classes) = classes.remove(&file) else { continue };
            if classes.tools.is_empty() {
                if !classes.diagnostics.is_empty() {
                    found.skipped.push(SkippedFile { file, origin, diagnostics: classes.diagnostics });
                }
                continue;
            }
            found.skills.push(single_file_skill(&file, origin, classes.tools));
        }
        found
    }

    /// Computes the approval state, the shadowing and the tool names of all skills.
    fn build_snapshot(&self, found: &Discovery) -> SkillSnapshot {
        let approvals = self.approvals().clone();
        let mut skills: Vec<RegisteredSkill> = Vec::new();
        let nothing = SkillGrants::default();
        for skill in &found.skills {
            let granted = self.options.grants.get(&skill.name).unwrap_or(&nothing);
            let (approval, _) = approval(skill, granted, &approvals, &self.digests);
            let grants = granted.and(&skill.requested);
            skills.push(RegisteredSkill {
                skill: Arc::new(skill.clone()),
                approval,
                grants,
                hidden_by: None,
                tool_names: Vec::new(),
            });
        }
        // Only a usable skill shadows others of its name.
        let mut used: HashMap<String, PathBuf> = HashMap::new();
        for known in skills.iter_mut().filter(|known| known.approval.may_be_used()) {
            match used.get(&known.skill.name) {
                Some(first) => known.hidden_by = Some(first.clone()),
                None => {
                    used.insert(known.skill.name.clone(), known.skill.file.clone());
                }
            }
        }
        let remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut snapshot = SkillSnapshot {
            skills,
            skipped: found.skipped.clone(),
            notes: found.notes.clone(),
            remote,
            by_tool: HashMap::new(),
        };
        name_tools(&mut snapshot, &self.options.builtin);
        snapshot
    }

    /// Returns the tools for the catalog: `use_skill`, and the tools of skills. Tools of unapproved skills are included
    /// but withheld.
    pub fn tools(&self) -> Vec<Tool> {
        let snapshot = self.snapshot();
        let mut tools: Vec<Tool> = use_skill_definition::tool(&snapshot.offered()).into_iter().collect();
        for known in snapshot.skills.iter().filter(|known| known.hidden_by.is_none()) {
            for (tool, name) in known.skill.tools.iter().zip(&known.tool_names) {
                let Some(definition) = definition(known, tool, name) else { continue };
                let approval = match known.approval {
                    ApprovalState::NotRequired => ApprovalStatus::Unseen,
                    ApprovalState::Approved => ApprovalStatus::Approved,
                    _ => ApprovalStatus::Quarantined,
                };
                let (tags, is_script) = (tool.tags.clone(), tool.runner == Runner::Calling);
                tools.push(Tool { tags, approval, is_script, ..Tool::new(Source::Skill, definition) });
            }
        }
        tools
    }

    /// Returns the current files of a skill.
    pub fn files_of(&self, skill: &Skill) -> Result<FileSet, LocalizedText> {
        self.digests.files_of(skill)
    }

    /// Returns the current approval state of a skill, and its files if it needs approval.
    pub(crate) fn check(&self, skill: &Skill) -> (ApprovalState, Option<FileSet>) {
        let nothing = SkillGrants::default();
        let granted = self.options.grants.get(&skill.name).unwrap_or(&nothing);
        approval(skill, granted, &self.approvals(), &self.digests)
    }

    /// Returns the current files of a skill if its current approval state permits use.
    pub fn files_if_usable(&self, skill: &Skill) -> Option<FileSet> {
        match self.check(skill) {
            (approval, Some(files)) => approval.may_be_used().then_some(files),
            (approval, None) => self.files_of(skill).ok().filter(|_| approval.may_be_used()),
        }
    }

    /// Returns the cached text of a file if the file has not changed since.
    pub(crate) fn cached_text(&self, file: &Path, stamp: Stamp) -> Option<Arc<str>> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(file).filter(|(known, _)| *known == stamp).map(|(_, text)| Arc::clone(text))
    }

    pub(crate) fn cache_text(&self, file: &Path, stamp: Stamp, text: Arc<str>) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned(), (stamp, text));
    }
}

/// Returns the Python files in `scripts/` that are not declared as tools.
pub(crate) fn python_scripts(skill: &Skill) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(skill.folder.join("scripts")) else { return Vec::new() };
    let names = entries.flatten().take(200).filter_map(|entry| entry.file_name().into_string().ok());
    let python = names.filter(|name| name.ends_with(".py")).map(|name| format!("scripts/{name}"));
    let mut new: Vec<String> =
        python.filter(|name| !skill.tools.iter().any(|tool| tool.file == *name)).collect();
    new.sort();
    new
}

/// Builds the skill of a single Python file.
pub(crate) fn single_file_skill(file: &Path, origin: SkillOrigin, tools: Vec<SkillTool>) -> Skill {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let description = tools.iter().map(|tool| tool.description.as_str()).collect::<Vec<_>>().join("; ");
    Skill {
        name: crate::fields::as_name(&stem).unwrap_or(stem),
        description,
        folder: file.parent().map(Path::to_path_buf).unwrap_or_default(),
        file: file.to_owned(),
        origin,
        shape: SkillShape::PythonFile,
        frontmatter: serde_json::Map::new(),
        strict: false,
        tools: tools.into_iter().map(|tool| SkillTool { file: name.clone(), ..tool }).collect(),
        requested: SkillGrants::default(),
        diagnostics: Vec::new(),
    }
}

/// Assigns catalog names: the tool's own name if free, otherwise prefixed with the name of its skill.
fn name_tools(snapshot: &mut SkillSnapshot, builtin: &BTreeSet<String>) {
    let order = |known: &RegisteredSkill| !known.is_used();
    let mut places: Vec<usize> = (0..snapshot.skills.len()).collect();
    // Used skills take their names first, so that an unapproved skill cannot take a name from them.
    places.sort_by_key(|at| snapshot.skills.get(*at).is_none_or(order));
    for at in places {
        let Some(known) = snapshot.skills.get_mut(at).filter(|known| known.hidden_by.is_none()) else {
            continue;
        };
        let mut names = Vec::new();
        let mut renamed = Vec::new();
        for (number, tool) in known.skill.tools.iter().enumerate() {
            let is_reserved =
                |name: &str| known.skill.origin == SkillOrigin::Project && builtin.contains(name);
            let free =
                |name: &str| name != USE_SKILL && !snapshot.by_tool.contains_key(name) && !is_reserved(name);
            let qualified = format!("{}__{}", known.skill.name, tool.name);
            let name = [tool.name.clone(), qualified].into_iter().find(|name| free(name));
            let name = name.unwrap_or_else(|| format!("{}__{}_{at}", known.skill.name, tool.name));
            if name != tool.name {
                renamed.push((tool.name.clone(), name.clone(), is_reserved(&tool.name)));
            }
            snapshot.by_tool.insert(name.clone(), (at, number));
            names.push(name);
        }
        known.tool_names = names;
        let skill = &known.skill.name;
        for (own, exposed_name, is_reserved) in renamed {
            snapshot.notes.push(match is_reserved {
                true => LocalizedText::new(
                    format!("the tool `{own}` of the skill `{skill}` is called `{exposed_name}`: a built-in tool has its name, which a project's skill does not take"),
                    format!("技能 `{skill}` 的工具 `{own}` 称为 `{exposed_name}`：与内置工具同名，项目的技能不能取代它"),
                ),
                false => LocalizedText::new(
                    format!("the tool `{own}` of the skill `{skill}` is called `{exposed_name}`, as the name is taken"),
                    format!("技能 `{skill}` 的工具 `{own}` 因重名而称为 `{exposed_name}`"),
                ),
            });
        }
    }
}

fn definition(known: &RegisteredSkill, tool: &SkillTool, name: &str) -> Option<ToolDefinition> {
    let meta = RawObject::default().with(meta_keys::SKILL, known.skill.name.as_str());
    let mut members = RawObject::default()
        .with("name", name)
        .with("description", tool.description.as_str())
        .with("inputSchema", tool.schema.clone());
    let hints = match tool.runner {
        // What such a script changes depends on the tools that it calls: it cannot promise to be repeatable.
        Runner::Calling => Hints { read_only: None, idempotent: None, ..tool.hints },
        Runner::Script | Runner::PythonClass(_) => tool.hints,
    };
    if hints != Hints::default() {
        members.set("annotations", RawJson::of(&hints));
    }
    ToolDefinition::parse(members.with("_meta", meta).into_raw()).ok()
}

/// Returns the faults above [`Severity::Advice`] of all skills and skipped files.
pub fn fatal_diagnostics(snapshot: &SkillSnapshot) -> impl Iterator<Item = &Diagnostic> {
    let skills = snapshot.skills.iter().flat_map(|known| &known.skill.diagnostics);
    let skipped = snapshot.skipped.iter().flat_map(|skipped| &skipped.diagnostics);
    skills.chain(skipped).filter(|diagnostic| diagnostic.severity > Severity::Advice)
}
