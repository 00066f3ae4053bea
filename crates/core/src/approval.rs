//! Approvals: which definition of a tool its owner has seen and agreed to.

use std::time::SystemTime;

use crate::json::RawJson;
use crate::ports::{BoxFuture, StoreError};
use crate::source::Source;
use crate::tool::ToolName;

/// A definition that the owner agreed to.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Where the tool lives.
    pub source: Source,
    /// Which tool.
    pub tool: ToolName,
    /// Hash of the canonical definition: [`crate::tool::ToolDefinition::digest`].
    pub version: String,
    /// The definition, as it was given.
    pub definition: RawJson,
    /// When.
    pub at: SystemTime,
}

/// What happens to a tool whose definition is not the approved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// It can be called, with a warning.
    #[default]
    Warn,
    /// It is held back until it is approved again.
    Block,
}

/// Where approvals are kept: at most one for each tool.
pub trait Approvals: Send + Sync {
    /// All of them.
    fn approvals(&self) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>>;

    /// Keeps one, in place of the one before.
    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Takes one back; whether there was one.
    fn revoke<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}
