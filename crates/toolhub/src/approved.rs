//! The definitions that the owner has approved, and the approval status of each tool of a server.

use std::collections::HashMap;

use toolhub_core::approval::{Approval, Pin};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Source, ToolDefinition, ToolName};
use toolhub_mcp_client::config::ServerSpec;

/// The approved definitions.
#[derive(Debug, Default)]
pub(crate) struct Approved {
    by_source: HashMap<Source, HashMap<ToolName, Approval>>,
    /// Whether the approvals could not be read: then all tools of servers with `pin = "block"` are quarantined.
    unknown: bool,
}

impl Approved {
    /// Approvals of skills apply to files, and are handled by the skill registry.
    pub(crate) fn new(mut approvals: Vec<Approval>) -> Self {
        approvals.retain(|approval| approval.source != Source::Skill);
        let mut approved = Self::default();
        approvals.into_iter().for_each(|approval| approved.put(approval));
        approved
    }

    pub(crate) fn put(&mut self, approval: Approval) {
        let tools = self.by_source.entry(approval.source.clone()).or_default();
        tools.insert(approval.tool.clone(), approval);
    }

    pub(crate) fn get(&self, source: &Source, tool: &str) -> Option<&Approval> {
        self.by_source.get(source)?.get(tool)
    }

    /// All approvals, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Approval> {
        self.by_source.values().flat_map(HashMap::values)
    }

    pub(crate) fn remove(&mut self, source: &Source, tool: &ToolName) {
        if let Some(tools) = self.by_source.get_mut(source) {
            tools.remove(tool);
        }
    }

    /// Whether the approvals could not be read.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown
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
