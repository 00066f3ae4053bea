//! Tools that call other tools, such as `run_script`: the port through which a running call makes further calls for its
//! caller.

use std::fmt::Debug;

use crate::BoxFuture;
use crate::call_id::CallId;
use crate::error::ToolError;
use crate::json::RawJson;
use crate::output::ToolOutput;
use crate::source::Source;
use crate::tool::{ApprovalStatus, Tool};

/// The tool that runs scripts.
pub const RUN_SCRIPT: &str = "run_script";
/// Native tools that call other tools, which a running call does by itself.
const CALLING_TOOLS: [&str; 2] = [RUN_SCRIPT, "call_tool"];

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

impl NestedTool {
    /// A tool under a unique name. `None` if running calls do not use it: it is quarantined, or calls other tools itself.
    pub fn of(tool: &Tool, name: String) -> Option<Self> {
        let own = tool.name().as_str();
        let is_calling = tool.source == Source::Native && CALLING_TOOLS.contains(&own);
        if is_calling || tool.trust == ApprovalStatus::Quarantined {
            return None;
        }
        let member = match &tool.source {
            Source::Server(id) => Some((id.to_string(), own.to_owned())),
            Source::Native | Source::Skill => None,
        };
        let read_only = tool.hints().read_only == Some(true);
        Some(Self { name, member, definition: tool.definition.raw().clone(), read_only })
    }
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
