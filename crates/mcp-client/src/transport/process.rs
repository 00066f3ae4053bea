//! A child process and its descendants: started with an explicit environment, terminated reliably.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use toolhub_client_config::StdioSpec;
use toolhub_core::SandboxedProcess;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_wire::McpError;

use super::group::Group;
use crate::config::Permitted;

/// How long a child may take to exit after its stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);

/// How a child is terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// With the full grace period.
    Gentle,
    /// With a tenth of it: the child never answered.
    Brisk,
}

/// A running child that leads its own process group.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    group: Group,
    /// Dropped last: cleans up the processes outside the group.
    enclosure: Option<Box<dyn SandboxedProcess>>,
}

impl Process {
    /// Starts the server of `spec`.
    pub(crate) fn start(spec: &Permitted<StdioSpec>) -> Result<Self, McpError> {
        let mut command = std::process::Command::new(spec.program());
        command.args(&spec.args).env_clear().envs(spec.environment());
        #[cfg(target_os = "linux")]
        if let Some(mark) = super::sweep::mark() {
            command.env(super::sweep::MARK, mark);
        }
        if let Some(folder) = &spec.cwd {
            command.current_dir(folder);
        }
        let fence = spec.fence.as_ref().map(|fence| fence.enclose(&mut command));
        let enclosure = fence.transpose().map_err(McpError::hopeless)?;
        // Set last, since the sandbox may have replaced the program.
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Group::prepare(&mut command);
        let child = command.spawn().map_err(|error| McpError::hopeless(spec.why_not_started(&error)))?;
        let group = Group::of(&child);
        Ok(Self { child, group, enclosure })
    }

    /// Adds the sandbox's explanation to the cause, if the sandbox ended the child.
    pub(crate) fn explain(
        &self,
        cause: LocalizedText,
        status: Option<ExitStatus>,
        last_words: &str,
    ) -> LocalizedText {
        let verdict = || {
            self.enclosure.as_ref().zip(status).and_then(|(fence, status)| fence.verdict(status, last_words))
        };
        match verdict() {
            Some(verdict) => {
                let both = |lang| format!("{}: {}", cause.localize(lang), verdict.localize(lang));
                LocalizedText::new(both(Lang::En), both(Lang::Zh))
            }
            None => cause,
        }
    }

    /// Terminates the child and its descendants. Its stdin must be closed already.
    pub(crate) async fn stop(mut self, manners: Manners) -> Option<ExitStatus> {
        let grace = if manners == Manners::Gentle { GRACE } else { GRACE / 10 };
        let mut status = self.wait(grace).await;
        if status.is_none() {
            self.group.ask_to_leave();
            status = self.wait(grace).await;
        }
        // Also if the child has exited: its descendants may still run.
        self.group.kill();
        if status.is_none() {
            let _ = self.child.start_kill();
            status = self.wait(GRACE).await;
        }
        if status.is_some() {
            self.group.forget();
        }
        if let Some(enclosure) = self.enclosure.take() {
            // Searches for remaining processes and empties a folder, so it blocks.
            let _ = tokio::task::spawn_blocking(move || drop(enclosure)).await;
        }
        status
    }

    async fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(patience, self.child.wait()).await.ok()?.ok()
    }
}
