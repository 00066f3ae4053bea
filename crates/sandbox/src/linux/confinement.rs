//! What stays with a confined process while it runs: its private folder, its watcher, and its certain end.

use std::path::Path;
use std::process::ExitStatus;

use super::group::Group;
use super::mark::Mark;
use super::private::PrivateFolder;
use super::watch::{Subject, Watch};
use crate::error::SandboxError;
use crate::policy::{Isolation, Policy};
use crate::stop::Stop;
use crate::symptoms::{self, View};

/// Lives as long as a confined process. When it is finished or dropped, whatever is left of the process and of all it
/// started is ended, daemons included, and the private folder is removed.
#[derive(Debug)]
pub struct Confinement {
    policy: Policy,
    isolation: Isolation,
    mark: Mark,
    watch: Watch,
    _group: Option<Group>,
    // Removed last, when nobody writes to it any more.
    temporary: PrivateFolder,
}

impl Confinement {
    pub(super) fn new(
        policy: &Policy,
        isolation: Isolation,
        subject: Subject,
        (temporary, group): (PrivateFolder, Option<Group>),
    ) -> Result<Self, SandboxError> {
        let mark = subject.mark;
        let watch = Watch::start(subject)
            .map_err(|source| SandboxError::Prepare { step: "a thread that watches", source })?;
        Ok(Self { policy: policy.clone(), isolation, mark, watch, _group: group, temporary })
    }

    /// The process runs.
    pub fn started(&mut self, _pid: u32) {}

    /// Its private folder, which it may write.
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Why it was stopped or held back, once it has ended; nothing where the fence had no part in it.
    pub fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<Stop> {
        if let Some(stop) = self.watch.stop() {
            return Some(stop);
        }
        let granted = super::system_files::readable()
            .chain(self.policy.read.iter().chain(&self.policy.write).cloned())
            .chain([self.temporary.path().to_path_buf()]);
        let view = View::new(granted, self.isolation == Isolation::Bubblewrap);
        symptoms::read(&self.policy, &view, status, stderr_tail)
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
