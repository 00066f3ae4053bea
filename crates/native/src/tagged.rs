//! Tools with explicit capability tags, which replace those derived from name and description.

use std::sync::Arc;

use toolhub_core::json::RawObject;
use toolhub_core::{
    BoxFuture, CallContext, NativeTool, RawJson, ToolDefinition, ToolError, ToolOutput, meta_keys,
};

/// Wraps a tool with explicit capability tags.
pub(crate) fn tagged(tool: impl NativeTool, tags: &'static [&'static str]) -> Arc<dyn NativeTool> {
    Arc::new(Tagged { tool, tags })
}

struct Tagged<T> {
    tool: T,
    tags: &'static [&'static str],
}

impl<T: NativeTool> NativeTool for Tagged<T> {
    fn definition(&self) -> ToolDefinition {
        let plain = self.tool.definition();
        let Some(members) = plain.raw().object() else { return plain };
        let meta = RawObject::default().with(meta_keys::TAGS, RawJson::of(self.tags));
        ToolDefinition::parse(members.with("_meta", meta).into_raw()).unwrap_or(plain)
    }

    fn call<'a>(
        &'a self,
        arguments: RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.tool.call(arguments, context)
    }
}

/// The capability tags of a definition; empty if it has none.
pub(crate) fn tags_of(definition: &ToolDefinition) -> Vec<String> {
    let meta = definition.raw().object().and_then(|members| members.get("_meta")?.object());
    meta.and_then(|meta| meta.get(meta_keys::TAGS)?.decode().ok()).unwrap_or_default()
}
