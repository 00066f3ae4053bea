//! Supervision of the calls that an agent makes for a client: each call is decided before it runs, and reported when it has
//! ended.

use std::sync::Arc;

use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, Outcome, ToolCall};
use toolhub_engine::CatalogEntry;

/// A call that the agent is about to make.
#[derive(Debug, Clone, Copy)]
pub struct SupervisedCall<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The tools that it can reach. Never empty.
    pub tools: &'a [&'a Arc<CatalogEntry>],
}

impl SupervisedCall<'_> {
    /// Whether the call certainly changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.tools.iter().all(|entry| entry.tool.hints().read_only == Some(true))
    }

    /// Whether the call may destroy something, so that the client must approve it.
    pub fn needs_confirmation(&self) -> bool {
        self.tools.iter().any(|entry| entry.tool.needs_confirmation())
    }

    /// The source of the tool that is tried first.
    pub fn source(&self) -> String {
        self.tools.first().map(|entry| entry.tool.source.to_string()).unwrap_or_default()
    }
}

/// What happens to a call.
#[derive(Debug, Clone)]
pub enum CallDecision {
    /// It runs.
    Run,
    /// It waits for the client: the turn ends without it.
    Defer,
    /// It does not run, for this reason.
    Refuse(LocalizedText),
}

/// Decides about the calls of an agent.
pub trait CallSupervisor: Send + Sync {
    /// Decides about a call of the agent itself. If it runs, [`CallSupervisor::finished`] follows, unless the turn is dropped.
    fn decide<'a>(&'a self, call: SupervisedCall<'a>) -> BoxFuture<'a, CallDecision>;

    /// Whether a script of the agent may make a call. It cannot wait for the client.
    fn permits_in_script<'a>(&'a self, call: SupervisedCall<'a>) -> BoxFuture<'a, bool>;

    /// Receives the outcome of a call that ran, as the model sees it.
    fn finished<'a>(&'a self, call: &'a ToolCall, outcome: &'a Outcome) -> BoxFuture<'a, ()>;

    /// Whether a call of this turn waits for the client.
    fn has_deferred(&self) -> bool;
}
