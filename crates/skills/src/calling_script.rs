//! The port for scripts of skills that call tools (`runtime: toolhub`). This crate checks the approval and reads the file; the
//! hub runs it.

use toolhub_core::{BoxFuture, CallContext, RawJson, ToolError, ToolOutput};

/// Maximum size of a script, in bytes.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// A script that may run now: its skill is approved.
#[derive(Debug, Clone)]
pub struct CallingScript {
    /// The program.
    pub code: String,
    /// The arguments of the tool.
    pub input: RawJson,
}

/// Runs scripts that call tools, in a process without files and network.
pub trait CallingScripts: Send + Sync {
    /// Runs a script with the tools of the caller in `context`, and no others. Dropping the future stops it.
    fn run<'a>(
        &'a self,
        script: CallingScript,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}
