//! A child and everything it started: begun with a chosen environment, ended for certain.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use super::group::Group;
use crate::config::StdioSpec;
use crate::error::McpError;

/// How long a child may take to leave after its input was closed, and again after it was asked to.
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
            .kill_on_drop(true);
        Group::prepare(&mut command);
        #[cfg(target_os = "linux")]
        if let Some(mark) = super::sweep::mark() {
            command.env(super::sweep::MARK, mark);
        }
        if let Some(folder) = &spec.cwd {
            command.current_dir(folder);
        }
        let child = command.spawn().map_err(|error| McpError::hopeless(spec.why_not_started(&error)))?;
        let group = Group::of(&child);
        Ok(Self { child, group })
    }

    /// Ends the child and all it started. Its input has been closed before.
    pub(crate) async fn stop(mut self, manners: Manners) -> Option<ExitStatus> {
        let grace = if manners == Manners::Gentle { GRACE } else { GRACE / 10 };
        let mut status = self.wait(grace).await;
        if status.is_none() {
            self.group.ask_to_leave();
            status = self.wait(grace).await;
        }
        // Also where the child left by itself: what it started may not have.
        self.group.kill();
        if status.is_none() {
            let _ = self.child.start_kill();
            status = self.wait(GRACE).await;
        }
        if status.is_some() {
            self.group.forget();
        }
        status
    }

    async fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(patience, self.child.wait()).await.ok()?.ok()
    }
}
