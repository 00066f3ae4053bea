//! Tools that call other tools, such as `run_script`: the port through which a running call makes further calls for its
//! caller.

use std::fmt::Debug;

use crate::BoxFuture;
use crate::call_id::CallId;
use crate::error::ToolError;
use crate::json::RawJson;
use crate::output::ToolOutput;

/// A tool that a running call may use.
#[derive(Debug, Clone)]
pub struct NestedTool {
    /// Its unique name.
    pub name: String,
    /// Its server and its name there, if it belongs to one server.
    pub member: Option<(String, String)>,
    /// Its definition as the caller sees it.
    pub definition: RawJson,
    /// Whether a call changes nothing.
    pub read_only: bool,
}

/// A call that a running call makes.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The running call.
    pub parent: CallId,
    /// The unique name of the tool.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: RawJson,
}

/// The tools that a running call may use: those that its caller may use, with the same checks and confirmations.
pub trait NestedTools: Debug + Send + Sync {
    /// All tools; their names are unique.
    fn tools(&self) -> Vec<NestedTool>;

    /// Runs a call. Dropping the future cancels it.
    fn call(&self, call: NestedCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}
