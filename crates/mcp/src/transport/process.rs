//! A child and everything it started, as one process group: begun with a chosen environment, ended for certain.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::config::StdioSpec;
use crate::error::McpError;

/// How long a child may take to leave after its input was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);

/// How a child is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It gets the time to leave by itself.
    Gentle,
    /// It never said a word, and need not be waited for.
    Brisk,
}

/// A running child that leads its own process group.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    group: Group,
}

/// Kills what is left of the group when nobody is there to do it gently.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // The group may be gone already, which is what is wanted.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Process {
    /// Starts the server of `spec`.
    pub(crate) fn start(spec: &StdioSpec) -> Result<Self, McpError> {
        let mut command = Command::new(&spec.command);
        command
            .args(&spec.args)
            .env_clear()
            .envs(spec.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        #[cfg(target_os = "linux")]
        if let Some(mark) = super::sweep::mark() {
            command.env(super::sweep::MARK, mark);
        }
        if let Some(folder) = &spec.cwd {
            command.current_dir(folder);
        }
        let child = command.spawn().map_err(|error| McpError::hopeless(spec.why_not_started(&error)))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group: Group(pid) })
    }

    /// Ends the child and all it started. Its input has been closed before.
    pub(crate) async fn stop(mut self, manners: Manners) -> Option<ExitStatus> {
        let grace = if manners == Manners::Gentle { GRACE } else { GRACE / 10 };
        let mut status = self.wait(grace).await;
        if status.is_none() {
            self.group.signal(Signal::TERM);
            status = self.wait(grace).await;
        }
        // Also where the child left by itself: what it started may not have.
        self.group.signal(Signal::KILL);
        if status.is_none() {
            status = self.wait(GRACE).await;
        }
        status
    }

    async fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(patience, self.child.wait()).await.ok()?.ok()
    }
}
