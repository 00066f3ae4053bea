//! `servers`: states, logs, tests and restarts.

use std::collections::{HashMap, HashSet};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub::{ServerState, ServerView};
use toolhub_client_config::TransportSpec;
use toolhub_core::audit::{AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject};
use toolhub_core::shell;
use toolhub_core::{Lang, Localize as _, Role, Roles, Source, ToolError, ToolName};
use toolhub_mcp_client::last_lines;

use super::{Page, timestamp};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// A server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Server {
    pub(crate) id: String,
    /// `stdio`, `http` or `sse`.
    pub(crate) transport: String,
    /// `connected`, `ready`, `new`, `slow`, `failed`, `circuit_open` or `disabled`.
    pub(crate) state: String,
    /// The era of MCP that it speaks, if it is known: `legacy` or `modern`.
    pub(crate) era: Option<String>,
    /// The number of its tools, if they were listed: of those that are offered to the principal, unless it is an operator, auditor
    /// or owner.
    pub(crate) tools: Option<usize>,
    /// Why it does not work.
    pub(crate) error: Option<String>,
    /// Its name and version.
    pub(crate) peer: Option<String>,
    pub(crate) restarts: u32,
    /// How often it failed in a row.
    pub(crate) failures: u32,
    /// The negotiated version of MCP, if it is connected.
    pub(crate) protocol_version: Option<String>,
    pub(crate) listed_at: Option<String>,
    /// When calls are tried again, if its circuit breaker is open.
    pub(crate) circuit_open_until: Option<String>,
}

/// A server with its configuration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ServerDetail {
    #[serde(flatten)]
    pub(crate) server: Server,
    /// The program and the number of its arguments, or the origin of the URL; for operators and owners.
    pub(crate) reached_by: String,
    /// The file that configures it.
    pub(crate) origin: String,
    pub(crate) credentials: String,
    /// The tools that were left out of its list, each with the reason; for operators, auditors and owners.
    pub(crate) skipped: Vec<String>,
    /// The names of its tools in the default profile.
    pub(crate) tool_names: Vec<String>,
    /// Its tools that are switched off, by their names at the server; for operators and owners.
    pub(crate) disabled_tools: Vec<String>,
}

/// The log of a server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ServerLog {
    /// The last lines of its standard error.
    pub(crate) lines: Vec<String>,
}

pub(crate) fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &Page { items: visible(context), next: None }))
}

/// The servers that the principal may see.
pub(crate) fn visible(context: &ConsoleContext<'_>) -> Vec<Server> {
    let (views, sources) = (context.hub().servers(), visible_sources(context));
    let views = views.iter().filter(|view| sources.contains(view));
    views.map(|view| Server { tools: sources.tool_count(view), ..server(view, context.lang) }).collect()
}

/// The servers that a principal may see.
enum VisibleSources {
    /// Those who manage or audit the hub see all.
    All,
    /// Others see those of which a tool is offered to them, with the number of these tools.
    Only(HashMap<Source, usize>),
}

impl VisibleSources {
    fn contains(&self, view: &ServerView) -> bool {
        match self {
            Self::All => true,
            Self::Only(sources) => sources.contains_key(&Source::Server(view.spec.id.clone())),
        }
    }

    /// The number of tools of a server that the principal may know of.
    fn tool_count(&self, view: &ServerView) -> Option<usize> {
        match self {
            Self::All => view.tool_count(),
            Self::Only(sources) => sources.get(&Source::Server(view.spec.id.clone())).copied(),
        }
    }
}

fn visible_sources(context: &ConsoleContext<'_>) -> VisibleSources {
    let managers: Roles = [Role::Operator, Role::Auditor, Role::Owner].into_iter().collect();
    if context.has_role(managers) {
        return VisibleSources::All;
    }
    let profiles = context.gateways.names();
    let offered =
        profiles.filter_map(|profile| context.gateways.offered_tools(Some(profile), context.principal()));
    // A tool may have several names in several profiles.
    let tools: HashSet<(Source, ToolName)> = offered
        .flatten()
        .flat_map(|tool| {
            tool.sources.iter().map(|source| (source.clone(), tool.tool.clone())).collect::<Vec<_>>()
        })
        .collect();
    let mut counts = HashMap::new();
    for (source, _) in tools {
        *counts.entry(source).or_insert(0) += 1;
    }
    VisibleSources::Only(counts)
}

/// The server that the path names.
pub(crate) fn find(context: &ConsoleContext<'_>) -> Result<ServerView, Problem> {
    let id = context.id();
    let view = context.hub().servers().into_iter().find(|view| view.spec.id.as_str() == id);
    view.filter(|view| visible_sources(context).contains(view))
        .ok_or_else(|| Problem::not_found(format!("there is no server `{id}`"), format!("没有服务器 `{id}`")))
}

pub(crate) fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &read(context)?))
}

/// The server that the path names, for people and programs.
pub(crate) fn read(context: &ConsoleContext<'_>) -> Result<ServerDetail, Problem> {
    Ok(detail(context, &find(context)?))
}

fn detail(context: &ConsoleContext<'_>, view: &ServerView) -> ServerDetail {
    let source = Source::Server(view.spec.id.clone());
    let offered = context.gateways.offered_tools(None, context.principal()).unwrap_or_default();
    let own = offered.into_iter().filter(|tool| tool.sources.contains(&source));
    let manages = context.has_role([Role::Operator, Role::Owner].into_iter().collect::<Roles>());
    let sources = visible_sources(context);
    let knows_all = matches!(sources, VisibleSources::All);
    let skipped = view
        .list
        .iter()
        .filter(|_| knows_all)
        .flat_map(|list| &list.skipped)
        .map(|one| one.localize(context.lang));
    let reached_by = if manages { reached_by(&view.spec.transport) } else { String::new() };
    ServerDetail {
        server: Server { tools: sources.tool_count(view), ..server(view, context.lang) },
        reached_by,
        origin: if manages { view.spec.origin.display().to_string() } else { String::new() },
        credentials: view.spec.credentials.name().to_owned(),
        skipped: skipped.collect(),
        tool_names: own.map(|tool| tool.name).collect(),
        disabled_tools: if manages { view.spec.disabled_tools.clone() } else { Vec::new() },
    }
}

pub(crate) fn log(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &ServerLog { lines: read_log(context)?.lines }))
}

/// The standard error of a server.
pub(crate) struct StderrLog {
    /// The last lines.
    pub(crate) lines: Vec<String>,
    /// Whether they are of an earlier run: the server is connected, and has written nothing since it was started.
    pub(crate) is_earlier: bool,
}

/// The last lines of the standard error of the server that the path names: of this run, or of the last run with any output.
pub(crate) fn read_log(context: &ConsoleContext<'_>) -> Result<StderrLog, Problem> {
    let view = find(context)?;
    let is_connected = matches!(view.state, ServerState::Connected { .. });
    // The file is written when a run ends.
    let stored = std::fs::read(context.hub().paths().log_of(view.spec.id.as_str()));
    let stored = stored.map(|bytes| last_lines(&bytes)).unwrap_or_default();
    let is_stored = view.stderr.is_empty() || (!is_connected && stored.len() >= view.stderr.len());
    let lines = if is_stored { stored } else { view.stderr };
    Ok(StderrLog { lines, is_earlier: is_connected && is_stored })
}

pub(crate) async fn test(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    connect(context).await
}

pub(crate) async fn restart(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let id = find(context)?.spec.id;
    let change = ChangeEvent {
        object: ChangedObject::Server,
        name: id.to_string(),
        change: ChangeKind::Updated,
        sha256: None,
        detail: Some("restarted".to_owned()),
    };
    let event = AuditEvent::now(context.principal().id(), AuditAction::Change(change));
    context.hub().record_audit(event).await?;
    context.hub().stop_server(id.as_str()).await;
    connect(context).await
}

/// Connects to the server that the path names, and lists its tools.
async fn connect(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let view = find(context)?;
    let id = view.spec.id.as_str();
    if !view.spec.enabled {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "server-disabled",
            toolhub_core::lang::LocalizedText::new(
                format!(
                    "server `{id}` is disabled: enable it with `toolhub servers enable {}`",
                    shell::shell_quote(id)
                ),
                format!(
                    "服务器 `{id}` 已停用：可用 `toolhub servers enable {}` 启用",
                    shell::shell_quote(id)
                ),
            ),
        ));
    }
    match context.hub().list_server(id).await {
        Some(Ok(_)) => Ok(json_response(StatusCode::OK, &read(context)?)),
        Some(Err(error)) => {
            let detail =
                toolhub_core::lang::LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
            let kind = match error {
                ToolError::LoginNeeded { .. } => "login-needed",
                _ => "server-failed",
            };
            Err(Problem::new(StatusCode::BAD_GATEWAY, kind, detail))
        }
        None => Err(Problem::not_found(format!("there is no server `{id}`"), format!("没有服务器 `{id}`"))),
    }
}

fn server(view: &ServerView, lang: Lang) -> Server {
    let (failures, open_until) = view.failures();
    Server {
        id: view.spec.id.to_string(),
        transport: view.spec.transport.name().to_owned(),
        state: view.state_name().to_owned(),
        era: view.era().map(str::to_owned),
        tools: view.tool_count(),
        error: view.failure().filter(|_| view.spec.enabled).map(|failure| failure.localize(lang)),
        peer: view.peer().map(str::to_owned),
        restarts: view.restarts,
        failures,
        protocol_version: view.protocol_version().map(str::to_owned),
        listed_at: view.list.as_ref().and_then(|list| list.listed_at).map(timestamp),
        circuit_open_until: open_until.map(timestamp),
    }
}

/// The program or the origin of the URL. Arguments, paths and user names may be secrets.
fn reached_by(transport: &TransportSpec) -> String {
    match transport {
        TransportSpec::Stdio(spec) => match spec.args.len() {
            0 => spec.command.clone(),
            arguments => format!("{} (+{arguments})", spec.command),
        },
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => url::Url::parse(&spec.url)
            .map_or_else(|_| String::new(), |url| url.origin().ascii_serialization()),
    }
}
