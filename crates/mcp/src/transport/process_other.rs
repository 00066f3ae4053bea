//! A child on systems without process groups: only the child itself can be ended for certain.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::config::StdioSpec;
use crate::error::McpError;

const GRACE: Duration = Duration::from_millis(1500);

/// How a child is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It gets the time to leave by itself.
    Gentle,
    /// It never said a word, and need not be waited for.
    Brisk,
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
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
        if let Some(folder) = &spec.cwd {
            command.current_dir(folder);
        }
        let child = command.spawn().map_err(|error| McpError::hopeless(spec.why_not_started(&error)))?;
        Ok(Self { child })
    }

    /// Ends the child. Its input has been closed before.
    pub(crate) async fn stop(mut self, manners: Manners) -> Option<ExitStatus> {
        let grace = if manners == Manners::Gentle { GRACE } else { GRACE / 10 };
        if let Ok(status) = tokio::time::timeout(grace, self.child.wait()).await {
            return status.ok();
        }
        let _ = self.child.start_kill();
        self.child.wait().await.ok()
    }
}
