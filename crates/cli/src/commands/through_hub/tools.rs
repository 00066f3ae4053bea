//! `tools` and `explain` through a hub: what the principal of the key may see, under the names by which it may call.

use serde::Deserialize;
use toolhub_core::tool::Hints;
use toolhub_core::{RawJson, RawObject, Source};
use toolhub_engine::Catalog;

use crate::app::App;
use crate::args::tool_arguments::parse_json_arguments;
use crate::args::{ExplainArgs, SearchArgs, ShowArgs, ToolsArgs};
use crate::commands::through_hub::refuse_options;
use crate::commands::through_hub::remote_tool::{
    RemoteTool, chosen_source, find_remote_tool, remote_catalog,
};
use crate::commands::through_hub::servers::RemoteServer;
use crate::commands::tools::explain::ExplainedRoute;
use crate::commands::tools::search::{FoundTool, SearchReport};
use crate::commands::tools::{SourceTools, check_source, print_list, print_tool};
use crate::exit::Exit;
use crate::hub_api::error::HubError;
use crate::hub_api::{ApiPath, HubApi, ListPage};

/// The maximum number of hits that the API returns.
const MAX_SEARCH_HITS: usize = 50;

pub(crate) async fn list(app: &App, api: &HubApi, args: &ToolsArgs) -> anyhow::Result<Exit> {
    refuse_options(app, &[("--refresh", args.refresh)])?;
    let catalog = remote_catalog(api, None).await?;
    // The order of the servers, and those without tools; not every role may see them.
    let servers: Vec<RemoteServer> =
        match api.get::<ListPage<RemoteServer>>(&ApiPath::new("servers"), &[]).await {
            Ok(page) => page.items,
            Err(error) if error.is_forbidden() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
    let mut sources: Vec<Source> = servers
        .iter()
        .filter(|server| server.is_enabled())
        .map(|server| Source::from_name(&server.id))
        .collect();
    for entry in catalog.iter() {
        if matches!(entry.tool.source, Source::Server(_)) && !sources.contains(&entry.tool.source) {
            sources.push(entry.tool.source.clone());
        }
    }
    let has_skills = catalog.iter().any(|entry| entry.tool.source == Source::Skill);
    sources.extend(has_skills.then_some(Source::Skill));
    sources.push(Source::Native);
    check_source(app, args.source.as_deref(), &sources)?;
    print_list(app, SourceTools { catalog: &catalog, sources }, args);
    Ok(Exit::Done)
}

pub(crate) async fn show(app: &App, api: &HubApi, args: &ShowArgs) -> anyhow::Result<Exit> {
    let remote = match find_remote_tool(api, &args.tool).await {
        Ok(remote) => remote,
        Err(error) if error.is_not_found() => return Ok(unknown_tool(app, &args.tool)),
        Err(error) => return Err(error.into()),
    };
    let source = chosen_source(app, &remote, args.source.as_deref())?;
    let tools = source.and_then(|source| remote.at(&Source::from_name(source)));
    let catalog = Catalog::new(tools);
    let Some(entry) = catalog.iter().next() else { return Ok(unknown_tool(app, &args.tool)) };
    let own = entry.tool.source.to_string();
    let also: Vec<String> = remote.sources.into_iter().filter(|other| *other != own).collect();
    print_tool(app, entry, &also);
    Ok(Exit::Done)
}

fn unknown_tool(app: &App, name: &str) -> Exit {
    app.screen.error(&app.lang().choose(
        format!("there is no tool `{name}`; `toolhub --hub URL tools search` finds some"),
        format!("没有工具 `{name}`；可用 `toolhub --hub URL tools search` 查找"),
    ));
    Exit::Failed
}

/// A hit of a search.
#[derive(Debug, Deserialize)]
struct RemoteHit {
    name: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    hints: Hints,
    #[serde(default)]
    approval: String,
    #[serde(default)]
    tags: Vec<String>,
    definition: RawJson,
    score: f64,
    #[serde(default)]
    parts: Vec<ScorePart>,
}

#[derive(Debug, Deserialize)]
struct ScorePart {
    name: String,
    value: f64,
}

#[derive(Debug, Deserialize)]
struct SearchResponse {
    hits: Vec<RemoteHit>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    fits: bool,
}

pub(crate) async fn search(app: &App, api: &HubApi, args: &SearchArgs) -> anyhow::Result<Exit> {
    let limit = args.checked_limit(app.lang())?.min(MAX_SEARCH_HITS);
    let body = RawObject::default()
        .with("query", args.query.as_str())
        .with("limit", limit as u64)
        .with("all", args.explain || args.all)
        .with("definitions", true);
    let SearchResponse { hits, confidence, fits } = api.post(&ApiPath::new("search"), body).await?;
    let found = hits.into_iter().filter_map(|hit| {
        let parts = hit.parts.into_iter().map(|part| (part.name, part.value)).collect();
        let RemoteHit { name, sources, hints, approval, tags, definition, score, .. } = hit;
        let tool = RemoteTool { name, sources, hints, approval, tags, definition };
        let tool = tool.tools().into_iter().next()?;
        Some(FoundTool { tool, score, parts })
    });
    let report = SearchReport { hits: found.collect(), confidence, fits };
    report.show(app, args.explain);
    Ok(Exit::Done)
}

pub(crate) async fn explain(app: &App, api: &HubApi, args: &ExplainArgs) -> anyhow::Result<Exit> {
    refuse_options(
        app,
        &[
            ("--capability", args.capability.is_some()),
            ("--as", args.principal.is_some()),
            ("--source", args.source.is_some()),
        ],
    )?;
    let tool = args.tool.as_deref().unwrap_or_default();
    let given = args.args.as_deref().map(|text| parse_json_arguments(text, app.lang())).transpose()?;
    let mut body = RawObject::default().with("tool", tool);
    if let Some(arguments) = given {
        body.set("arguments", arguments);
    }
    match api.post::<ExplainedRoute>(&ApiPath::new("explain"), body).await {
        Ok(route) => {
            route.show(app, tool);
            Ok(Exit::Done)
        }
        Err(HubError::Problem(problem)) if matches!(problem.kind.as_str(), "not-found" | "no-route") => {
            let kind = if problem.kind == "not-found" { "unknown_tool" } else { "no_route" };
            if app.screen.json {
                let json = RawObject::default()
                    .with("tool", tool)
                    .with("success", false)
                    .with("error", problem.detail.as_str())
                    .with("error_kind", kind);
                app.screen.json(&json.into_raw());
            } else {
                app.screen.error(&problem.detail);
            }
            Ok(Exit::Failed)
        }
        Err(error) => Err(error.into()),
    }
}
