//! A process group: a child and its descendants, signalled together.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Kills the remaining processes of the group on drop.
#[derive(Debug)]
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Makes the child the leader of a new process group.
    pub(super) fn prepare(command: &mut Command) {
        command.process_group(0);
    }

    /// The process group of a child.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Sends SIGTERM to the group.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL to the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The group has ended; its id may be reused.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // Fails if the group has ended already, which is fine.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
