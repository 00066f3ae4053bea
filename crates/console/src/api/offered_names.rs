//! The names under which the tools of recorded calls are offered now.

use std::collections::HashMap;

use toolhub::OfferedTool;
use toolhub_core::ToolName;

use super::calls::Call;
use super::tools::offered_tools;
use crate::request::ConsoleContext;

/// The names under which the principal is offered tools, by their names in the catalog.
pub(crate) struct OfferedNames(HashMap<ToolName, Vec<OfferedTool>>);

impl OfferedNames {
    pub(crate) fn new(context: &ConsoleContext<'_>) -> Self {
        let mut names: HashMap<ToolName, Vec<OfferedTool>> = HashMap::new();
        for tool in offered_tools(context, None).unwrap_or_default() {
            names.entry(tool.tool.clone()).or_default().push(tool);
        }
        Self(names)
    }

    /// The name of the tool that a recorded call used. It may be another one now: a tool is renamed when another server gets
    /// one of the same name.
    pub(crate) fn of_call(&self, call: &Call) -> Option<&str> {
        let in_catalog = self.0.get(call.tool.as_str()).into_iter().flatten();
        let mut offered = self.0.values().flatten().filter(|tool| tool.name == call.tool);
        let is_source = |tool: &&OfferedTool| {
            let mut used = call.sources.iter().chain(&call.tried);
            used.any(|used| tool.sources.iter().any(|source| source.to_string() == *used))
        };
        // A call that was refused has no source.
        let has_source = !(call.sources.is_empty() && call.tried.is_empty());
        let found = match has_source {
            true => in_catalog.chain(offered).find(is_source),
            false => offered.next(),
        };
        found.map(|tool| tool.name.as_str())
    }
}
