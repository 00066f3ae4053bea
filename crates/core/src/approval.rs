//! Approvals: the definition of a tool that the user has reviewed and accepted.

use std::time::SystemTime;

use crate::boxed::BoxFuture;
use crate::json::RawJson;
use crate::source::Source;
use crate::store_error::StoreError;
use crate::tool::ToolName;

/// An approved definition.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The source of the tool.
    pub source: Source,
    /// The tool.
    pub tool: ToolName,
    /// Hash of the canonical definition: [`crate::tool::ToolDefinition::digest`].
    pub version: String,
    /// The original definition.
    pub definition: RawJson,
    /// Time of the approval.
    pub at: SystemTime,
}

/// Handling of a tool whose definition differs from the approved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// It can be called, with a warning.
    #[default]
    Warn,
    /// It is quarantined until it is approved again.
    Block,
}

/// Storage of approvals: at most one per tool.
pub trait Approvals: Send + Sync {
    /// All approvals.
    fn approvals(&self) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>>;

    /// Stores an approval; replaces the previous one of the tool.
    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes an approval; returns whether there was one.
    fn revoke<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}
