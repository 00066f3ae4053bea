//! Tools as a hub offers them to the principal of a key.

use serde::Deserialize;
use toolhub_core::shell;
use toolhub_core::tool::{ApprovalStatus, Hints, ToolDefinition};
use toolhub_core::{RawJson, Source, Tool};
use toolhub_engine::Catalog;

use crate::app::App;
use crate::exit::UsageError;
use crate::hub_api::error::HubError;
use crate::hub_api::{ApiPath, HubApi};

/// The maximum number of tools on a page.
const PAGE_SIZE: &str = "1000";

/// A tool as the API describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct RemoteTool {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) sources: Vec<String>,
    #[serde(default)]
    pub(crate) hints: Hints,
    #[serde(default)]
    pub(crate) approval: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) definition: RawJson,
}

impl RemoteTool {
    /// The tool at each of its sources. A definition that cannot be parsed is left out.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.sources.iter().filter_map(|source| self.at(&Source::from_name(source))).collect()
    }

    pub(crate) fn at(&self, source: &Source) -> Option<Tool> {
        let definition = ToolDefinition::parse(self.definition.clone()).ok()?;
        let mut tool = Tool::new(source.clone(), definition);
        tool.owner_hints = self.hints;
        tool.tags.clone_from(&self.tags);
        tool.approval = match self.approval.as_str() {
            "approved" => ApprovalStatus::Approved,
            "changed" => ApprovalStatus::Changed,
            "quarantined" => ApprovalStatus::Quarantined,
            _ => ApprovalStatus::Unseen,
        };
        Some(tool)
    }
}

/// The tools of a hub.
pub(crate) async fn remote_catalog(api: &HubApi, source: Option<&str>) -> Result<Catalog, HubError> {
    let mut query = vec![("definitions", "true"), ("limit", PAGE_SIZE)];
    query.extend(source.map(|source| ("source", source)));
    let tools: Vec<RemoteTool> = api.get_all(&ApiPath::new("tools"), &query, None).await?;
    Ok(Catalog::new(tools.iter().flat_map(RemoteTool::tools)))
}

/// One tool by its name.
pub(crate) async fn find_remote_tool(api: &HubApi, name: &str) -> Result<RemoteTool, HubError> {
    api.get(&ApiPath::item("tools", name, "")?, &[]).await
}

/// The source of a tool: the requested one, otherwise the first.
pub(crate) fn chosen_source<'a>(
    app: &App,
    tool: &'a RemoteTool,
    requested: Option<&str>,
) -> Result<Option<&'a str>, UsageError> {
    let Some(requested) = requested else { return Ok(tool.sources.first().map(String::as_str)) };
    let found = tool.sources.iter().find(|source| *source == requested);
    found.map(|source| Some(source.as_str())).ok_or_else(|| {
        let (name, known) = (&tool.name, tool.sources.join(", "));
        UsageError(app.lang().choose(
            format!("the hub does not offer `{name}` of `{requested}` under this name: it is of {known}; `toolhub --hub URL tools --source {}` lists the names", shell::shell_quote(requested)),
            format!("hub 没有以此名称提供 `{requested}` 的 `{name}`：它来自 {known}；可用 `toolhub --hub URL tools --source {}` 查看名称", shell::shell_quote(requested)),
        ))
    })
}
