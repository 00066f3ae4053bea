//! Scripts of the local user: their tools are all tools of the hub.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use toolhub_core::call_log::RecordId;
use toolhub_core::ports::StoreError;
use toolhub_core::{
    Authorization, BoxFuture, NestedCall, NestedTool, Outcome, RUN_SCRIPT, RawJson, Source, Tool, ToolCall,
    ToolError, ToolName,
};
use toolhub_engine::reserved::qualified;
use toolhub_engine::{Entry, NestedResult, run_with_nested};

use crate::hub::Hub;

/// Time for a script to end by itself at its own limit.
const END_GRACE: Duration = Duration::from_secs(10);

/// A tool of the catalog, by its name in scripts.
pub(crate) struct LocalTool {
    source: Source,
    tool: ToolName,
    pub(super) shown: NestedTool,
}

impl LocalTool {
    /// The name in the catalog.
    pub(super) fn name(&self) -> &ToolName {
        &self.tool
    }

    /// Whether that tool of the catalog serves it.
    pub(super) fn is(&self, tool: &Tool) -> bool {
        *tool.name() == self.tool && tool.source == self.source
    }

    /// A call of the tool.
    pub(super) fn call(&self, arguments: RawJson) -> ToolCall {
        let mut call = ToolCall::of(self.tool.clone(), arguments);
        call.among = Some([self.source.clone()].into());
        call
    }
}

/// Why a script cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeError {
    /// The call is not recorded, or is not one of `run_script`.
    UnknownCall,
    /// It has ended, or left no journal.
    NothingLeft,
    /// Another principal made it: the script would get other tools.
    OtherPrincipal,
    /// An agent made it, whose user confirms changes.
    OfAgent,
    /// Its code is too long to be in the history.
    TooLong,
}

impl Hub {
    /// Runs a script with a time limit, which its own limit ends before; without the tools of a caller, as a script of the local
    /// user.
    pub(crate) fn run_script_call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Outcome> {
        let limit = || self.settings.script.limits().wall.saturating_add(END_GRACE);
        let timeout = Some(call.timeout.unwrap_or_else(limit));
        Box::pin(async move {
            if call.nested.is_some() {
                let script = ToolCall { timeout, ..call.clone() };
                return self.run_call(&script).await;
            }
            self.list_missing().await;
            let tools = self.local_tools_by_name();
            let shown = tools.values().map(|tool| tool.shown.clone()).collect();
            let tools = &tools;
            run_with_nested(
                shown,
                |nested| {
                    let script = ToolCall { nested: Some(nested), timeout, ..call.clone() };
                    Box::pin(async move { self.run_call(&script).await })
                },
                |nested| Box::pin(self.call_local_tool(tools, call, nested)),
            )
            .await
        })
    }

    async fn call_local_tool(
        &self,
        tools: &HashMap<String, LocalTool>,
        script: &ToolCall,
        nested: NestedCall,
    ) -> NestedResult {
        let mut call = tools.get(&nested.tool).ok_or(ToolError::Internal)?.call(nested.arguments);
        call.parent = Some(nested.parent);
        call.caller.clone_from(&script.caller);
        call.conversation.clone_from(&script.conversation);
        call.request.clone_from(&script.request);
        call.authorization = script.authorization.clone();
        Box::pin(self.run_call(&call)).await.result
    }

    /// The call that resumes a script of the local user whose hub was killed: calls that have an answer are not made again.
    pub async fn resumed_script(&self, id: &RecordId) -> Result<Result<ToolCall, ResumeError>, StoreError> {
        let record = self.call_record(id).await?.filter(|record| record.start.tool.as_str() == RUN_SCRIPT);
        let Some(record) = record else { return Ok(Err(ResumeError::UnknownCall)) };
        let start = record.start;
        if start.authorization != Authorization::default() {
            return Ok(Err(ResumeError::OtherPrincipal));
        }
        // Calls of agents name the request that they serve.
        if start.request.is_some() {
            return Ok(Err(ResumeError::OfAgent));
        }
        if start.arguments.object().is_none_or(|members| !members.contains("code")) {
            return Ok(Err(ResumeError::TooLong));
        }
        // The journal is locked from here on: the call runs with it, or not at all.
        if !self.run_script.as_ref().is_some_and(|tool| tool.resume(&start.call)) {
            return Ok(Err(ResumeError::NothingLeft));
        }
        Ok(Ok(ToolCall { id: start.call, ..ToolCall::of(start.tool, start.arguments) }))
    }

    pub(super) fn local_tools_by_name(&self) -> HashMap<String, LocalTool> {
        self.local_tools().into_iter().map(|tool| (tool.shown.name.clone(), tool)).collect()
    }

    /// All tools that the local user may call in a script, with unique names. A name that several sources use becomes
    /// `source__tool`.
    pub fn script_tools(&self) -> Vec<NestedTool> {
        self.local_tools().into_iter().map(|tool| tool.shown).collect()
    }

    fn local_tools(&self) -> Vec<LocalTool> {
        let catalog = self.catalog();
        let local = |entry: &Arc<Entry>| {
            let (source, name) = (&entry.tool.source, entry.tool.name());
            let is_alone = catalog.named(name.as_str()).nth(1).is_none();
            // The bare name of a native tool means that tool, whose definition scripts see.
            let unique = match is_alone || *source == Source::Native {
                true => name.to_string(),
                false => qualified(source, name.as_str()),
            };
            let shown = NestedTool::of(&entry.tool, unique)?;
            Some(LocalTool { source: source.clone(), tool: name.clone(), shown })
        };
        let mut tools: Vec<LocalTool> = catalog.iter().filter_map(local).collect();
        tools.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
        tools.dedup_by(|one, other| one.shown.name == other.shown.name);
        tools
    }
}
