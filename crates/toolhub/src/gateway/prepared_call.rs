//! A call of a client before it is decided.

use std::sync::Arc;

use toolhub_core::{CallId, Coercion, NestedBudget, NestedOrigin, NestedTools, RawJson};
use toolhub_mcp_gateway::GatewayCall;

/// A call with the arguments that the tool receives, apart from coercion.
pub(super) struct PreparedCall {
    pub(super) call: GatewayCall,
    pub(super) coercion: Coercion,
    pub(super) script: ScriptRole,
}

/// The part of a call in scripts. A script of a skill that a script calls has both.
#[derive(Default)]
pub(super) struct ScriptRole {
    /// The tools of the script that the call runs, if it runs one.
    pub(super) nested: Option<Arc<dyn NestedTools>>,
    /// The call of the script that makes it, if one does.
    pub(super) parent: Option<CallId>,
    /// What it shares with the other calls of that script.
    pub(super) budget: Option<Arc<NestedBudget>>,
    /// Whether an agent makes it in a turn for the caller.
    pub(super) is_of_turn: bool,
}

impl ScriptRole {
    /// What the script that the call runs needs to know of it. Clients repeat their request instead of resuming a script.
    pub(super) fn origin(&self) -> NestedOrigin {
        NestedOrigin { budget: self.budget.clone(), may_resume: false }
    }
}

/// Removes arguments that are `null`: models write `null` for arguments that they omit.
pub(super) fn without_nulls(arguments: RawJson) -> RawJson {
    let Some(mut members) = arguments.object().filter(|_| arguments.get().contains("null")) else {
        return arguments;
    };
    let nulls: Vec<String> =
        members.iter().filter(|(_, value)| value.get() == "null").map(|(name, _)| name.to_owned()).collect();
    nulls.iter().for_each(|name| members.remove(name));
    if nulls.is_empty() { arguments } else { members.into_raw() }
}
