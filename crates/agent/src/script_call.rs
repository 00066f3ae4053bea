//! Scripts of an agent (`run_script`, or those of skills): their tools are those of the agent, and each call needs the same permission as a
//! call of the model itself.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use toolhub_core::{BoxFuture, NestedCall, NestedTool, NestedToolList, Outcome, ToolCall, ToolError};
use toolhub_engine::{CatalogEntry, NestedResult, run_with_nested};

use crate::agent_context::AgentContext;

/// A tool of the agent in scripts.
pub(crate) struct AgentTool {
    pub(crate) shown: NestedTool,
    /// The name in calls.
    tool: String,
    /// The server that it names, if several offer the tool.
    source: Option<String>,
}

impl AgentTool {
    /// The name of the tool in the catalog.
    pub(crate) fn name(&self) -> &str {
        &self.tool
    }
}

impl AgentContext<'_> {
    /// The tools that a script of this agent may call, sorted by name. If several servers offer a tool, each is listed as
    /// `server__tool`.
    pub(crate) fn script_tools(&self) -> Vec<AgentTool> {
        let usable = self.catalog.iter().filter(|entry| self.allowlist.has(entry.tool.name().as_str()));
        let mut tools: Vec<AgentTool> = usable.filter_map(|entry| self.script_tool(entry)).collect();
        tools.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
        // Tools that the router treats as one have the same name.
        tools.dedup_by(|one, other| one.shown.name == other.shown.name);
        tools
    }

    /// The entry as a script sees it.
    fn script_tool(&self, entry: &CatalogEntry) -> Option<AgentTool> {
        let (source, name) = (&entry.tool.source, entry.tool.name().as_str());
        let has_rivals = !self.servers().rivals(name).is_empty();
        let unique = if has_rivals { format!("{source}__{name}") } else { name.to_owned() };
        Some(AgentTool {
            shown: NestedTool::of(&entry.tool, unique)?,
            tool: name.to_owned(),
            source: has_rivals.then(|| source.to_string()),
        })
    }

    /// Whether a call runs a script: one of `run_script`, or one of a skill.
    pub(crate) fn runs_script(&self, call: &ToolCall) -> bool {
        self.catalog.is_run_script(call) || self.catalog.scripts(call.by, call.tool.as_str()).next().is_some()
    }

    /// Runs a call of a script, whose own permission is checked.
    pub(crate) fn run_script<'a>(&'a self, script: &'a ToolCall, request: &'a str) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let tools = OnceLock::new();
            let tools = || tools.get_or_init(|| self.tools_of_script(script));
            run_with_nested(
                script.nested_origin(),
                || {
                    let shown = tools().values().map(|tool| tool.shown.clone()).collect();
                    Arc::new(NestedToolList::new(shown))
                },
                |nested| self.caller.call(ToolCall { nested: Some(nested), ..script.clone() }),
                |nested| Box::pin(self.call_from_script(tools(), nested, request)),
            )
            .await
        })
    }

    /// The tools of a script by name. A script of a skill calls no other scripts.
    fn tools_of_script(&self, script: &ToolCall) -> HashMap<String, AgentTool> {
        let is_of_model = self.catalog.is_run_script(script);
        let tools = self.script_tools().into_iter().filter(|tool| is_of_model || !tool.shown.is_script);
        tools.map(|tool| (tool.shown.name.clone(), tool)).collect()
    }

    async fn call_from_script(
        &self,
        tools: &HashMap<String, AgentTool>,
        nested: NestedCall,
        request: &str,
    ) -> NestedResult {
        let Some(AgentTool { tool, source, .. }) = tools.get(&nested.tool) else {
            self.finder.note_unknown_tool(&nested.tool);
            return Err(ToolError::Internal);
        };
        let mut call = ToolCall::new(tool.as_str(), nested.arguments);
        call.source.clone_from(source);
        call.parent = Some(nested.parent);
        call.budget = Some(nested.budget);
        let (outcome, _) = Box::pin(self.call(call, request)).await;
        outcome.result
    }
}

/// The script in the reply of a model without tool calls: the first block between fences that is marked with `js run`. Code that
/// a reply only shows has no such mark.
pub(crate) fn fenced_script(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let is_start = |line: &str| {
        line.trim_start().strip_prefix("```").is_some_and(|marks| {
            let mut marks = marks.split_whitespace();
            let language = marks.next().unwrap_or_default().to_ascii_lowercase();
            ["js", "javascript", "ts", "typescript"].contains(&language.as_str())
                && marks.next() == Some("run")
                && marks.next().is_none()
        })
    };
    lines.by_ref().find(|line| is_start(line))?;
    let code: Vec<&str> = lines.take_while(|line| line.trim() != "```").collect();
    let code = code.join("\n");
    (!code.trim().is_empty()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_script_of_a_reply() {
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(fenced_script(text).as_deref(), expect, "{text}");
        check("I will run:\n```js run\nconst a = 1;\na\n```\nand see.", Some("const a = 1;\na"));
        check("```JavaScript  run\n1\n", Some("1"));
        check("  ```ts run\n  x\n  ```", Some("  x"));
        check("for example:\n```js\n1\n```", None);
        check("```js run it\n1\n```", None);
        check("```json\n{}\n```", None);
        check("```js run\n\n```", None);
        check("no code", None);
    }
}
