//! A child process and its descendants: started with an explicit environment, terminated reliably.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use toolhub_client_config::StdioSpec;
use toolhub_core::SandboxedProcess;
use toolhub_core::consent::PreparedFolder;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_wire::McpError;

use super::process_group::ProcessGroup;
use crate::config::PermittedSpec;

/// How long a child may take to exit after its stdin is closed, and again after SIGTERM.
const GRACE_PERIOD: Duration = Duration::from_millis(1500);

/// How long dropping a child waits for its end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_millis(500);

/// How a child is terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// With the full grace period.
    Graceful,
    /// With a tenth of it: the child never answered.
    Fast,
}

/// A running child that leads its own process group.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pub(crate) child: Child,
    process_group: ProcessGroup,
    /// Dropped after the child has ended: cleans up the processes outside the group.
    sandboxed: Option<Box<dyn SandboxedProcess>>,
    /// Dropped last: removes a working directory that was created for the child.
    _folder: Option<PreparedFolder>,
}

impl ChildProcess {
    /// Starts the server of `spec`.
    pub(crate) fn start(spec: &PermittedSpec<StdioSpec>) -> Result<Self, McpError> {
        let mut command = std::process::Command::new(spec.program());
        command.args(&spec.args).env_clear().envs(spec.environment());
        #[cfg(target_os = "linux")]
        if let Some(hub_mark) = super::sweep::hub_mark() {
            command.env(toolhub_core::HUB_MARK_VARIABLE, hub_mark);
        }
        let folder = spec.start_folder().map_err(|error| McpError::permanent(spec.folder_error(&error)))?;
        if let Some(folder) = &folder {
            command.current_dir(folder.path());
        }
        let process_sandbox =
            spec.process_sandbox.as_ref().map(|process_sandbox| process_sandbox.enclose(&mut command));
        let sandboxed = process_sandbox.transpose().map_err(McpError::permanent)?;
        // Set last, since the sandbox may have replaced the program.
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        ProcessGroup::prepare(&mut command);
        let child = command.spawn().map_err(|error| McpError::permanent(spec.spawn_error(&error)))?;
        let process_group = ProcessGroup::of(&child);
        Ok(Self { child, process_group, sandboxed, _folder: folder })
    }

    /// Adds the sandbox's explanation to the cause, if the sandbox ended the child.
    pub(crate) fn explain(
        &self,
        cause: LocalizedText,
        status: Option<ExitStatus>,
        stderr_tail: &str,
    ) -> LocalizedText {
        let verdict = || {
            self.sandboxed
                .as_ref()
                .zip(status)
                .and_then(|(process_sandbox, status)| process_sandbox.verdict(status, stderr_tail))
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
    pub(crate) async fn stop(mut self, mode: StopMode) -> Option<ExitStatus> {
        let grace = if mode == StopMode::Graceful { GRACE_PERIOD } else { GRACE_PERIOD / 10 };
        let mut status = self.wait(grace).await;
        if status.is_none() {
            self.process_group.terminate();
            status = self.wait(grace).await;
        }
        // Also if the child has exited: its descendants may still run.
        self.process_group.kill();
        if status.is_none() {
            let _ = self.child.start_kill();
            status = self.wait(GRACE_PERIOD).await;
        }
        if status.is_some() {
            self.process_group.disarm();
        }
        if let Some(sandboxed) = self.sandboxed.take() {
            // Searches for remaining processes and empties a folder, so it blocks.
            let _ = tokio::task::spawn_blocking(move || drop(sandboxed)).await;
        }
        status
    }

    /// Waits for the end of a killed child, blocking the thread.
    fn reap(&mut self) {
        let since = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && since.elapsed() < KILL_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    async fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(timeout, self.child.wait()).await.ok()?.ok()
    }
}

impl Drop for ChildProcess {
    /// Kills a child that was not stopped, as when the runtime ends before it. A signal takes effect only when the child is
    /// scheduled again, so its end is awaited: no child outlives the hub.
    fn drop(&mut self) {
        if self.child.id().is_some() {
            self.process_group.kill();
            let _ = self.child.start_kill();
            self.reap();
            self.process_group.disarm();
        }
    }
}
