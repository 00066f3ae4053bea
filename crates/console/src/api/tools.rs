//! `tools` and `explain`: what the principal may see, check, call and approve.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::{DirectAnswer, DirectCall, OfferedLookup, OfferedTool, RouteRequest, ToolUse};
use toolhub_access::may_decide_changed_tools;
use toolhub_core::lang::LocalizedText;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject, Role, Roles, Source, ToolError};
use toolhub_engine::CatalogEntry;

use super::disabled_tool::disabled_tool;
use super::overview::{ToolCount, tool_count};
use super::{CURSOR, LIMIT, PROFILE, Page, VIEWERS, timestamp};
use crate::argument_pointer::argument_pointer;
use crate::idempotency::KeyLookup;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::{Parameter, json_response, json_text};
use crate::shared_idempotency::{SharedRequest, SharedTurn};

const DEFAULT_PAGE_TOOLS: usize = 100;
const MAX_PAGE_TOOLS: usize = 1_000;

/// The query parameters of the list.
pub(crate) const PARAMETERS: &[Parameter] = &[
    PROFILE,
    Parameter { name: "source", description: "Only tools of this source.", r#type: "string" },
    Parameter { name: "definitions", description: "`true` for the definitions, too.", r#type: "boolean" },
    LIMIT,
    CURSOR,
];

/// The hints of a tool about its effects. A missing hint is unknown.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Hints {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
}

/// A tool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Tool {
    /// The name in the profile.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    /// The sources that may serve it: `native`, `skill` or the id of a server.
    pub(crate) sources: Vec<String>,
    pub(crate) hints: Hints,
    /// Whether the agent asks before it calls the tool: it is marked destructive, or has no hints and a name such as `delete_row`.
    pub(crate) needs_confirmation: bool,
    /// `unseen`, `approved`, `changed` or `quarantined`.
    pub(crate) approval: String,
    /// Whether its definition contains suspicious text.
    pub(crate) suspicious: bool,
    /// Its capabilities.
    pub(crate) tags: Vec<String>,
}

/// A suspicious part of a definition.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// The member of the definition.
    pub(crate) field: String,
    pub(crate) kind: String,
    pub(crate) quote: String,
    pub(crate) why: String,
}

/// A tool with its definition.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ToolDetail {
    #[serde(flatten)]
    pub(crate) tool: Tool,
    /// The name in the catalog.
    pub(crate) catalog_name: String,
    /// The definition as an MCP client receives it.
    #[schemars(with = "serde_json::Value")]
    pub(crate) definition: RawJson,
    /// The definition at its source, as it was received: the one that is approved. `null` for the roles `viewer` and `caller`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) source_definition: Option<RawJson>,
    /// A digest of the definition at its source, to approve exactly this one.
    pub(crate) digest: String,
    pub(crate) findings: Vec<Finding>,
    /// The definition that was approved, if it differs.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) approved_definition: Option<RawJson>,
    pub(crate) approved_at: Option<String>,
    /// Its calls at each source.
    pub(crate) statistics: Vec<ToolCount>,
}

/// A tool in a list, with its definition if the request asks for definitions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ListedTool {
    #[serde(flatten)]
    tool: Tool,
    #[serde(flatten)]
    more: Option<ListedDefinition>,
}

/// The definition of a tool in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ListedDefinition {
    /// The name in the catalog.
    catalog_name: String,
    /// The definition as an MCP client receives it.
    #[schemars(with = "serde_json::Value")]
    definition: RawJson,
}

impl ListedDefinition {
    pub(crate) fn of(offered: &OfferedTool) -> Self {
        Self { catalog_name: offered.tool.to_string(), definition: offered.definition.clone() }
    }
}

/// Arguments for a tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct CallRequest {
    /// The profile; the default profile if it is missing.
    #[serde(default)]
    pub(crate) profile: Option<String>,
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub(crate) arguments: RawJson,
    /// Whether the response describes the outcome: source, attempts, kind of error.
    #[serde(default)]
    pub(crate) outcome: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Check {
    pub(crate) valid: bool,
    /// What is wrong, in the words that a caller would get.
    pub(crate) message: Option<String>,
    /// Where, as JSON pointers.
    pub(crate) problems: Vec<ArgumentProblem>,
}

/// A problem of an argument.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ArgumentProblem {
    /// A JSON pointer into the arguments.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// The result of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CallResult {
    pub(crate) success: bool,
    /// The result as an MCP client receives it; also a failure that the tool reported.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) result: Option<RawJson>,
    /// Why there is no result.
    pub(crate) error: Option<String>,
    /// The outcome, if the request asks for it and a tool was called: `error`, and the members of `_meta` of `toolhub call --json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) outcome: Option<RawJson>,
}

/// The definition to approve.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ApproveRequest {
    /// `digest` of the definition that the person has seen. Another definition is not approved.
    pub(crate) digest: String,
}

/// A question about the route of a call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ExplainRequest {
    /// The name of the tool in the profile.
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) profile: Option<String>,
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub(crate) arguments: Option<RawJson>,
}

/// A candidate of a route.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RouteCandidate {
    pub(crate) source: String,
    pub(crate) tool: String,
    pub(crate) why: String,
}

/// The route of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Explanation {
    /// `first`, `race` or `merge`.
    pub(crate) strategy: String,
    /// How many candidates start at the same time.
    pub(crate) batch: usize,
    /// The candidates in the order in which they are tried.
    pub(crate) candidates: Vec<RouteCandidate>,
    pub(crate) reasons: Vec<String>,
}

/// The tools that the principal may see in a profile.
pub(crate) fn offered_tools(
    context: &ConsoleContext<'_>,
    profile: Option<&str>,
) -> Result<Vec<OfferedTool>, Problem> {
    let tools = context.gateways.offered_tools(profile, context.principal());
    tools.ok_or_else(|| unknown_profile(profile))
}

fn unknown_profile(profile: Option<&str>) -> Problem {
    let profile = profile.unwrap_or_default();
    Problem::not_found(format!("there is no profile `{profile}`"), format!("没有配置方案 `{profile}`"))
}

/// One tool by its name in a profile.
async fn find(
    context: &ConsoleContext<'_>,
    profile: Option<&str>,
    lookup: OfferedLookup<'_>,
) -> Result<OfferedTool, Problem> {
    if !context.gateways.may_use_profile(profile, context.principal()) {
        return Err(unknown_profile(profile));
    }
    let found = context.gateways.find_offered_tool(profile, context.principal(), lookup).await;
    found.ok_or_else(|| disabled_tool(context, lookup.name).unwrap_or_else(|| unknown_tool(lookup.name)))
}

/// The tools that are held back: no client is offered them, but those who may approve them see what has changed. An approver
/// decides about the tools that profiles and rules would offer to it.
fn held_back(context: &ConsoleContext<'_>) -> Vec<OfferedTool> {
    if !may_decide_changed_tools(context.principal().roles) {
        return Vec::new();
    }
    let entries = context.gateways.held_back_tools(context.principal());
    entries
        .iter()
        .map(|entry| OfferedTool {
            name: entry.tool.name().to_string(),
            tool: entry.tool.name().clone(),
            sources: Arc::new([entry.tool.source.clone()]),
            definition: entry.tool.definition.raw().clone(),
        })
        .collect()
}

/// One tool by its name in a profile, or one that is held back.
async fn find_to_decide(context: &ConsoleContext<'_>, tool_use: ToolUse) -> Result<OfferedTool, Problem> {
    let name = context.id();
    let found = find(context, context.query.get("profile"), OfferedLookup { tool_use, name }).await;
    found.or_else(|problem| held_back(context).into_iter().find(|tool| tool.name == name).ok_or(problem))
}

fn unknown_tool(name: &str) -> Problem {
    Problem::not_found(format!("there is no tool `{name}`"), format!("没有工具 `{name}`"))
}

/// The catalog entry of the first source that serves a tool.
fn entry_of(context: &ConsoleContext<'_>, tool: &OfferedTool) -> Option<Arc<CatalogEntry>> {
    let catalog = context.hub().catalog();
    let mut named = catalog.named(tool.tool.as_str());
    named.find(|entry| tool.sources.contains(&entry.tool.source)).cloned()
}

/// A tool for a list.
pub(crate) fn tool_summary(context: &ConsoleContext<'_>, offered: &OfferedTool) -> Tool {
    let definition = offered.definition.object().unwrap_or_default();
    let text = |key: &str| definition.get(key).and_then(RawJson::text).map(|text| text.into_owned());
    let entry = entry_of(context, offered);
    let hints = entry.as_ref().map(|entry| entry.tool.hints()).unwrap_or_default();
    Tool {
        name: offered.name.clone(),
        title: text("title"),
        description: text("description").unwrap_or_default(),
        sources: offered.sources.iter().map(ToString::to_string).collect(),
        hints: Hints {
            read_only: hints.read_only,
            destructive: hints.destructive,
            idempotent: hints.idempotent,
            open_world: hints.open_world,
        },
        needs_confirmation: entry.as_ref().is_some_and(|entry| entry.tool.needs_confirmation()),
        approval: entry.as_ref().map_or("unseen", |entry| approval_name(entry.tool.approval)).to_owned(),
        suspicious: entry.as_ref().is_some_and(|entry| !entry.findings().is_empty()),
        tags: entry.map(|entry| entry.tags().to_vec()).unwrap_or_default(),
    }
}

fn approval_name(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Unseen => "unseen",
        ApprovalStatus::Approved => "approved",
        ApprovalStatus::Changed => "changed",
        ApprovalStatus::Quarantined => "quarantined",
    }
}

pub(crate) async fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    context.gateways.wait_until_listed().await;
    let Page { items, next } = selected(context)?;
    let with_definitions = context.query.flag("definitions")?;
    let listed = |offered: &OfferedTool| ListedTool {
        tool: tool_summary(context, offered),
        more: with_definitions.then(|| ListedDefinition::of(offered)),
    };
    Ok(json_response(StatusCode::OK, &Page { items: items.iter().map(listed).collect(), next }))
}

/// One page of the tools, by the query of the request.
pub(crate) fn page(context: &ConsoleContext<'_>) -> Result<Page<Tool>, Problem> {
    let Page { items, next } = selected(context)?;
    Ok(Page { items: items.iter().map(|tool| tool_summary(context, tool)).collect(), next })
}

/// The tools of one page.
fn selected(context: &ConsoleContext<'_>) -> Result<Page<OfferedTool>, Problem> {
    let query = &context.query;
    let limit = query.number("limit", DEFAULT_PAGE_TOOLS, MAX_PAGE_TOOLS)?;
    let mut tools = offered_tools(context, query.get("profile"))?;
    for tool in held_back(context) {
        if tools.iter().all(|own| own.name != tool.name) {
            tools.push(tool);
        }
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(source) = query.get("source") {
        tools.retain(|tool| tool.sources.iter().any(|own| own.to_string() == source));
    }
    if let Some(cursor) = query.get("cursor") {
        tools.retain(|tool| tool.name.as_str() > cursor);
    }
    let more = tools.len() > limit;
    tools.truncate(limit);
    let next = tools.last().filter(|_| more).map(|tool| tool.name.clone());
    Ok(Page { items: tools, next })
}

pub(crate) async fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &read(context).await?))
}

/// The tool that the path names.
pub(crate) async fn read(context: &ConsoleContext<'_>) -> Result<ToolDetail, Problem> {
    let offered = find_to_decide(context, ToolUse::Describe).await?;
    let entry = entry_of(context, &offered);
    let approval = entry.as_ref().and_then(|entry| context.hub().approval_of(&entry.tool));
    let differs = |digest: &str| approval.as_ref().filter(|approval| approval.version != digest);
    let digest = entry.as_ref().map(|entry| entry.tool.definition.digest().to_owned()).unwrap_or_default();
    let findings = entry.as_ref().map(|entry| entry.findings()).unwrap_or_default();
    let findings = findings.iter().map(|finding| Finding {
        field: finding.field.clone(),
        kind: finding.kind.name().to_owned(),
        quote: finding.quote.clone(),
        why: finding.why.localize(context.lang),
    });
    // It has the parameters that the owner fixed and hides.
    let sees_sources = context.sees_fixed_arguments() || context.has_role(Role::Approver);
    // They contain the calls of all principals.
    let reads_statistics = context.has_role(VIEWERS.iter().copied().collect::<Roles>());
    let mut statistics = Vec::new();
    for source in offered.sources.iter().filter(|_| reads_statistics) {
        statistics
            .extend(context.hub().tool_statistics(source, &offered.tool).await?.as_ref().map(tool_count));
    }
    Ok(ToolDetail {
        tool: tool_summary(context, &offered),
        catalog_name: offered.tool.to_string(),
        approved_definition: differs(&digest)
            .filter(|_| sees_sources)
            .map(|approval| approval.definition.clone()),
        source_definition: entry
            .as_ref()
            .filter(|_| sees_sources)
            .map(|entry| entry.tool.definition.raw().clone()),
        approved_at: approval.as_ref().map(|approval| timestamp(approval.at)),
        digest,
        findings: findings.collect(),
        statistics,
        definition: offered.definition,
    })
}

/// The call that the body of the request describes.
pub(crate) async fn direct_call(
    context: &ConsoleContext<'_>,
    tool_use: ToolUse,
) -> Result<DirectCall, Problem> {
    let CallRequest { profile, arguments, outcome } = context.json()?;
    if arguments.object().is_none() {
        return Err(Problem::bad_request("`arguments` is a JSON object", "`arguments` 应为 JSON 对象"));
    }
    // The name must be visible: otherwise it is unknown, whether or not it exists.
    let lookup = OfferedLookup { tool_use, name: context.id() };
    let offered = find(context, profile.as_deref(), lookup).await?;
    let (principal, described_in) = (Arc::clone(context.principal()), outcome.then_some(context.lang));
    Ok(DirectCall { principal, profile, name: offered.name, arguments, described_in })
}

pub(crate) async fn check(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let call = direct_call(context, ToolUse::Check).await?;
    let checked = context.gateways.check_arguments(&call).ok_or_else(|| unknown_tool(&call.name))?;
    let check = match checked {
        Ok(()) => Check { valid: true, message: None, problems: Vec::new() },
        Err(error) => Check {
            valid: false,
            message: Some(error.localize(context.lang)),
            problems: argument_problems(&error, &call.arguments, context.lang),
        },
    };
    Ok(json_response(StatusCode::OK, &check))
}

/// The places of invalid arguments.
fn argument_problems(error: &ToolError, arguments: &RawJson, lang: Lang) -> Vec<ArgumentProblem> {
    let ToolError::InvalidArguments { problems, .. } = error else { return Vec::new() };
    let arguments = arguments.value();
    let problems = problems.iter().map(|problem| ArgumentProblem {
        path: argument_pointer(&problem.argument, &arguments),
        message: problem.localize(lang),
    });
    problems.collect()
}

pub(crate) async fn call(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let call = direct_call(context, ToolUse::Call).await?;
    let key = context.headers.get("idempotency-key").map(|key| key.to_str().unwrap_or_default());
    let request = format!("{}\n{}", call.name, String::from_utf8_lossy(&context.body));
    let first = match context.idempotency.begin(context.principal().id(), key, &request)? {
        KeyLookup::Repeated(result) => return Ok(json_text(StatusCode::OK, result.to_string())),
        KeyLookup::First(first) => first,
    };
    let shared = match SharedRequest::begin(context.hub(), context.principal().id(), key, &request).await {
        Ok(Some(SharedTurn::Repeated(result))) => {
            first.finish(&result);
            return Ok(json_text(StatusCode::OK, result));
        }
        Ok(Some(SharedTurn::First(shared))) => Some(shared),
        Ok(None) => None,
        Err(problem) => {
            first.abandon();
            return Err(problem);
        }
    };
    let name = call.name.clone();
    let Some(answer) = context.gateways.call_directly(call).await else {
        if let Some(shared) = shared {
            shared.abandon().await;
        }
        first.abandon();
        return Err(unknown_tool(&name));
    };
    // A held call has not run: the same request runs it after the approval.
    let is_held = answer.is_held;
    let text = serde_json::to_string(&call_result(answer)).unwrap_or_default();
    match (shared, is_held) {
        (Some(shared), true) => shared.abandon().await,
        (Some(shared), false) => shared.finish(&text).await,
        (None, _) => {}
    }
    match is_held {
        true => first.abandon(),
        false => first.finish(&text),
    }
    Ok(json_text(StatusCode::OK, text))
}

/// The answer to a call as the API returns it.
pub(crate) fn call_result(answer: DirectAnswer) -> CallResult {
    let outcome = answer.outcome.as_ref().map(outcome_members);
    match answer.result {
        Ok(result) => {
            let is_error = result.object().and_then(|members| members.get("isError")?.decode::<bool>().ok());
            CallResult { success: is_error != Some(true), result: Some(result), error: None, outcome }
        }
        Err(error) => CallResult { success: false, result: None, error: Some(error.message), outcome },
    }
}

/// The members of a rendered outcome without nesting.
fn outcome_members(rendered: &RawObject) -> RawJson {
    let mut members = rendered.get("_meta").and_then(RawJson::object).unwrap_or_default();
    members.set("error", rendered.get("error").cloned().unwrap_or_else(RawJson::null));
    members.into_raw()
}

pub(crate) async fn approve(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let ApproveRequest { digest } = context.json()?;
    let offered = find_to_decide(context, ToolUse::Approve).await?;
    let entry = entry_of(context, &offered).ok_or_else(|| unknown_tool(&offered.name))?;
    if !matches!(entry.tool.source, Source::Server(_)) {
        return Err(Problem::bad_request("only tools of servers are approved", "只有服务器的工具需要批准"));
    }
    if entry.tool.definition.digest() != digest {
        let detail = LocalizedText::new(
            "the definition has changed since it was shown: look at it again",
            "定义在显示之后已有改动：请重新查看",
        );
        return Err(Problem::new(StatusCode::CONFLICT, "definition-changed", detail));
    }
    context.hub().approve(&entry.tool, context.principal().id()).await?;
    Ok(json_response(StatusCode::OK, &read(context).await?))
}

pub(crate) async fn explain(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let ExplainRequest { tool, profile, arguments } = context.json()?;
    let explanation = explain_tool(context, profile.as_deref(), &tool, arguments.as_ref()).await?;
    Ok(json_response(StatusCode::OK, &explanation))
}

/// The route of a call of a tool, among the sources that the principal may use.
pub(crate) async fn explain_tool(
    context: &ConsoleContext<'_>,
    profile: Option<&str>,
    name: &str,
    arguments: Option<&RawJson>,
) -> Result<Explanation, Problem> {
    let offered = find(context, profile, OfferedLookup { tool_use: ToolUse::Explain, name }).await?;
    let sent = arguments.and_then(|arguments| {
        context.gateways.sent_arguments(profile, context.principal(), &offered.name, arguments.clone())
    });
    let request = RouteRequest {
        sources: Some(&offered.sources),
        arguments: sent.as_ref().or(arguments),
        ..RouteRequest::named(offered.tool.as_str())
    };
    let route = context.hub().explain(request).await.map_err(|error| {
        let detail = LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
        Problem::new(StatusCode::CONFLICT, "no-route", detail)
    })?;
    let candidates = route.candidates.iter().map(|candidate| RouteCandidate {
        source: candidate.source().to_string(),
        tool: candidate.entry.tool.name().to_string(),
        why: candidate.why.localize(context.lang),
    });
    Ok(Explanation {
        strategy: route.strategy.name().to_owned(),
        batch: route.batch,
        candidates: candidates.collect(),
        reasons: route.reasons.iter().map(|reason| reason.localize(context.lang)).collect(),
    })
}
