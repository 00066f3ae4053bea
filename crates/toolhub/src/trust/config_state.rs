//! The config files of a folder when it was scanned.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::files::{self, FileState};
use super::scan::{FolderScan, WorkspacePart};

/// The config files of the current folder when it was scanned.
#[derive(Debug, Clone)]
pub(super) struct ConfigState {
    pub(super) folder: PathBuf,
    pub(super) files: BTreeMap<PathBuf, FileState>,
    pub(super) digest: String,
    /// Whether they are used because the folder is trusted for this run. Not in the owner's own folder: a process
    /// that can change files there runs programs as the owner already.
    pub(super) is_run_trusted: bool,
}

impl ConfigState {
    pub(super) fn of(scan: &FolderScan, is_run_trusted: bool) -> Self {
        let configs = scan.parts.iter().filter(|((part, _), _)| *part == WorkspacePart::Config);
        let files: BTreeMap<PathBuf, FileState> =
            configs.map(|((_, file), state)| (file.clone(), state.clone())).collect();
        Self { folder: scan.location.folder.clone(), digest: files::digest_of(&files), files, is_run_trusted }
    }
}
