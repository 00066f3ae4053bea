//! Tools as principals name them. Every surface of the gateway looks tools up by a [`ToolLookup`], so that each use of a tool that
//! is hidden from its principal is recorded, once (`authorize`).

use std::borrow::Cow;

use super::view::{ToolTarget, View};
use crate::audit_trail::CALL;

/// What a principal does with the tool that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// Calls it.
    Call,
    /// Reads its definition.
    Describe,
    /// Checks arguments against its schema.
    Check,
    /// Reads how a call would be routed.
    Explain,
    /// Approves its definition.
    Approve,
}

impl ToolUse {
    /// The operation in the record of a refusal.
    pub(super) fn operation(self) -> &'static str {
        match self {
            Self::Call => CALL,
            Self::Describe => "describe",
            Self::Check => "check",
            Self::Explain => "explain",
            Self::Approve => "approve",
        }
    }
}

/// A tool as a principal names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolLookup<'a> {
    pub(super) tool_use: ToolUse,
    pub(super) name: &'a str,
    /// The only source to look at; empty or `auto` for all.
    pub(super) source: &'a str,
}

impl<'a> ToolLookup<'a> {
    /// A tool of any source.
    pub(super) fn named(tool_use: ToolUse, name: &'a str) -> Self {
        Self { tool_use, name, source: "auto" }
    }

    /// The tool that the name means in a view.
    pub(super) fn find_in<'v>(&self, view: &'v View) -> Option<Cow<'v, ToolTarget>> {
        match self.source.trim() {
            "" | "auto" => view.target(self.name).map(Cow::Borrowed),
            source => view.target_at(self.name, source).map(Cow::Owned),
        }
    }

    /// Whether a view has a tool to which the name could refer, also if clients call it by another name.
    pub(super) fn is_known_to(&self, view: &View) -> bool {
        self.find_in(view).is_some()
            || (matches!(self.source.trim(), "" | "auto") && view.has_tool(self.name))
    }
}
