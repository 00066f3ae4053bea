//! The skills of a hub: found, approved by their owner, and added to the catalog.

mod served;
pub(crate) mod servers;
mod skill_scan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use toolhub_core::approval::Approval;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::{Event, EventKind, RawJson, RawObject, Source, ToolName};
use toolhub_skills::{
    ApprovalState, FileKind, FileSet, Skill, SkillApprovals, SkillOptions, SkillRegistry, SkillSnapshot,
};

use crate::hub::Hub;
use crate::settings::{Paths, Settings};

pub(crate) use served::{ServedSkill, encode_path};
pub(crate) use servers::is_manifest;
pub(crate) use skill_scan::{scan_text, split_text};

/// The changes of a skill since its approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillChange {
    /// New files.
    pub added: Vec<String>,
    /// Changed files.
    pub changed: Vec<String>,
    /// Removed files.
    pub removed: Vec<String>,
}

impl Hub {
    /// The skills as of the last scan.
    pub fn skills(&self) -> Arc<SkillSnapshot> {
        self.skills.snapshot()
    }

    /// The skill registry.
    pub fn skill_registry(&self) -> &Arc<SkillRegistry> {
        &self.skills
    }

    /// Scans the skills again, and updates the catalog. Returns whether their tools changed.
    pub async fn refresh_skills(&self) -> bool {
        let before = self.skills.tools();
        self.skills.refresh().await;
        self.read_approvals().await;
        self.publish_skills(&before)
    }

    /// Updates the catalog with the skills' tools. Returns whether they differ from `before`.
    pub(crate) fn publish_skills(&self, before: &[toolhub_core::Tool]) -> bool {
        let tools = self.skills.tools();
        let same = tools.len() == before.len()
            && tools.iter().zip(before).all(|(one, other)| {
                one.definition.raw().get() == other.definition.raw().get() && one.approval == other.approval
            });
        if !same {
            self.engine.set_tools(&Source::Skill, &tools);
            self.lists_version.send_modify(|count| *count += 1);
        }
        !same
    }

    async fn read_approvals(&self) {
        if !has_skills_needing_approval(&self.skills.snapshot()) {
            return;
        }
        let store = self.store.as_deref();
        if let Err(error) = read_approvals(&self.skills, store).await {
            self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
        }
    }

    /// Reads the approvals of skills again, which another process may have changed.
    pub(crate) async fn reload_skills(&self) -> bool {
        let before = self.skills.tools();
        self.read_approvals().await;
        self.publish_skills(&before)
    }

    /// Approves the current state of a skill.
    pub async fn approve_skill(&self, skill: &Skill, files: &FileSet) -> Result<(), StoreError> {
        let marks: BTreeMap<&str, String> = files
            .files
            .iter()
            .map(|(path, file)| (path.as_str(), digest_with_kind(&file.digest, file.kind)))
            .collect();
        let definition = RawObject::default()
            .with("skill", skill.name.as_str())
            .with("grants", RawJson::of(&skill.requested))
            .with("files", RawJson::of(&marks));
        let approval = Approval {
            source: Source::Skill,
            tool: ToolName::new(skill.key()),
            version: files.digest(),
            definition: definition.into_raw(),
            at: SystemTime::now(),
        };
        let store = self.approval_store()?;
        self.record_skill_approval(&skill.name, &format!("approved {}", approval.version)).await?;
        store.approve(approval.clone()).await?;
        self.skills.approvals().insert(approval.tool.to_string(), approval.version.clone());
        self.rebuild_snapshot().await;
        Ok(())
    }

    /// Revokes the approval of a skill. Returns whether there was one.
    pub async fn revoke_skill(&self, skill: &Skill) -> Result<bool, StoreError> {
        let key = ToolName::new(skill.key());
        let store = self.approval_store()?;
        self.record_skill_approval(&skill.name, "revoked the approval").await?;
        let revoked = store.revoke(&Source::Skill, &key).await?;
        self.skills.approvals().remove(key.as_str());
        self.rebuild_snapshot().await;
        Ok(revoked)
    }

    /// The skills that are served to clients, with the digests of their files.
    pub(crate) async fn served_skills(&self) -> Vec<ServedSkill> {
        // Another process may have revoked an approval since.
        self.reload_skills().await;
        let registry = Arc::clone(&self.skills);
        tokio::task::spawn_blocking(move || served::served(&registry)).await.unwrap_or_default()
    }

    /// Lists the skills of connected servers, so that they can be activated. Returns whether they changed.
    pub async fn refresh_server_skills(&self) -> bool {
        let remote_skills = self.server_skills.of_connected().await;
        if self.skills.snapshot().remote == remote_skills {
            return false;
        }
        let before = self.skills.tools();
        self.skills.set_remote(remote_skills);
        self.publish_skills(&before)
    }

    async fn rebuild_snapshot(&self) {
        let before = self.skills.tools();
        self.skills.rebuild_snapshot().await;
        self.publish_skills(&before);
    }

    /// The changes of a skill since its approval; `None` if it was never approved.
    pub async fn skill_change(&self, skill: &Skill, files: &FileSet) -> Option<SkillChange> {
        let approvals = self.store.as_deref()?.approvals().await.ok()?;
        let key = skill.key();
        let approval = approvals
            .iter()
            .find(|approved| approved.source == Source::Skill && approved.tool.as_str() == key)?;
        let before = approval.definition.object()?.get("files")?.decode::<BTreeMap<String, String>>().ok()?;
        let mut change = SkillChange::default();
        for (path, file) in &files.files {
            match before.get(path) {
                None => change.added.push(path.clone()),
                Some(old) if *old != digest_with_kind(&file.digest, file.kind) => {
                    change.changed.push(path.clone());
                }
                Some(_) => {}
            }
        }
        change.removed = before.into_keys().filter(|path| !files.files.contains_key(path)).collect();
        Some(change)
    }
}

/// A digest with the kind of the file.
fn digest_with_kind(digest: &str, kind: FileKind) -> String {
    match kind {
        FileKind::Plain => digest.to_owned(),
        FileKind::Executable => format!("{digest} executable"),
        FileKind::Link => format!("{digest} link"),
    }
}

/// The skill registry, before its first scan. `builtin` are the names of the built-in tools. The Python interpreter that a project
/// names is started only with consent.
pub(crate) fn skill_registry(settings: &Settings, paths: &Paths, builtin: BTreeSet<String>) -> SkillRegistry {
    let options = SkillOptions { builtin, ..settings.skills.options(paths) };
    let registry = SkillRegistry::new(options);
    match &settings.skills.python {
        Some(python) => registry.with_python_consent(paths.workspace.python_consent(python, &paths.config)),
        None => registry.with_python_consent(paths.workspace.default_python_consent()),
    }
}

/// Whether any skill requires an approval.
pub(crate) fn has_skills_needing_approval(snapshot: &SkillSnapshot) -> bool {
    snapshot.skills.iter().any(|skill| skill.approval != ApprovalState::NotRequired)
}

/// Loads the approvals of skills into a registry.
pub(crate) async fn read_approvals(
    registry: &Arc<SkillRegistry>,
    store: Option<&dyn HubStore>,
) -> Result<(), StoreError> {
    let Some(store) = store else { return Ok(()) };
    let approvals = store.approvals().await?;
    let of_skills = approvals.into_iter().filter(|approval| approval.source == Source::Skill);
    let approvals: SkillApprovals =
        of_skills.map(|approval| (approval.tool.to_string(), approval.version)).collect();
    if *registry.approvals() != approvals {
        *registry.approvals() = approvals;
        registry.rebuild_snapshot().await;
    }
    Ok(())
}
