//! Calls: requests to run a tool. The result of a call is an [`crate::Outcome`].

use std::sync::Arc;
use std::time::Duration;

pub use crate::call_id::CallId;
use crate::caller::CallerHandle;
use crate::json::RawJson;
use crate::nested::{NestedBudget, NestedOrigin, NestedTools};
use crate::principal::Authorization;
use crate::source::Source;
use crate::tool::ToolName;

/// Whether a call names a tool or a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CallBy {
    /// The name of a tool.
    #[default]
    Name,
    /// A capability: any tool that has it may serve the call.
    Capability,
}

/// Whether arguments that nearly match a tool's schema are coerced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coercion {
    /// Arguments are passed unchanged, and rejected if they do not match.
    #[default]
    Off,
    /// Unambiguous deviations are corrected, and the corrections reported.
    On,
}

/// A request to run a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The name of a tool or of a capability.
    pub tool: ToolName,
    /// Whether `tool` names a tool or a capability.
    pub by: CallBy,
    /// The arguments: an object.
    pub arguments: RawJson,
    /// Whether arguments that do not match the schema are coerced.
    pub coercion: Coercion,
    /// The source that the caller names; see the routing rules for its effect.
    pub source: Option<String>,
    /// Timeout of the call, if the caller sets one.
    pub timeout: Option<Duration>,
    /// The conversation it belongs to.
    pub conversation: Option<Arc<str>>,
    /// The user's request in natural language that the call serves, if any.
    pub request: Option<String>,
    /// The sources that may serve the call; `None` allows all.
    pub sources: Option<Arc<[Source]>>,
    /// Handle to the caller, if it can receive messages while the call runs.
    pub caller: Option<CallerHandle>,
    /// Who makes the call, and what allowed it.
    pub authorization: Authorization,
    /// The call that makes this one, if a tool does.
    pub parent: Option<CallId>,
    /// What it shares with other calls, if a tool makes it.
    pub budget: Option<Arc<NestedBudget>>,
    /// The tools that the tool may call in turn; `None` if the tool decides that by itself.
    pub nested: Option<Arc<dyn NestedTools>>,
}

impl ToolCall {
    /// A call of `tool` with `arguments`.
    pub fn new(tool: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self::of(ToolName::new(tool), arguments)
    }

    /// A call of a tool by `ToolName`.
    pub fn of(tool: ToolName, arguments: impl Into<RawJson>) -> Self {
        Self {
            id: CallId::generate(),
            tool,
            by: CallBy::Name,
            arguments: arguments.into(),
            coercion: Coercion::Off,
            source: None,
            timeout: None,
            conversation: None,
            request: None,
            sources: None,
            caller: None,
            authorization: Authorization::default(),
            parent: None,
            budget: None,
            nested: None,
        }
    }

    /// Whether a person of this machine made it directly: such a call may be resumed after a crash. Agents and clients repeat
    /// their request instead.
    pub fn may_resume(&self) -> bool {
        let has_identity = self.caller.as_ref().is_some_and(|caller| caller.principal().is_some());
        self.parent.is_none()
            && self.request.is_none()
            && !has_identity
            && self.authorization == Authorization::default()
    }

    /// What its nested calls need to know of it.
    pub fn nested_origin(&self) -> NestedOrigin {
        NestedOrigin { budget: self.budget.clone(), may_resume: self.may_resume() }
    }

    /// A call of any tool with this capability.
    pub fn by_capability(capability: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self { by: CallBy::Capability, ..Self::new(capability, arguments) }
    }

    /// Restricts the call to `source`.
    #[must_use]
    pub fn at(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Allows coercion of the arguments.
    #[must_use]
    pub fn with_coercion(mut self) -> Self {
        self.coercion = Coercion::On;
        self
    }

    /// Sets a timeout.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}
