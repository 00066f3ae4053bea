//! Folders that are trusted for one run: `--trust` and `TOOLHUB_TRUST`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folders that are trusted for this run only, in addition to the list of trusted folders.
#[derive(Debug, Clone, Default)]
pub struct RunTrust {
    /// Trusts the current folder, whichever it is.
    pub current_folder: bool,
    /// Trusts these folders, but not folders below them.
    pub folders: Vec<PathBuf>,
    /// Trusts nothing, but reads everything in a folder, for display.
    pub review: bool,
    /// Entries of `TOOLHUB_TRUST` that are not absolute paths and are ignored.
    pub ignored: Vec<PathBuf>,
}

impl RunTrust {
    /// Parses `TOOLHUB_TRUST`: `1` trusts the current folder; absolute paths trust only these folders.
    pub fn from_variable(value: Option<&OsStr>) -> Self {
        let Some(value) = value else { return Self::default() };
        if value.to_str().is_some_and(|value| ["1", "true", "yes"].contains(&value.trim())) {
            return Self { current_folder: true, ..Self::default() };
        }
        let named = std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty());
        let (folders, ignored) = named.partition(|path| path.is_absolute());
        Self { folders, ignored, ..Self::default() }
    }

    /// Whether a folder, if it is the current one, is trusted for this run.
    pub fn covers_run(&self, current: &Path) -> bool {
        self.current_folder || current.canonicalize().is_ok_and(|real| self.names(&real))
    }

    pub(super) fn names(&self, folder: &Path) -> bool {
        self.folders.iter().any(|named| named.canonicalize().is_ok_and(|real| real == folder))
    }
}
