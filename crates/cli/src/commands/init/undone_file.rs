//! The result of `init --undo` for each file.

use toolhub_core::{RawJson, RawObject};

use crate::commands::init::record::FileChange;

/// The result for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoStatus {
    /// Its previous bytes were restored.
    Restored,
    /// `init` created it, and it was deleted.
    Deleted,
    /// It was edited since: only entries were changed.
    Edited,
    /// It already has its previous contents.
    Unchanged,
    /// It was deleted since, and is not created again.
    Missing,
    /// It could not be undone.
    Failed,
}

impl UndoStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Unchanged => "unchanged",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// The result for a file, with its changed entries if it was edited since.
pub(crate) struct UndoneFile {
    pub(crate) change: FileChange,
    pub(crate) status: UndoStatus,
    pub(crate) removed: Vec<String>,
    pub(crate) restored: Vec<String>,
    pub(crate) kept: Vec<String>,
    pub(crate) error: Option<String>,
}

impl UndoneFile {
    pub(crate) fn new(change: &FileChange, status: UndoStatus) -> Self {
        let (removed, restored, kept) = (Vec::new(), Vec::new(), Vec::new());
        Self { change: change.clone(), status, removed, restored, kept, error: None }
    }

    pub(crate) fn as_json(&self) -> RawObject {
        RawObject::default()
            .with("file", self.change.file.to_string_lossy().into_owned())
            .with("client", RawJson::of(&self.change.client))
            .with("action", self.status.name())
            .with("removed", RawJson::of(&self.removed))
            .with("restored", RawJson::of(&self.restored))
            .with("kept", RawJson::of(&self.kept))
            .with("error", RawJson::of(&self.error))
    }
}
