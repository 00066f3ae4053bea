//! Scripts of the local user: their tools are all tools of the hub.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use toolhub_core::call_log::{CallQuery, CallStart, CallStatus, RecordId};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_core::{
    Authorization, BoxFuture, CallBy, CallId, NestedCall, NestedTool, NestedToolList, Outcome, RUN_SCRIPT,
    RawJson, Source, Tool, ToolCall, ToolError, ToolName,
};
use toolhub_engine::reserved::qualified_name;
use toolhub_engine::{CatalogEntry, NestedResult, run_with_nested};

use super::journals::{ReopenError, RunJournal};
use crate::hub::Hub;

/// Maximum number of nested calls that are compared with a journal.
const MAX_COMPARED_CALLS: usize = 100_000;
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
    pub(super) fn is_served_by(&self, tool: &Tool) -> bool {
        *tool.name() == self.tool && tool.source == self.source
    }

    /// A call of the tool.
    pub(super) fn call(&self, arguments: RawJson) -> ToolCall {
        let mut call = ToolCall::of(self.tool.clone(), arguments);
        call.sources = Some([self.source.clone()].into());
        call
    }
}

/// Removes the journal of a script when its call is over.
struct JournalGuard<'a> {
    hub: &'a Hub,
    call: &'a CallId,
}

impl Drop for JournalGuard<'_> {
    fn drop(&mut self) {
        if let Some(runs) = &self.hub.scripts {
            runs.forget(self.call);
        }
    }
}

/// Why a script cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeError {
    /// The call is not recorded, or runs no script.
    UnknownCall,
    /// It has ended, or left no journal.
    NothingLeft,
    /// It still runs, or is being resumed.
    StillRuns,
    /// Its journal cannot be read, or has fewer calls than the history.
    DamagedJournal,
    /// Another principal made it: the script would get other tools.
    OtherPrincipal,
    /// An agent made it, whose user confirms changes.
    OfAgent,
    /// Another script called it, and waits for its result no more.
    OfScript,
}

impl Hub {
    /// Whether a call runs a script and lacks its tools or its time limit. Only a call of the local user gets tools here: for
    /// any other one, the part of the hub that decides about its caller provides them.
    pub(crate) fn is_unprepared_script(&self, call: &ToolCall) -> bool {
        let is_of_caller = self.run_script.is_some() && self.catalog().is_run_script(call);
        if !is_of_caller && !self.may_run_skill_script(call) {
            return false;
        }
        let identity = call.caller.as_ref().and_then(|caller| caller.principal());
        match &call.nested {
            Some(_) => call.timeout.is_none(),
            None => identity.is_none(),
        }
    }

    /// Whether a call may reach a script of a skill.
    fn may_run_skill_script(&self, call: &ToolCall) -> bool {
        self.scripts.is_some()
            && call.sources.as_ref().is_none_or(|sources| sources.contains(&Source::Skill))
            && self.catalog().scripts(call.by, call.tool.as_str()).next().is_some()
    }

    /// Runs a script with a time limit, which its own limit ends before; without the tools of a caller, as a script of the local
    /// user.
    pub(crate) fn run_script_call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Outcome> {
        let limit = || self.settings.script.limits().wall.saturating_add(END_GRACE);
        let timeout = Some(call.timeout.unwrap_or_else(limit));
        let is_of_caller = self.catalog().is_run_script(call);
        Box::pin(async move {
            // The end of the call is recorded when this is dropped.
            let _journal = JournalGuard { hub: self, call: &call.id };
            if call.nested.is_some() {
                let script = ToolCall { timeout, ..call.clone() };
                return self.run_call(&script).await;
            }
            self.list_missing().await;
            let tools = OnceLock::new();
            let tools = || tools.get_or_init(|| self.local_tools_by_name());
            run_with_nested(
                call.nested_origin(),
                || {
                    let shown = tools().values().map(|tool| tool.shown.clone()).collect();
                    let tool_list = Arc::new(NestedToolList::new(shown));
                    if is_of_caller { tool_list } else { tool_list.without_scripts() }
                },
                |nested| {
                    let script = ToolCall { nested: Some(nested), timeout, ..call.clone() };
                    Box::pin(async move { self.run_call(&script).await })
                },
                |nested| Box::pin(self.call_local_tool(tools(), call, is_of_caller, nested)),
            )
            .await
        })
    }

    async fn call_local_tool(
        &self,
        tools: &HashMap<String, LocalTool>,
        script: &ToolCall,
        is_of_caller: bool,
        nested: NestedCall,
    ) -> NestedResult {
        let tool = tools.get(&nested.tool).ok_or(ToolError::Internal)?;
        // Only the listed tools can be called.
        if tool.shown.is_script && !is_of_caller {
            return Err(ToolError::Internal);
        }
        let mut call = tool.call(nested.arguments);
        call.parent = Some(nested.parent);
        call.budget = Some(nested.budget);
        call.caller.clone_from(&script.caller);
        call.conversation.clone_from(&script.conversation);
        call.request.clone_from(&script.request);
        call.authorization = script.authorization.clone();
        Box::pin(self.run_call(&call)).await.result
    }

    /// What an interrupted script had called: which calls ended, which were in flight and which were not started. `None` if the
    /// call ran no script, or if another one was interrupted since.
    pub fn interrupted_script(&self, call: &CallId) -> Option<LocalizedText> {
        self.scripts.as_ref()?.interruption(call)
    }

    /// The call that resumes a script of the local user whose hub was killed: calls that have an answer are not made again.
    pub async fn resumed_script(&self, id: &RecordId) -> Result<Result<ToolCall, ResumeError>, StoreError> {
        let catalog = self.catalog();
        let is_script =
            |tool: &str| tool == RUN_SCRIPT || catalog.scripts(CallBy::Name, tool).next().is_some();
        let record = self.call_record(id).await?.filter(|record| is_script(record.start.tool.as_str()));
        let Some(record) = record else { return Ok(Err(ResumeError::UnknownCall)) };
        let start = record.start;
        if start.authorization != Authorization::default() {
            return Ok(Err(ResumeError::OtherPrincipal));
        }
        // Calls of agents name the request that they serve.
        if start.request.is_some() {
            return Ok(Err(ResumeError::OfAgent));
        }
        if start.parent.is_some() {
            return Ok(Err(ResumeError::OfScript));
        }
        let Some(runs) = &self.scripts else { return Ok(Err(ResumeError::NothingLeft)) };
        // The journal is locked from here on: the call runs with it, or not at all. It has all arguments, of which the history
        // may have a part.
        let journal = match runs.reopen(&start.call) {
            Ok(journal) => journal,
            Err(ReopenError::Missing) => return Ok(Err(ResumeError::NothingLeft)),
            Err(ReopenError::InUse) => return Ok(Err(ResumeError::StillRuns)),
            Err(ReopenError::Damaged) => return Ok(Err(ResumeError::DamagedJournal)),
        };
        // A journal may be older than the history, for example from a backup: then it lacks calls that were made.
        if self.has_ended(&start).await? {
            return Ok(Err(ResumeError::NothingLeft));
        }
        if !self.changes_are_in(&journal, &start).await? {
            return Ok(Err(ResumeError::DamagedJournal));
        }
        let arguments = runs.resume(&start.call, journal, &start.arguments);
        Ok(Ok(ToolCall { id: start.call, ..ToolCall::of(start.tool, arguments) }))
    }

    /// Whether a run of this call has succeeded by the history. One whose host was killed has failed, and may be resumed.
    async fn has_ended(&self, start: &CallStart) -> Result<bool, StoreError> {
        let query = CallQuery {
            call: Some(start.call.to_string()),
            status: Some(CallStatus::Succeeded),
            since: Some(start.at),
            limit: Some(1),
            ..CallQuery::default()
        };
        Ok(!self.calls(query).await?.is_empty())
    }

    /// Whether a journal has all calls of the script that may have changed something: each is in the journal before it is
    /// recorded.
    async fn changes_are_in(&self, journal: &RunJournal, start: &CallStart) -> Result<bool, StoreError> {
        let query = CallQuery {
            parent: Some(start.call.to_string()),
            since: Some(start.at),
            limit: Some(MAX_COMPARED_CALLS),
            ..CallQuery::default()
        };
        let mut begun: Vec<&str> = journal.begun().collect();
        for record in self.calls(query).await?.iter().filter(|record| record.start.may_change) {
            let tool = record.start.tool.as_str();
            let is_of = |name: &&str| *name == tool || name.ends_with(&format!("__{tool}"));
            let Some(index) = begun.iter().position(is_of) else { return Ok(false) };
            begun.swap_remove(index);
        }
        Ok(true)
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
        let local = |entry: &Arc<CatalogEntry>| {
            let (source, name) = (&entry.tool.source, entry.tool.name());
            let is_alone = catalog.named(name.as_str()).nth(1).is_none();
            // The bare name of a native tool means that tool, whose definition scripts see.
            let unique = match is_alone || *source == Source::Native {
                true => name.to_string(),
                false => qualified_name(source, name.as_str()),
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
