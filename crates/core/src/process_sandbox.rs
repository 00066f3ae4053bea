//! The interface of process sandboxes. The implementation is in another crate.

use std::fmt::Debug;
use std::process::{Command, ExitStatus};

use crate::lang::LocalizedText;

/// The environment variable that marks a hub's children: PID, start time and session id of the hub.
pub const HUB_MARK_VARIABLE: &str = "TOOLHUB_HUB";

/// Runs a server's program in a sandbox.
pub trait ProcessSandbox: Debug + Send + Sync {
    /// Prepares a command, whose program, arguments, folder and environment are set, to run in the sandbox. On an error nothing
    /// is started.
    fn enclose(&self, command: &mut Command) -> Result<Box<dyn SandboxedProcess>, LocalizedText>;
}

/// The sandbox of one program. Dropping it removes everything that the program left behind.
pub trait SandboxedProcess: Debug + Send + Sync {
    /// The reason if the sandbox stopped or restricted the program, judged by its exit status and last output.
    fn verdict(&self, status: ExitStatus, stderr_tail: &str) -> Option<LocalizedText>;
}
