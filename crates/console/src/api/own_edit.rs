//! Edits of the config files in the console. In a folder that is trusted for one run, the running hub uses no other changes.

use std::path::Path;

use http::StatusCode;
use toolhub_core::lang::LocalizedText;

use crate::problem::Problem;
use crate::request::ConsoleContext;

/// Writes a config file, and records that as an edit of the owner. If it cannot be recorded, the file is written all the same: the
/// running hub does not use it then, and says so where it was started.
pub(super) fn record_own_edit<T>(
    context: &ConsoleContext<'_>,
    file: &Path,
    write: impl FnOnce() -> T,
) -> Result<T, Problem> {
    let failed = |why: LocalizedText| Problem::new(StatusCode::CONFLICT, "trusted-folder", why);
    let edit = context.hub().paths().workspace.start_own_edit().map_err(failed)?;
    let written = write();
    if let Some(edit) = edit {
        // The result of the write counts: it may be a key that is shown only once.
        let _ = edit.finish(&[file]);
    }
    Ok(written)
}
