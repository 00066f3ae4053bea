//! What a script can call: the port through which the runner lists and calls tools.

use std::time::Duration;

use toolhub_core::{BoxFuture, RawJson};

use crate::protocol::{CallError, ToolPath};
use crate::report::CallReport;

/// A tool that exists in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTool {
    /// How the script reaches it.
    pub path: ToolPath,
    /// Whether a call changes nothing. Calls that may change something are written to the journal durably before they
    /// are sent.
    pub read_only: bool,
}

/// A call of a script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// The number of the call within its run, from 1.
    pub id: u32,
    /// The unique name of the tool.
    pub tool: String,
    /// A JSON object.
    pub arguments: RawJson,
}

/// Why a call has no result, as the script sees it: `error.kind`, `error.message` and `error.hint`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptToolError {
    /// A stable name for the kind of failure, such as `timeout`. [`INVALID_ARGUMENTS`] adds the signature of the tool.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

/// The kind of an error about arguments.
pub const INVALID_ARGUMENTS: &str = "invalid_arguments";

impl ScriptToolError {
    /// An error without a hint.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), hint: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn into_call_error(self, signature: impl FnOnce() -> Option<String>) -> CallError {
        let signature = if self.kind == INVALID_ARGUMENTS { signature() } else { None };
        CallError { kind: self.kind, message: self.message, hint: self.hint, signature }
    }
}

/// The tools of one run. What the caller may not call must not be listed.
pub trait ScriptTools: Send + Sync {
    /// All tools; their names are unique. Called once per run, when the run has its slot: runs that wait need no list.
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>>;

    /// The TypeScript signature of a tool, for errors about its arguments.
    fn signature(&self, tool: &str) -> Option<String>;

    /// Calls a tool and returns its structured content, or its text as a JSON string. Dropping the future cancels the
    /// call. The runner has checked that the tool is listed and that the arguments are a JSON object, and nothing else.
    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>>;

    /// Takes the name of a tool that the script used and that is not listed.
    fn note_unknown_tool<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Takes the CPU time that the script has used, before a call that may run another script.
    fn set_cpu(&self, _used: Duration) {}

    /// The CPU time that other scripts have used for calls of this one. It counts towards its limit.
    fn inner_cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// The run was dropped before its end, with these calls. No further call is made.
    fn interrupted(&self, _calls: &[CallReport]) {}
}
