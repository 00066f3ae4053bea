//! The owner of a confined process: holds its private folder and its watcher, and kills it on drop.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::cgroup::Cgroup;
use super::private::PrivateFolder;
use super::process_tag::ProcessTag;
use super::watch::{Watch, WatchedProcess};
use crate::error::SandboxError;
use crate::policy::{Isolation, SandboxPolicy};
use crate::stop_reason::StopReason;
use crate::symptoms::{self, View};

/// Resources held for the lifetime of a confined process.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) policy: SandboxPolicy,
    pub(super) isolation: Isolation,
    /// All readable paths, for messages.
    pub(super) readable: Vec<PathBuf>,
    pub(super) cgroup: Option<Cgroup>,
    // Dropped last, after all processes that write to it have been killed.
    pub(super) temporary: PrivateFolder,
}

/// Lives as long as a confined process. When it is finished or dropped, the process and all its descendants, including
/// daemons, are killed, and the private folder is removed.
#[derive(Debug)]
pub struct Confinement {
    process_tag: ProcessTag,
    watch: Watch,
    resources: Resources,
}

impl Confinement {
    pub(super) fn new(resources: Resources, subject: WatchedProcess) -> Result<Self, SandboxError> {
        let process_tag = subject.process_tag;
        let watch = Watch::start(subject)
            .map_err(|source| SandboxError::Prepare { step: "a thread that watches", source })?;
        Ok(Self { process_tag, watch, resources })
    }

    /// Call this after the process has been spawned. Does nothing on Linux.
    pub fn started(&mut self, _pid: u32) {}

    /// The private folder, which the process may write.
    pub fn temporary(&self) -> &Path {
        self.resources.temporary.home()
    }

    /// Returns why the process was stopped or denied an operation, after its exit; `None` if the sandbox was not
    /// involved.
    pub fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<StopReason> {
        if let Some(stop_reason) = self.watch.stop_reason() {
            return Some(stop_reason);
        }
        // The kernel may have killed it before the watcher's next check.
        if self.resources.cgroup.as_ref().is_some_and(Cgroup::ran_out_of_memory) {
            return Some(StopReason::Memory(self.resources.policy.limits.memory));
        }
        let readable = self.resources.readable.iter().cloned();
        let view = View::new(readable, self.resources.isolation == Isolation::Bubblewrap);
        symptoms::read(&self.resources.policy, &view, status, stderr_tail)
    }

    /// Kills the remaining processes. Call this after the process has exited and before reading its streams to the end:
    /// descendants may keep them open.
    pub fn end_rest(&self) {
        self.process_tag.kill_all();
    }

    /// Kills the remaining processes and removes the private folder.
    pub fn finish(self) {}
}

impl Drop for Confinement {
    fn drop(&mut self) {
        self.process_tag.kill_all();
        self.watch.end();
    }
}
