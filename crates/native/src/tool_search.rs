//! `search_tools` and `describe_tool`: find tools that the prompt of the model does not show.

use std::fmt::Write as _;
use std::sync::Arc;

use toolhub_core::finder::{SearchHit, ToolFinder};
use toolhub_core::lang::LocalizedText;
use toolhub_core::text::truncate;
use toolhub_core::{RawJson, RawObject, Tool, ToolError, ToolOutput};
use toolhub_macros::tool;

/// Default number of tools.
const DEFAULT_SEARCH_RESULTS: u32 = 5;
/// Maximum length of a description in a list, in characters.
const MAX_DESCRIPTION_CHARS: usize = 160;

/// Finds tools.
#[derive(Clone)]
pub struct Finder(Arc<dyn ToolFinder>);

impl Finder {
    /// Creates it from an implementation.
    pub fn new(finder: Arc<dyn ToolFinder>) -> Self {
        Self(finder)
    }
}

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finder")
    }
}

/// Finds tools for what you want to do, in English or Chinese, among all there are; says so when none fits.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn search_tools(
    #[state] finder: &Finder,
    #[doc = "What the tool should do, in your own words, or its name"] query: String,
    #[doc = "How many at most (5)"]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
) -> Result<ToolOutput, ToolError> {
    let found = finder.0.search(&query, limit.unwrap_or(DEFAULT_SEARCH_RESULTS) as usize).await;
    let hits = found.fitting();
    let mut text = String::new();
    for hit in hits {
        let _ = writeln!(text, "{}", line(&hit.tool));
    }
    if hits.is_empty() {
        text = format!("no tool fits `{query}`\n");
    } else {
        text.push_str("describe_tool tells the arguments of one.");
    }
    let listed: Vec<RawObject> = hits.iter().map(entry).collect();
    let structured = RawObject::default()
        .with("tools", RawJson::of(&listed))
        .with("fits", found.fits)
        .with("confidence", RawJson::of(&found.confidence));
    output(text.trim_end(), structured)
}

/// Tells everything about one tool: what it does, its arguments with their types, where it lives.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn describe_tool(
    #[state] finder: &Finder,
    #[doc = "The tool's name"] name: String,
) -> Result<ToolOutput, ToolError> {
    let found = finder.0.describe(name.trim());
    let Some(first) = found.first() else {
        let similar = finder.0.similar_names(name.trim());
        let hint = similar.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(ToolError::failed(match similar.is_empty() {
            true => LocalizedText::new(
                format!("there is no tool `{name}`; search_tools finds tools by what they do"),
                format!("没有工具 `{name}`；可用 search_tools 按用途查找"),
            ),
            false => LocalizedText::new(
                format!("there is no tool `{name}`; did you mean {hint}?"),
                format!("没有工具 `{name}`；是否想用 {hint}？"),
            ),
        }));
    };
    let text = toolhub_core::json::pretty_json(RawJson::of(first).get());
    output(&text, RawObject::default().with("tools", RawJson::of(&found)))
}

/// A line about a tool: its name, required arguments and description.
fn line(tool: &Tool) -> String {
    let definition = &tool.definition;
    let schema = definition.input_schema().value();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let must = required.collect::<Vec<_>>().join(", ");
    let description = definition.description().split_whitespace().collect::<Vec<_>>().join(" ");
    let description = truncate(&description, MAX_DESCRIPTION_CHARS).unwrap_or(description);
    format!("- {}({must}) [{}]: {description}", tool.name(), tool.source)
}

fn entry(hit: &SearchHit) -> RawObject {
    RawObject::default()
        .with("name", hit.tool.name().as_str())
        .with("source", hit.tool.source.to_string())
        .with("description", hit.tool.definition.description())
        .with("score", RawJson::of(&hit.score))
}

fn output(text: &str, structured: RawObject) -> Result<ToolOutput, ToolError> {
    let block = RawObject::default().with("type", "text").with("text", text);
    let members =
        RawObject::default().with("content", RawJson::of(&[block])).with("structuredContent", structured);
    ToolOutput::from_raw(members.into_raw()).ok_or(ToolError::Internal)
}
