//! The host of native tools. The engine validates arguments before the call and catches panics.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use toolhub_core::error::UnknownTool;
use toolhub_core::{
    BoxFuture, CallContext, NativeTool, RawJson, Source, Tool, ToolError, ToolHost, ToolName, ToolOutput,
};

use crate::blocking;
use crate::tagged::tags_of;

/// A registry of native tools by name, which runs them. Tools may be added and removed concurrently with calls; a
/// running call keeps its tool.
#[derive(Default)]
pub struct NativeHost {
    /// Replaced as a whole, so that readers never block.
    tools: ArcSwap<BTreeMap<ToolName, RegisteredTool>>,
}

#[derive(Clone)]
struct RegisteredTool {
    /// The definition at the time of registration.
    tool: Tool,
    code: Arc<dyn NativeTool>,
}

impl NativeHost {
    /// Creates a host with these tools; of two with the same name, the later one is kept.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn NativeTool>>) -> Self {
        let host = Self::default();
        for tool in tools {
            host.add(tool);
        }
        host
    }

    /// Adds a tool. Returns the tool of the same name that it replaces, if any.
    pub fn add(&self, code: Arc<dyn NativeTool>) -> Option<Arc<dyn NativeTool>> {
        let definition = code.definition();
        let tags = tags_of(&definition);
        let entry = RegisteredTool { tool: Tool { tags, ..Tool::new(Source::Native, definition) }, code };
        let name = entry.tool.name().clone();
        let before = self.tools.rcu(|tools| {
            let mut tools = BTreeMap::clone(tools);
            tools.insert(name.clone(), entry.clone());
            tools
        });
        before.get(&name).map(|entry| Arc::clone(&entry.code))
    }

    /// Removes a tool. Returns whether it existed.
    pub fn remove(&self, name: &str) -> bool {
        let before = self.tools.rcu(|tools| {
            let mut tools = BTreeMap::clone(tools);
            tools.remove(name);
            tools
        });
        before.contains_key(name)
    }

    /// The tools, sorted by name.
    pub fn tools(&self) -> Vec<Tool> {
        self.tools.load().values().map(|entry| entry.tool.clone()).collect()
    }
}

impl std::fmt::Debug for NativeHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.tools.load().keys().map(ToolName::as_str)).finish()
    }
}

impl ToolHost for NativeHost {
    fn source(&self) -> Source {
        Source::Native
    }

    fn call<'a>(
        &'a self,
        tool: &'a Tool,
        arguments: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let code = self.tools.load().get(tool.name()).map(|entry| Arc::clone(&entry.code));
            match code {
                Some(code) => {
                    context.sending();
                    blocking::for_caller(context, code.call(arguments.clone(), context)).await
                }
                // The tool was removed after the catalog was built.
                None => Err(ToolError::UnknownTool(Box::new(UnknownTool {
                    tool: tool.name().to_string(),
                    ..UnknownTool::default()
                }))),
            }
        })
    }
}
