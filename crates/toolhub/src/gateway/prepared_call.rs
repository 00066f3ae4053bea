//! A call of a client before it is decided.

use std::sync::Arc;

use toolhub_core::{CallId, Coercion, NestedTools, RawJson};
use toolhub_mcp_gateway::GatewayCall;

/// A call with the arguments that the tool receives, apart from coercion.
pub(super) struct PreparedCall {
    pub(super) call: GatewayCall,
    pub(super) coercion: Coercion,
    pub(super) script: ScriptRole,
}

/// The part of a call in a script.
pub(super) enum ScriptRole {
    /// It has none.
    None,
    /// It runs a script, with these tools.
    Script(Arc<dyn NestedTools>),
    /// The script of this call makes it.
    CallOf(CallId),
    /// An agent makes it in a turn for the caller.
    CallOfTurn,
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
