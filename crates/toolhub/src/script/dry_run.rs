//! A script without its changes: calls that only read are made, the others are listed and answered with an empty text.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::{
    BoxFuture, CallId, NestedCall, NestedToolList, NestedTools, RUN_SCRIPT, RawJson, RawObject, ToolCall,
    ToolError, ToolOutput,
};
use toolhub_engine::NestedResult;
use toolhub_script::{FailureKind, ScriptFailure, ScriptReport};

use super::local_calls::LocalTool;
use crate::hub::Hub;

/// A call of a dry run.
#[derive(Debug, Clone)]
pub struct DryRunCall {
    /// The name of the tool in the script.
    pub tool: String,
    /// The arguments.
    pub arguments: RawJson,
    /// Whether it was made, because the tool only reads.
    pub is_made: bool,
}

/// The result of a dry run.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// The calls, in their order.
    pub calls: Vec<DryRunCall>,
    /// How the script ended. It may have failed because a call that was not made has no result.
    pub report: ScriptReport,
}

struct DryRunTools<'a> {
    hub: &'a Hub,
    tools: HashMap<String, LocalTool>,
    calls: Mutex<Vec<DryRunCall>>,
}

impl fmt::Debug for DryRunTools<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRunTools").finish_non_exhaustive()
    }
}

impl NestedTools for DryRunTools<'_> {
    fn tools(&self) -> BoxFuture<'_, Arc<NestedToolList>> {
        let shown = self.tools.values().map(|tool| tool.shown.clone()).collect();
        Box::pin(std::future::ready(Arc::new(NestedToolList::new(shown))))
    }

    fn call(&self, call: NestedCall) -> BoxFuture<'_, NestedResult> {
        Box::pin(async move {
            let tool = self.tools.get(&call.tool).ok_or(ToolError::Internal)?;
            let is_made = tool.shown.read_only;
            let listed = DryRunCall { tool: call.tool.clone(), arguments: call.arguments.clone(), is_made };
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(listed);
            if is_made {
                return self.hub.call(tool.call(call.arguments)).await.result;
            }
            // A real call would be refused for these arguments, too.
            self.hub.check_arguments(tool, &call.arguments)?;
            Ok(ToolOutput::text(""))
        })
    }
}

impl Hub {
    /// Runs a script of the local user without changing anything: only tools that declare themselves read-only are called.
    /// Returns `None` if this hub runs no scripts.
    pub fn dry_run_script<'a>(&'a self, arguments: &'a RawJson) -> BoxFuture<'a, Option<DryRun>> {
        Box::pin(async move {
            let tool = self.run_script.as_ref()?;
            self.list_missing().await;
            let (tools, calls) = (self.local_tools_by_name(), Mutex::default());
            let tools = DryRunTools { hub: self, tools, calls };
            let report = tool.run(arguments, &tools, CallId::generate()).await;
            let calls = tools.calls.into_inner().unwrap_or_else(PoisonError::into_inner);
            Some(DryRun { calls, report })
        })
    }

    /// The syntax error of a script, with its line: it is compiled and not run. `None` if there is none, or if this hub runs no
    /// scripts.
    pub fn script_syntax_error<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Option<ScriptFailure>> {
        Box::pin(async move {
            let tool = self.run_script.as_ref()?;
            // The whole text is compiled before its first statement returns.
            let arguments = RawObject::default().with("code", format!("return 0; {code}")).into_raw();
            let tools = DryRunTools { hub: self, tools: HashMap::new(), calls: Mutex::default() };
            let report = tool.run(&arguments, &tools, CallId::generate()).await;
            report.failure().filter(|failure| failure.kind == FailureKind::Syntax).cloned()
        })
    }

    /// Checks the arguments of a local tool against its schema.
    fn check_arguments(&self, tool: &LocalTool, arguments: &RawJson) -> Result<(), ToolError> {
        let catalog = self.catalog();
        let entry = catalog.named(tool.name().as_str()).find(|entry| tool.is_served_by(&entry.tool));
        entry.map_or(Ok(()), |entry| entry.check(arguments))
    }

    /// The call that runs a script.
    pub fn script_call(arguments: RawJson) -> ToolCall {
        ToolCall::new(RUN_SCRIPT, arguments)
    }
}
