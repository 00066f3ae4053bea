//! Approvals of tools by the owner: listed, given, revoked, and read again when another process has changed them.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::SystemTime;

use toolhub_core::approval::Approval;
use toolhub_core::audit::ChangeKind;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::{Event, EventKind, Source, Tool, ToolName};

use crate::approved::Approved;
use crate::hub::Hub;

impl Hub {
    pub(crate) fn approved(&self) -> MutexGuard<'_, Approved> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All approvals, by source and tool.
    pub fn approvals(&self) -> Vec<Approval> {
        let mut approvals: Vec<Approval> = self.approved().all().cloned().collect();
        approvals.sort_by(|one, other| (&one.source, &one.tool).cmp(&(&other.source, &other.tool)));
        approvals
    }

    /// The approval of a tool, whether or not it still matches.
    pub fn approval_of(&self, tool: &Tool) -> Option<Approval> {
        self.approved().get(&tool.source, tool.definition.wire_name().as_str()).cloned()
    }

    /// Approves the current definition of a tool for the principal with this id, once that is recorded.
    pub async fn approve(&self, tool: &Tool, principal: &Arc<str>) -> Result<(), StoreError> {
        let store = self.approval_store()?;
        let detail = format!("approved the definition {} of `{}`", tool.definition.digest(), tool.name());
        self.record_server_change(principal, &tool.source.to_string(), ChangeKind::Updated, &detail).await?;
        let approval = Approval {
            source: tool.source.clone(),
            tool: tool.definition.wire_name().clone(),
            version: tool.definition.digest().to_owned(),
            definition: tool.definition.raw().clone(),
            at: SystemTime::now(),
        };
        store.approve(approval.clone()).await?;
        self.approved().put(approval);
        self.refresh_source(&tool.source);
        Ok(())
    }

    /// Revokes an approval for the principal with this id, once that is recorded. Returns whether there was one.
    pub async fn revoke(
        &self,
        source: &Source,
        tool: &ToolName,
        principal: &Arc<str>,
    ) -> Result<bool, StoreError> {
        let is_approved = self.approved().get(source, tool.as_str()).is_some();
        if is_approved {
            let detail = format!("revoked the approval of `{tool}`");
            self.record_server_change(principal, &source.to_string(), ChangeKind::Updated, &detail).await?;
        }
        self.forget_approval(source, tool).await
    }

    /// Removes an approval. Returns whether there was one.
    pub(crate) async fn forget_approval(&self, source: &Source, tool: &ToolName) -> Result<bool, StoreError> {
        let revoked = self.approval_store()?.revoke(source, tool).await?;
        self.approved().remove(source, tool);
        self.refresh_source(source);
        Ok(revoked)
    }

    /// Reads the approvals again, which another process may have changed. Returns whether they changed.
    pub(crate) async fn reload_approvals(&self) -> bool {
        let Some(store) = &self.store else { return false };
        let approvals = match store.approvals().await {
            Ok(approvals) => approvals,
            Err(error) => {
                // The loaded approvals stay in force.
                self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
                return false;
            }
        };
        let key =
            |approval: &Approval| (approval.source.clone(), approval.tool.clone(), approval.version.clone());
        let of_tools = |approval: &&Approval| approval.source != Source::Skill;
        let mut read: Vec<_> = approvals.iter().filter(of_tools).map(key).collect();
        read.sort();
        let new = Approved::new(approvals);
        let previous: Vec<_> = self.approvals().iter().map(key).collect();
        let changed = read != previous || self.approved().is_unknown();
        if changed {
            *self.approved() = new;
            self.servers.load().iter().for_each(|server| self.refresh_server(server));
        }
        changed
    }

    pub(crate) fn approval_store(&self) -> Result<&dyn HubStore, StoreError> {
        self.store.as_deref().ok_or_else(|| StoreError("nothing can be kept; see `toolhub doctor`".into()))
    }

    fn refresh_source(&self, source: &Source) {
        let Source::Server(id) = source else { return };
        if let Some(server) = self.servers.find(id.as_str()) {
            self.refresh_server(&server);
        }
    }
}
