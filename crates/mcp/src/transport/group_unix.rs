//! A process group: a child and all that it started, signalled together.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Kills what is left of the group when nobody is there to do it gently.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// Makes the child the leader of a group of its own.
    pub(super) fn prepare(command: &mut Command) {
        command.process_group(0);
    }

    /// The group that a child leads.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Asks the group to leave.
    pub(super) fn ask_to_leave(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The group is gone; its number may soon be another's.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // The group may be gone already, which is what is wanted.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
