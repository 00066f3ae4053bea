//! What the output of a script has beside its content.

use toolhub_core::{ToolError, meta_keys};

/// The member of [`meta_keys::SCRIPT`] with the value of a script of a skill, if that is neither text nor an object.
pub(super) const VALUE_KEY: &str = "value";
/// The member of it with the kind of failure.
pub(super) const FAILURE_KEY: &str = "failure";

/// The kind of failure of a script, such as `wall_limit`. `None` if another error ended its call.
pub fn script_failure(error: &ToolError) -> Option<String> {
    let ToolError::Failed { output: Some(output), .. } = error else { return None };
    let meta = output.raw().object()?.get("_meta")?.object()?;
    meta.get(meta_keys::SCRIPT)?.object()?.get(FAILURE_KEY)?.decode().ok()
}
