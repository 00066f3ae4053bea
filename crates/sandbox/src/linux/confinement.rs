//! What stays with a confined process while it runs: its private folder, its watcher, and its certain end.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::group::Group;
use super::mark::Mark;
use super::private::PrivateFolder;
use super::watch::{Subject, Watch};
use crate::error::SandboxError;
use crate::policy::{Isolation, Policy};
use crate::stop::Stop;
use crate::symptoms::{self, View};

/// What is held as long as a confined process lives.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) policy: Policy,
    pub(super) isolation: Isolation,
    /// The names of all that it may read.
    pub(super) readable: Vec<PathBuf>,
    pub(super) group: Option<Group>,
    // Removed last, when nobody writes to it any more.
    pub(super) temporary: PrivateFolder,
}

/// Lives as long as a confined process. When it is finished or dropped, whatever is left of the process and of all it
/// started is ended, daemons included, and the private folder is removed.
#[derive(Debug)]
pub struct Confinement {
    mark: Mark,
    watch: Watch,
    held: Held,
}

impl Confinement {
    pub(super) fn new(held: Held, subject: Subject) -> Result<Self, SandboxError> {
        let mark = subject.mark;
        let watch = Watch::start(subject)
            .map_err(|source| SandboxError::Prepare { step: "a thread that watches", source })?;
        Ok(Self { mark, watch, held })
    }

    /// The process runs.
    pub fn started(&mut self, _pid: u32) {}

    /// Its private folder, which it may write.
    pub fn temporary(&self) -> &Path {
        self.held.temporary.home()
    }

    /// Why it was stopped or held back, once it has ended; nothing where the fence had no part in it.
    pub fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<Stop> {
        if let Some(stop) = self.watch.stop() {
            return Some(stop);
        }
        // The kernel may have ended it before the watcher looked.
        if self.held.group.as_ref().is_some_and(Group::ran_out_of_memory) {
            return Some(Stop::Memory(self.held.policy.limits.memory));
        }
        let readable = self.held.readable.iter().cloned();
        let view = View::new(readable, self.held.isolation == Isolation::Bubblewrap);
        symptoms::read(&self.held.policy, &view, status, stderr_tail)
    }

    /// Ends whatever is left of it. To be called once the process itself has ended and before its streams are read to
    /// the end: what it left behind may hold them open.
    pub fn end_rest(&self) {
        self.mark.end_all();
    }

    /// Ends whatever is left of it, and removes its private folder.
    pub fn finish(self) {}
}

impl Drop for Confinement {
    fn drop(&mut self) {
        self.mark.end_all();
        self.watch.end();
    }
}
