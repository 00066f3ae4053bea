//! `search`: the tools that fit a request in natural language, among those that the principal may see.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::OfferedTool;
use toolhub_core::{Role, Roles};
use toolhub_engine::CatalogEntry;

use super::tools::{ListedDefinition, Tool, offered_tools, tool_summary};
use crate::problem::Problem;
use crate::request::{ConsoleContext, bounded_number};
use crate::route::json_response;

const DEFAULT_HITS: usize = 10;
const MAX_SEARCH_HITS: usize = 50;
/// The factor by which a search is deepened if several hits have the same name.
const DEPTH_FACTOR: usize = 8;

/// A search.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct SearchRequest {
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) profile: Option<String>,
    /// Maximum number of hits, 10 if it is missing.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    pub(crate) limit: Option<u32>,
    /// Whether the nearest tools are returned even if none fits.
    #[serde(default)]
    pub(crate) all: bool,
    /// Whether the hits contain the definitions of the tools.
    #[serde(default)]
    pub(crate) definitions: bool,
}

/// A component of a score.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ScorePart {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// A hit of a search.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Hit {
    #[serde(flatten)]
    pub(crate) tool: Tool,
    pub(crate) score: f64,
    pub(crate) parts: Vec<ScorePart>,
    #[serde(flatten)]
    more: Option<ListedDefinition>,
}

/// The hits of a search.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SearchBody {
    pub(crate) hits: Vec<Hit>,
    /// How certain it is that the best tool fits, from 0 to 1; only for the roles `operator`, `auditor` and `owner`.
    pub(crate) confidence: Option<f64>,
    /// Whether a tool fits.
    pub(crate) fits: bool,
}

pub(crate) async fn search(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &find_hits(context, &context.json()?).await?))
}

/// The roles that know of every tool.
fn managers() -> Roles {
    [Role::Operator, Role::Auditor, Role::Owner].into_iter().collect()
}

/// The best tools for a query among those that the principal may see.
pub(crate) async fn find_tools(
    context: &ConsoleContext<'_>,
    query: &str,
    profile: Option<&str>,
    limit: usize,
) -> Result<Vec<Hit>, Problem> {
    let (query, profile) = (query.to_owned(), profile.map(str::to_owned));
    let limit = u32::try_from(limit).ok();
    let request = SearchRequest { query, profile, limit, all: false, definitions: false };
    Ok(find_hits(context, &request).await?.hits)
}

async fn find_hits(context: &ConsoleContext<'_>, request: &SearchRequest) -> Result<SearchBody, Problem> {
    let limit = request.limit.map_or(DEFAULT_HITS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let limit = bounded_number("limit", limit, MAX_SEARCH_HITS)?;
    let offered = offered_tools(context, request.profile.as_deref())?;
    let mut by_name: HashMap<&str, Vec<&OfferedTool>> = HashMap::with_capacity(offered.len());
    for tool in &offered {
        by_name.entry(tool.tool.as_str()).or_default().push(tool);
    }
    let find = |tool: &toolhub_core::Tool| {
        let same_name = by_name.get(tool.name().as_str())?;
        same_name.iter().find(|offered| offered.sources.contains(&tool.source)).copied()
    };
    // Scores and confidence depend on all tools that are searched: hidden ones are left out before.
    let is_visible = |entry: &CatalogEntry| find(&entry.tool).is_some();
    let visible = Arc::new(context.hub().catalog().filtered(is_visible));
    let mut depth = limit.saturating_mul(DEPTH_FACTOR);
    loop {
        let found = context.hub().search_among(&request.query, depth, Arc::clone(&visible)).await;
        let mut hits: Vec<Hit> = Vec::new();
        for hit in if request.all { found.hits.as_slice() } else { found.fitting() } {
            let tool = find(&hit.tool);
            let Some(tool) = tool.filter(|tool| hits.iter().all(|known| known.tool.name != tool.name)) else {
                continue;
            };
            let parts =
                hit.parts.iter().map(|(name, value)| ScorePart { name: (*name).to_owned(), value: *value });
            let more = request.definitions.then(|| ListedDefinition::of(tool));
            hits.push(Hit {
                tool: tool_summary(context, tool),
                score: hit.score,
                parts: parts.collect(),
                more,
            });
        }
        if hits.len() >= limit || found.hits.len() < depth || !(found.fits || request.all) {
            hits.truncate(limit);
            let confidence = context.has_role(managers()).then_some(found.confidence);
            return Ok(SearchBody { hits, confidence, fits: found.fits });
        }
        depth = depth.saturating_mul(DEPTH_FACTOR);
    }
}
