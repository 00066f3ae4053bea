//! The skills of a hub: found, approved by their owner, and added to the catalog.

mod definition_scan;
mod served;
mod servers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use toolhub_core::approval::Approval;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::{Event, EventKind, RawJson, RawObject, Source, ToolName};
use toolhub_skills::{Agreed, ApprovalState, FileSet, Mark, Skill, SkillRegistry, Snapshot};

use crate::hub::Hub;

pub(crate) use definition_scan::{look_at, pieces};
pub(crate) use served::{ServedSkill, encoded};
pub(crate) use servers::{ServerSkills, is_manifest};

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
    pub fn skills(&self) -> Arc<Snapshot> {
        self.skills.shelf()
    }

    /// The skill registry.
    pub fn skill_book(&self) -> &Arc<SkillRegistry> {
        &self.skills
    }

    /// Scans the skills again, and updates the catalog. Returns whether their tools changed.
    pub async fn refresh_skills(&self) -> bool {
        let before = self.skills.tools();
        self.skills.refresh().await;
        self.read_agreed().await;
        self.put_skills(&before)
    }

    /// Updates the catalog with the skills' tools. Returns whether they differ from `before`.
    pub(crate) fn put_skills(&self, before: &[toolhub_core::Tool]) -> bool {
        let tools = self.skills.tools();
        let same = tools.len() == before.len()
            && tools.iter().zip(before).all(|(one, other)| {
                one.definition.raw().get() == other.definition.raw().get() && one.trust == other.trust
            });
        if !same {
            self.engine.set_tools(&Source::Skill, &tools);
            self.lists_kept.send_modify(|count| *count += 1);
        }
        !same
    }

    async fn read_agreed(&self) {
        if !waits_for_word(&self.skills.shelf()) {
            return;
        }
        let store = self.store.as_deref();
        if let Err(error) = read_agreed(&self.skills, store).await {
            self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
        }
    }

    /// Reads the approvals of skills again, which another process may have changed.
    pub(crate) async fn reload_skills(&self) -> bool {
        let before = self.skills.tools();
        self.read_agreed().await;
        self.put_skills(&before)
    }

    /// Approves the current state of a skill.
    pub async fn approve_skill(&self, skill: &Skill, files: &FileSet) -> Result<(), StoreError> {
        let marks: BTreeMap<&str, String> =
            files.files.iter().map(|(path, file)| (path.as_str(), marked(&file.digest, file.mark))).collect();
        let definition = RawObject::default()
            .with("skill", skill.name.as_str())
            .with("grants", RawJson::of(&skill.asked))
            .with("files", RawJson::of(&marks));
        let approval = Approval {
            source: Source::Skill,
            tool: ToolName::new(skill.key()),
            version: files.digest(),
            definition: definition.into_raw(),
            at: SystemTime::now(),
        };
        self.kept_approvals()?.approve(approval.clone()).await?;
        self.skills.agreed().insert(approval.tool.to_string(), approval.version.clone());
        self.stand_again().await;
        Ok(())
    }

    /// Revokes the approval of a skill. Returns whether there was one.
    pub async fn revoke_skill(&self, skill: &Skill) -> Result<bool, StoreError> {
        let key = ToolName::new(skill.key());
        let revoked = self.kept_approvals()?.revoke(&Source::Skill, &key).await?;
        self.skills.agreed().remove(key.as_str());
        self.stand_again().await;
        Ok(revoked)
    }

    /// The skills that are served to clients, with the digests of their files.
    pub(crate) async fn served_skills(&self) -> Vec<ServedSkill> {
        // Another process may have revoked an approval since.
        self.reload_skills().await;
        let book = Arc::clone(&self.skills);
        tokio::task::spawn_blocking(move || served::served(&book)).await.unwrap_or_default()
    }

    /// Lists the skills of connected servers, so that they can be activated. Returns whether they changed.
    pub async fn learn_server_skills(&self) -> bool {
        let found = self.server_skills.of_connected().await;
        if self.skills.shelf().foreign == found {
            return false;
        }
        let before = self.skills.tools();
        self.skills.set_foreign(found);
        self.put_skills(&before)
    }

    async fn stand_again(&self) {
        let before = self.skills.tools();
        self.skills.stand_again().await;
        self.put_skills(&before);
    }

    /// The changes of a skill since its approval; `None` if it was never approved.
    pub async fn skill_change(&self, skill: &Skill, files: &FileSet) -> Option<SkillChange> {
        let approvals = self.store.as_deref()?.approvals().await.ok()?;
        let key = skill.key();
        let approval =
            approvals.iter().find(|one| one.source == Source::Skill && one.tool.as_str() == key)?;
        let before = approval.definition.object()?.get("files")?.decode::<BTreeMap<String, String>>().ok()?;
        let mut change = SkillChange::default();
        for (path, file) in &files.files {
            match before.get(path) {
                None => change.added.push(path.clone()),
                Some(old) if *old != marked(&file.digest, file.mark) => change.changed.push(path.clone()),
                Some(_) => {}
            }
        }
        change.removed = before.into_keys().filter(|path| !files.files.contains_key(path)).collect();
        Some(change)
    }
}

/// A digest with the kind of the file.
fn marked(digest: &str, mark: Mark) -> String {
    match mark {
        Mark::Plain => digest.to_owned(),
        Mark::Executable => format!("{digest} executable"),
        Mark::Link => format!("{digest} link"),
    }
}

/// Whether any skill requires an approval.
pub(crate) fn waits_for_word(shelf: &Snapshot) -> bool {
    shelf.skills.iter().any(|known| known.standing != ApprovalState::Own)
}

/// Loads the approvals of skills into a registry.
pub(crate) async fn read_agreed(
    book: &Arc<SkillRegistry>,
    store: Option<&dyn HubStore>,
) -> Result<(), StoreError> {
    let Some(store) = store else { return Ok(()) };
    let approvals = store.approvals().await?;
    let of_skills = approvals.into_iter().filter(|approval| approval.source == Source::Skill);
    let agreed: Agreed = of_skills.map(|approval| (approval.tool.to_string(), approval.version)).collect();
    if *book.agreed() != agreed {
        *book.agreed() = agreed;
        book.stand_again().await;
    }
    Ok(())
}
