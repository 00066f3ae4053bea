//! Approvals: the definitions that the owner approved, and the approval status of each tool of a server.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::SystemTime;

use toolhub_core::approval::{Approval, Pin};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Event, EventKind, Source, Tool, ToolDefinition, ToolName};
use toolhub_mcp_client::config::ServerSpec;

use crate::hub::Hub;

/// The approved definitions.
#[derive(Debug, Default)]
pub(crate) struct Approved {
    by_source: HashMap<Source, HashMap<ToolName, Approval>>,
    /// Whether the approvals could not be read: then all tools of servers with `pin = "block"` are quarantined.
    unknown: bool,
}

impl Approved {
    /// Approvals of skills apply to files, and are handled by the skill registry.
    fn new(mut approvals: Vec<Approval>) -> Self {
        approvals.retain(|approval| approval.source != Source::Skill);
        let mut approved = Self::default();
        approvals.into_iter().for_each(|approval| approved.put(approval));
        approved
    }

    fn put(&mut self, approval: Approval) {
        let tools = self.by_source.entry(approval.source.clone()).or_default();
        tools.insert(approval.tool.clone(), approval);
    }

    fn get(&self, source: &Source, tool: &str) -> Option<&Approval> {
        self.by_source.get(source)?.get(tool)
    }

    /// Loads the approvals when a hub is built.
    pub(crate) async fn load(
        store: Option<&dyn HubStore>,
        servers: &[ServerSpec],
        notes: &mut Vec<LocalizedText>,
    ) -> Self {
        // Only tools of servers are approved, so nothing is read without servers.
        if servers.is_empty() {
            return Self::default();
        }
        let read = match store {
            Some(store) => store.approvals().await,
            None => Err(StoreError("there is none".into())),
        };
        match read {
            Ok(approvals) => Self::new(approvals),
            Err(error) => {
                if servers.iter().any(|server| server.pin == Pin::Block) {
                    notes.push(LocalizedText::new(
                        format!("what was approved cannot be read, so pinned tools are held back: {error}"),
                        format!("无法读取批准记录，已固定的工具暂被隔离：{error}"),
                    ));
                }
                Self { unknown: true, ..Self::default() }
            }
        }
    }

    /// Compares a definition with the approved one.
    pub(crate) fn trust(&self, server: &ServerSpec, definition: &ToolDefinition) -> ApprovalStatus {
        if self.unknown && server.pin == Pin::Block {
            return ApprovalStatus::Quarantined;
        }
        let source = Source::Server(server.id.clone());
        let Some(approval) = self.get(&source, definition.name().as_str()) else {
            return ApprovalStatus::Unseen;
        };
        match (agrees(approval, definition), server.pin) {
            (true, _) => ApprovalStatus::Approved,
            (false, Pin::Warn) => ApprovalStatus::Changed,
            (false, Pin::Block) => ApprovalStatus::Quarantined,
        }
    }
}

/// Whether a definition is the approved one. Comparing the texts first avoids hashing at most starts.
fn agrees(approval: &Approval, definition: &ToolDefinition) -> bool {
    approval.definition.get() == definition.raw().get() || approval.version == definition.digest()
}

impl Hub {
    pub(crate) fn approved(&self) -> MutexGuard<'_, Approved> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All approvals, by source and tool.
    pub fn approvals(&self) -> Vec<Approval> {
        let mut all: Vec<Approval> =
            self.approved().by_source.values().flat_map(HashMap::values).cloned().collect();
        all.sort_by(|one, other| (&one.source, &one.tool).cmp(&(&other.source, &other.tool)));
        all
    }

    /// The approval of a tool, whether or not it still matches.
    pub fn approval_of(&self, tool: &Tool) -> Option<Approval> {
        self.approved().get(&tool.source, tool.definition.wire_name().as_str()).cloned()
    }

    /// Approves the current definition of a tool.
    pub async fn approve(&self, tool: &Tool) -> Result<(), StoreError> {
        let approval = Approval {
            source: tool.source.clone(),
            tool: tool.definition.wire_name().clone(),
            version: tool.definition.digest().to_owned(),
            definition: tool.definition.raw().clone(),
            at: SystemTime::now(),
        };
        self.approval_store()?.approve(approval.clone()).await?;
        self.approved().put(approval);
        self.refresh_source(&tool.source);
        Ok(())
    }

    /// Revokes an approval. Returns whether there was one.
    pub async fn revoke(&self, source: &Source, tool: &ToolName) -> Result<bool, StoreError> {
        let revoked = self.approval_store()?.revoke(source, tool).await?;
        if let Some(tools) = self.approved().by_source.get_mut(source) {
            tools.remove(tool);
        }
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
        let known: Vec<_> = self.approvals().iter().map(key).collect();
        let changed = read != known || self.approved().unknown;
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
