//! `me`, `health` and `stats`.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub::OfferedTool;
use toolhub_core::millis::DAY;
use toolhub_core::statistics::{Day, StatisticsSummary, SummaryQuery, ToolStatistics};
use toolhub_core::{Role, Roles, Source, ToolName};
use toolhub_server::HubService as _;

use super::{DETAILS, Empty, millis, timestamp};
use crate::browser::{CookieKind, Cookies, PrivateCookies};
use crate::problem::Problem;
use crate::request::{ConsoleContext, Credential};
use crate::route::json_response;

/// Number of days in the statistics.
const DAYS: i64 = 14;
/// Number of tools in the statistics.
const MAX_TOOLS: usize = 10;

/// The principal of a request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Me {
    /// The unique id, such as `local` or `key:ci`.
    id: String,
    /// A name for people.
    display: String,
    roles: Vec<String>,
    /// The profiles that it may use.
    profiles: Vec<String>,
}

pub(crate) fn me(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let principal = context.principal();
    let me = Me {
        id: principal.id().to_string(),
        display: principal.display.clone(),
        roles: principal.roles.iter().map(|role| role.name().to_owned()).collect(),
        profiles: usable_profiles(context),
    };
    Ok(json_response(StatusCode::OK, &me))
}

/// Ends the session of the request.
pub(crate) async fn end_session(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let token = Cookies::of(context.headers).session(context.is_https);
    let Some(token) = token.filter(|_| matches!(context.caller.credential, Credential::Session { .. }))
    else {
        return Err(Problem::bad_request("only a browser has a session", "只有浏览器才有会话"));
    };
    context.sessions.end(token).await.map_err(|error| Problem::sessions_unavailable(&error))?;
    let mut response = json_response(StatusCode::OK, &Empty {});
    let cookies = PrivateCookies { request: context.headers, is_https: context.is_https };
    cookies.remove(response.headers_mut(), CookieKind::Session);
    Ok(response)
}

/// The profiles that the principal may use.
pub(crate) fn usable_profiles(context: &ConsoleContext<'_>) -> Vec<String> {
    let usable = context.gateways.names().filter(|name| context.principal().may_use_profile(name));
    usable.map(str::to_owned).collect()
}

/// The health of the hub.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HealthBody {
    ready: bool,
    /// Short descriptions of the parts that do not work and that the principal may know of.
    degraded: Vec<String>,
    version: String,
}

pub(crate) fn health(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let ready = context.gateways.health().ready;
    let degraded = context.gateways.visible_problems(context.principal());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(json_response(StatusCode::OK, &HealthBody { ready, degraded, version }))
}

/// The calls of a day.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DayCount {
    /// The date, in UTC.
    pub(crate) date: String,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
}

/// The calls of a tool at a source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ToolCount {
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// The median latency of successes, in milliseconds.
    pub(crate) p50_ms: Option<f64>,
    /// The 95th percentile.
    pub(crate) p95_ms: Option<f64>,
    pub(crate) last_used: Option<String>,
}

/// Statistics of calls.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Stats {
    /// The last days, oldest first.
    pub(crate) days: Vec<DayCount>,
    /// The tools that were used most.
    pub(crate) tools: Vec<ToolCount>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    /// All that is stored about each tool, if the request asks for details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statistics: Option<Vec<StoredStatistics>>,
}

/// The stored statistics of a tool at a source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StoredStatistics {
    tool: String,
    source: String,
    /// Days since 1970 (UTC), successes, failures.
    days: Vec<(i64, u64, u64)>,
    /// The numbers of the buckets of the latency, and their counts.
    latency: Vec<(u8, u64)>,
    last_success: Option<String>,
    last_failure: Option<String>,
}

pub(crate) async fn stats(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &read_stats(context).await?))
}

/// The tools that the principal may see, by source; `None` for those who manage or audit the hub, who see all.
fn visible_tools(context: &ConsoleContext<'_>) -> Option<HashSet<(Source, ToolName)>> {
    let managers: Roles = [Role::Operator, Role::Auditor, Role::Owner].into_iter().collect();
    if context.has_role(managers) {
        return None;
    }
    let profiles = context.gateways.names();
    let offered =
        profiles.filter_map(|profile| context.gateways.offered_tools(Some(profile), context.principal()));
    let pairs = |tool: OfferedTool| {
        let sources = tool.sources.to_vec();
        sources.into_iter().map(move |source| (source, tool.tool.clone()))
    };
    Some(offered.flatten().flat_map(pairs).collect())
}

/// The statistics of the tools that the principal may see.
pub(crate) async fn read_stats(context: &ConsoleContext<'_>) -> Result<Stats, Problem> {
    let today = Day::of(SystemTime::now());
    let first = today.0 - DAYS + 1;
    let query = SummaryQuery { since: Day(first), tools: MAX_TOOLS };
    let visible = visible_tools(context);
    let is_detailed = context.query.flag(DETAILS.name)?;
    // The statistics of each tool are many: they are read only if they are needed.
    let (summary, stored) = if visible.is_some() || is_detailed {
        let mut statistics = context.hub().statistics().await?;
        if let Some(visible) = visible {
            statistics.retain(|one| visible.contains(&(one.source.clone(), one.tool.clone())));
        }
        let stored = is_detailed.then(|| statistics.iter().map(stored_statistics).collect());
        (StatisticsSummary::of(statistics, query), stored)
    } else {
        (context.hub().statistics_summary(query).await?, None)
    };
    let days = (first..=today.0).map(|day| {
        let tally = summary.days.get(&Day(day)).copied().unwrap_or_default();
        DayCount { date: date(day), succeeded: tally.successes, failed: tally.failures }
    });
    let percentile = |share: f64| summary.latency.percentile(share).map(millis);
    Ok(Stats {
        days: days.collect(),
        tools: summary.most_used.iter().map(tool_count).collect(),
        p50_ms: percentile(0.5),
        p95_ms: percentile(0.95),
        statistics: stored,
    })
}

fn stored_statistics(statistics: &ToolStatistics) -> StoredStatistics {
    let days = statistics.days.iter().map(|(day, tally)| (day.0, tally.successes, tally.failures));
    StoredStatistics {
        tool: statistics.tool.to_string(),
        source: statistics.source.to_string(),
        days: days.collect(),
        latency: statistics.latency.buckets().collect(),
        last_success: statistics.last_success.map(timestamp),
        last_failure: statistics.last_failure.map(timestamp),
    }
}

/// The statistics of one tool at one source.
pub(crate) fn tool_count(statistics: &ToolStatistics) -> ToolCount {
    let tally = statistics.tally();
    ToolCount {
        tool: statistics.tool.to_string(),
        source: statistics.source.to_string(),
        succeeded: tally.successes,
        failed: tally.failures,
        p50_ms: statistics.latency.percentile(0.5).map(millis),
        p95_ms: statistics.latency.percentile(0.95).map(millis),
        last_used: statistics.last_used().map(timestamp),
    }
}

fn date(day: i64) -> String {
    let seconds = u64::try_from(day).unwrap_or_default() * DAY.as_secs();
    let text = timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    text.split('T').next().unwrap_or_default().to_owned()
}
