//! Changes of a folder that is trusted for one run. Such trust covers the config files at the start of the run: later changes are
//! not used, except for edits of the owner.

use toolhub_core::lang::LocalizedText;

use super::Workspace;
use super::location::contains_data_folder;
use super::record::own_edits::{OwnEdit, config_files};
use super::record::trust_list::TrustList;

impl Workspace {
    /// A digest of the config files of the current folder, if they are used because it is trusted for this run; `None` also in the
    /// owner's own folder.
    pub fn run_trusted_state(&self) -> Option<&str> {
        self.config_state.as_ref().filter(|state| state.is_run_trusted).map(|state| state.digest.as_str())
    }

    /// Whether `toolhub trust` was run for the current folder with config files of this digest.
    pub fn is_trusted_with(&self, digest: &str) -> bool {
        self.is_trusted_permanently && self.config_state.as_ref().is_some_and(|state| state.digest == digest)
    }

    /// Whether edits of the owner changed the config files of the current folder from the state with the digest `before` to the
    /// scanned one. Not if the data folder lies in the project, which could then bring its own records.
    pub fn has_own_edits_since(&self, before: &str) -> bool {
        self.config_state.as_ref().is_some_and(|state| {
            !contains_data_folder(&state.folder, &self.data, self.home_dir.as_deref())
                && TrustList::read(&self.data).has_own_edits(&state.folder, before, &state.digest)
        })
    }

    /// Starts an edit of the owner, if the current folder is trusted for this run. Its config files are read again.
    pub fn start_own_edit(&self) -> Result<Option<OwnEdit>, LocalizedText> {
        let Some(state) = self.config_state.as_ref().filter(|state| state.is_run_trusted) else {
            return Ok(None);
        };
        Ok(Some(OwnEdit::new(&state.folder, &self.data, config_files(&state.folder)?)))
    }
}
