//! The journals of scripts: each run keeps one in the data folder, and removes it at its end. What is left of a hub that was
//! killed lets the run be resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolhub_core::CallId;
use toolhub_script::{FailureKind, FileJournal, Journal, JournalError, ScriptReport};
use toolhub_store::private_file;

/// Time after which the journal of a run that did not end is removed.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The extension of journals.
const EXTENSION: &str = "journal";

/// The folder of all journals.
#[derive(Debug, Clone)]
pub(crate) struct Journals(PathBuf);

/// The journal of one run. It is removed when it is dropped: a run that is cancelled is not resumed.
pub(crate) struct RunJournal {
    path: PathBuf,
    file: FileJournal,
    /// Whether an earlier run wrote it.
    is_resumed: bool,
    is_kept: bool,
}

impl Journals {
    pub(crate) fn in_folder(home: &Path) -> Self {
        Self(home.join("scripts"))
    }

    /// Opens or creates the journal of a run. `None` if the folder cannot be used: such a run cannot be resumed.
    pub(crate) fn open(&self, call: &CallId) -> Result<Option<RunJournal>, JournalError> {
        let Some(path) = self.path(call) else { return Ok(None) };
        if private_file::prepare(&self.0).is_err() {
            return Ok(None);
        }
        let is_resumed = path.is_file();
        match FileJournal::open(&path) {
            Ok(file) => Ok(Some(RunJournal { path, file, is_resumed, is_kept: false })),
            // A new run has no journal that could be lost.
            Err(JournalError::Io { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a run with this id has left a journal.
    pub(crate) fn has(&self, call: &CallId) -> bool {
        self.path(call).is_some_and(|path| path.is_file())
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
    pub(crate) fn as_journal(&mut self) -> &mut dyn Journal {
        &mut self.file
    }

    /// Keeps the journal if the run can be resumed: its process died, or it is unknown what happened.
    pub(crate) fn end(mut self, report: &ScriptReport) {
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
            assert!(journals.open(&CallId::new(id)).unwrap().is_none(), "{id}");
        }
        let id = CallId::generate();
        assert!(!journals.has(&id));
        let journal = journals.open(&id).unwrap().unwrap();
        assert!(journals.has(&id));
        journal
            .end(&ScriptReport::failed(toolhub_script::ScriptFailure::new(FailureKind::Syntax, "x".into())));
        assert!(!journals.has(&id));
    }
}
