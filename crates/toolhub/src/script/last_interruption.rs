//! The last run of a script that was interrupted, and what it had called.

use std::sync::{Mutex, PoisonError};

use toolhub_core::CallId;
use toolhub_core::lang::LocalizedText;

/// The call of the run, and the text about its calls.
#[derive(Debug, Default)]
pub(super) struct LastInterruption(Mutex<Option<(CallId, LocalizedText)>>);

impl LastInterruption {
    /// Replaces that of an earlier run.
    pub(super) fn set(&self, call: &CallId, text: LocalizedText) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((call.clone(), text));
    }

    /// What this run had called, if it was the last one that was interrupted.
    pub(super) fn of(&self, call: &CallId) -> Option<LocalizedText> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(of, _)| of == call).map(|(_, text)| text.clone())
    }
}
