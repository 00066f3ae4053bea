//! The owner of a confined process: holds its private folder and its watcher, and kills it on drop.

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

/// Resources held for the lifetime of a confined process.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) policy: Policy,
    pub(super) isolation: Isolation,
    /// All readable paths, for messages.
    pub(super) readable: Vec<PathBuf>,
    pub(super) group: Option<Group>,
    // Dropped last, after all processes that write to it have been killed.
    pub(super) temporary: PrivateFolder,
}

/// Lives as long as a confined process. When it is finished or dropped, the process and all its descendants, including
/// daemons, are killed, and the private folder is removed.
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

    /// Call this after the process has been spawned. Does nothing on Linux.
    pub fn started(&mut self, _pid: u32) {}

    /// The private folder, which the process may write.
    pub fn temporary(&self) -> &Path {
        self.held.temporary.home()
    }

    /// Returns why the process was stopped or denied an operation, after its exit; `None` if the sandbox was not
    /// involved.
    pub fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<Stop> {
        if let Some(stop) = self.watch.stop() {
            return Some(stop);
        }
        // The kernel may have killed it before the watcher's next check.
        if self.held.group.as_ref().is_some_and(Group::ran_out_of_memory) {
            return Some(Stop::Memory(self.held.policy.limits.memory));
        }
        let readable = self.held.readable.iter().cloned();
        let view = View::new(readable, self.held.isolation == Isolation::Bubblewrap);
        symptoms::read(&self.held.policy, &view, status, stderr_tail)
    }

    /// Kills the remaining processes. Call this after the process has exited and before reading its streams to the end:
    /// descendants may keep them open.
    pub fn end_rest(&self) {
        self.mark.end_all();
    }

    /// Kills the remaining processes and removes the private folder.
    pub fn finish(self) {}
}

impl Drop for Confinement {
    fn drop(&mut self) {
        self.mark.end_all();
        self.watch.end();
    }
}
