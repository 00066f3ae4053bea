//! The journals of scripts: each run keeps one in the data folder, and removes it at its end. What is left of a hub that was
//! killed lets the run be resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolhub_core::{CallId, RawJson};
use toolhub_script::{FailureKind, FileJournal, Journal, JournalError, ScriptReport};
use toolhub_store::private_file;

/// Time after which the journal of a run that did not end is removed.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The extension of journals.
const EXTENSION: &str = "journal";

/// The folder of all journals.
#[derive(Debug, Clone)]
pub(crate) struct Journals(PathBuf);

/// The journal of one run. A new one is removed when it is dropped: a run that is cancelled is not resumed. One of an earlier run
/// is kept until its run has ended.
pub(crate) struct RunJournal {
    path: PathBuf,
    file: FileJournal,
    /// Whether an earlier run wrote it.
    is_resumed: bool,
    is_kept: bool,
}

/// Why the journal of an earlier run cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReopenError {
    /// There is none: the run has ended, or is too old.
    Missing,
    /// A run uses it now.
    InUse,
    /// It cannot be read.
    Damaged,
}

impl Journals {
    pub(crate) fn in_folder(home: &Path) -> Self {
        Self(home.join("scripts"))
    }

    /// Creates the journal of a new run. `None` if the folder cannot be used: such a run cannot be resumed.
    pub(crate) fn create(&self, call: &CallId) -> Option<RunJournal> {
        // A caller of the library may choose an id twice: a new run does not continue another one.
        let path = self.path(call).filter(|path| !path.exists())?;
        private_file::prepare(&self.0).ok()?;
        let file = FileJournal::open(&path).ok()?;
        Some(RunJournal { path, file, is_resumed: false, is_kept: false })
    }

    /// Opens and locks the journal that an earlier run has left.
    pub(crate) fn reopen(&self, call: &CallId) -> Result<RunJournal, ReopenError> {
        let path = self.path(call).ok_or(ReopenError::Missing)?;
        let has_entries =
            || std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() > 0);
        if !has_entries() {
            return Err(ReopenError::Missing);
        }
        let file = FileJournal::open(&path).map_err(|error| match error {
            JournalError::InUse(_) => ReopenError::InUse,
            JournalError::Damaged { .. } | JournalError::Io { .. } => ReopenError::Damaged,
        })?;
        // Another run may have ended and removed its journal just now: the one that was opened is new then.
        if !has_entries() {
            let _ = std::fs::remove_file(&path);
            return Err(ReopenError::Missing);
        }
        // Every journal begins with its header.
        if file.header().is_none() {
            return Err(ReopenError::Damaged);
        }
        Ok(RunJournal { path, file, is_resumed: true, is_kept: true })
    }

    /// Removes journals that are too old to be resumed.
    pub(crate) fn remove_old(&self) {
        let Ok(files) = std::fs::read_dir(&self.0) else { return };
        for file in files.flatten() {
            let modified = file.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if file.path().extension().is_some_and(|extension| extension == EXTENSION)
                && age.is_some_and(|age| age > MAX_AGE)
            {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    /// Only ids of letters, digits, `_` and `-` name a file: a caller of the library may choose others.
    fn path(&self, call: &CallId) -> Option<PathBuf> {
        let id = call.as_str();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_name = !id.is_empty() && id.len() <= 100 && id.bytes().all(is_plain);
        is_name.then(|| self.0.join(format!("{id}.{EXTENSION}")))
    }
}

impl RunJournal {
    /// The arguments of the call that wrote it.
    pub(crate) fn arguments(&self) -> Option<&RawJson> {
        self.file.header()?.arguments.as_ref()
    }

    pub(crate) fn as_journal(&mut self) -> &mut dyn Journal {
        &mut self.file
    }

    /// The tools of the calls that were begun.
    pub(crate) fn begun(&self) -> impl Iterator<Item = &str> {
        self.file.begun()
    }

    /// Keeps the journal if the run can be resumed: its process died, or it is unknown what happened. Otherwise it is removed when
    /// it is dropped: not before the end of the call is recorded, since it has the only copy of the result until then.
    pub(crate) fn end(&mut self, report: &ScriptReport) {
        self.is_kept = report.failure().is_some_and(|failure| {
            use FailureKind::{Busy, Crashed, Diverged, NotStarted, Unknown};
            matches!(failure.kind, Crashed | Unknown | Diverged)
                || (self.is_resumed && matches!(failure.kind, NotStarted | Busy))
        });
    }
}

impl Drop for RunJournal {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_name_files() {
        let folder = tempfile::tempdir().unwrap();
        let journals = Journals::in_folder(folder.path());
        for id in ["../x", "a/b", "", ".", "a.b", &"x".repeat(101)] {
            assert!(journals.create(&CallId::new(id)).is_none(), "{id}");
        }
        let id = CallId::generate();
        assert_eq!(journals.reopen(&id).err(), Some(ReopenError::Missing));
        let mut journal = journals.create(&id).unwrap();
        // It is empty and locked.
        assert_eq!(journals.reopen(&id).err(), Some(ReopenError::Missing));
        journal
            .end(&ScriptReport::failed(toolhub_script::ScriptFailure::new(FailureKind::Syntax, "x".into())));
        drop(journal);
        assert_eq!(std::fs::read_dir(&journals.0).unwrap().count(), 0);
    }
}
