//! The error for a call of a tool that does not exist: where it does exist, and similar names.

use std::sync::Arc;

use toolhub_core::error::UnknownTool;
use toolhub_core::suggest::{MAX_SUGGESTIONS, similar_names};
use toolhub_core::{Source, ToolError};

use super::policy::RoutingPolicy;
use crate::catalog::{Catalog, CatalogEntry};

/// The error for an unknown name; for `server__name`, it states that the server has no such tool.
pub(super) fn unknown_qualified(tool: &str, policy: &RoutingPolicy, catalog: &Catalog) -> ToolError {
    let server = |prefix: &str| policy.servers.iter().find(|id| id.as_str() == prefix);
    let split = tool.split_once("__");
    let Some((id, name)) = split.and_then(|(prefix, name)| Some((server(prefix)?, name))) else {
        return unknown_tool_error(tool, None, &[], catalog);
    };
    let named: Vec<&Arc<CatalogEntry>> = catalog.named(name).collect();
    let error = unknown_tool_error(name, Some(&Source::Server(id.clone())), &named, catalog);
    match error {
        ToolError::UnknownTool(mut unknown) => {
            unknown.near.iter_mut().for_each(|near| *near = format!("{id}__{near}"));
            ToolError::UnknownTool(unknown)
        }
        other => other,
    }
}

pub(super) fn unknown_tool_error(
    tool: &str,
    only: Option<&Source>,
    named: &[&Arc<CatalogEntry>],
    catalog: &Catalog,
) -> ToolError {
    let names: Vec<&str> = match only {
        Some(only) => {
            let source_tools = catalog.iter().filter(|entry| entry.tool.source == *only);
            source_tools.map(|entry| entry.tool.name().as_str()).collect()
        }
        None => catalog.names().collect(),
    };
    // A qualified name is compared with qualified names.
    let qualified: Vec<String> = match only {
        None if tool.contains("__") => {
            catalog.iter().map(|entry| format!("{}__{}", entry.tool.source, entry.tool.name())).collect()
        }
        _ => Vec::new(),
    };
    let names = names.into_iter().chain(qualified.iter().map(String::as_str));
    ToolError::UnknownTool(Box::new(UnknownTool {
        tool: tool.to_owned(),
        server: match only {
            Some(Source::Server(id)) => Some(id.clone()),
            _ => None,
        },
        near: similar_names(tool, names, MAX_SUGGESTIONS),
        elsewhere: named.iter().map(|entry| entry.tool.source.clone()).collect(),
        unlisted: Vec::new(),
    }))
}
