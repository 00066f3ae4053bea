//! `servers` through a hub: the live state of its servers, and what can be done with them.

use std::time::{Instant, SystemTime};

use jiff::Timestamp;
use reqwest::Method;
use serde::Deserialize;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::commands::servers::edit::report_change;
use crate::commands::servers::report::{self, ServerReport, known_restarts};
use crate::commands::servers::show::DescribedServer;
use crate::commands::servers::trial::{ServerTest, TestedServer, TrialFailure, exit_of};
use crate::commands::servers::{show_log, unknown_among};
use crate::commands::through_hub::remote_tool::remote_catalog;
use crate::exit::Exit;
use crate::hub_api::error::HubError;
use crate::hub_api::{ApiPath, HubApi, ListPage};

/// A server as the API describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct RemoteServer {
    pub(crate) id: String,
    transport: String,
    state: String,
    era: Option<String>,
    tools: Option<usize>,
    error: Option<String>,
    peer: Option<String>,
    #[serde(default)]
    restarts: u32,
    #[serde(default)]
    failures: u32,
    #[serde(default)]
    protocol_version: Option<String>,
    listed_at: Option<String>,
    circuit_open_until: Option<String>,
    /// Only of one server, for roles that manage it.
    #[serde(default)]
    reached_by: String,
    #[serde(default)]
    origin: String,
    #[serde(default)]
    skipped: Vec<String>,
}

impl RemoteServer {
    pub(crate) fn is_enabled(&self) -> bool {
        self.state != "disabled"
    }

    fn report(&self, stderr: Vec<String>) -> ServerReport {
        ServerReport {
            id: self.id.clone(),
            transport: self.transport.clone(),
            state: self.state.clone(),
            era: self.era.clone(),
            tools: self.tools,
            error: self.error.clone(),
            failures: self.failures,
            open_until: self.circuit_open_until.as_deref().and_then(parse_time),
            peer: self.peer.clone(),
            version: self.protocol_version.clone(),
            origin: self.origin.clone(),
            listed_at: self.listed_at.as_deref().and_then(parse_time),
            restarts: known_restarts(self.state == "connected", self.restarts),
            stderr,
        }
    }
}

/// The log of a server.
#[derive(Debug, Deserialize)]
struct ServerLog {
    lines: Vec<String>,
}

/// A time as the API writes it.
pub(crate) fn parse_time(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

async fn all(api: &HubApi) -> Result<Vec<RemoteServer>, HubError> {
    Ok(api.get::<ListPage<RemoteServer>>(&ApiPath::new("servers"), &[]).await?.items)
}

/// One server.
async fn find(app: &App, api: &HubApi, id: &str) -> anyhow::Result<RemoteServer> {
    match api.get(&ApiPath::item("servers", id, "")?, &[]).await {
        Err(error) => Err(error_about(app, api, id, error).await),
        Ok(server) => Ok(server),
    }
}

/// The error of a request about a server: an unknown one is reported as by the local command.
async fn error_about(app: &App, api: &HubApi, id: &str, error: HubError) -> anyhow::Error {
    if !error.is_not_found() {
        return error.into();
    }
    let servers = all(api).await.unwrap_or_default();
    unknown_among(app, id, servers.iter().map(|server| server.id.as_str())).into()
}

/// The last lines of the standard error of a server; none if the roles do not permit to read it.
async fn stderr(api: &HubApi, id: &str) -> Result<Vec<String>, HubError> {
    match api.get::<ServerLog>(&ApiPath::item("servers", id, "/log")?, &[]).await {
        Ok(log) => Ok(log.lines),
        Err(error) if error.is_forbidden() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(crate) async fn list(app: &App, api: &HubApi) -> anyhow::Result<Exit> {
    let servers = all(api).await?;
    if servers.is_empty() && !app.screen.json {
        app.screen.line(
            app.lang().choose("the hub has no servers that this key may see", "hub 没有此密钥可见的服务器"),
        );
        return Ok(Exit::Done);
    }
    let mut reports = Vec::new();
    for server in &servers {
        let is_needed = app.screen.json || app.global.verbose > 0;
        let mut report = server.report(if is_needed { stderr(api, &server.id).await? } else { Vec::new() });
        // The list does not contain the file.
        if app.screen.json {
            report.origin = find(app, api, &server.id).await?.origin;
        }
        reports.push(report);
    }
    report::print(app, &reports);
    Ok(Exit::Done)
}

pub(crate) async fn show(app: &App, api: &HubApi, id: &str) -> anyhow::Result<Exit> {
    let server = find(app, api, id).await?;
    let tools = remote_catalog(api, Some(id)).await?;
    let is_own = |entry: &&std::sync::Arc<toolhub_engine::CatalogEntry>| entry.tool.source.to_string() == id;
    let described = DescribedServer {
        report: server.report(stderr(api, id).await?),
        is_enabled: server.is_enabled(),
        reached_by: server.reached_by.clone(),
        tools: tools.iter().filter(is_own).cloned().collect(),
    };
    described.show(app);
    Ok(Exit::Done)
}

/// Connects to a server, after ending its connection if `verb` is `:restart`.
async fn connect(app: &App, api: &HubApi, id: &str, verb: &'static str) -> anyhow::Result<ServerTest> {
    let started = Instant::now();
    let answer = api.post::<RemoteServer>(&ApiPath::item("servers", id, verb)?, RawObject::default()).await;
    let took = started.elapsed();
    let (result, version) = match answer {
        Ok(server) => {
            let tested = TestedServer {
                tools: server.tools.unwrap_or_default(),
                era: server.era.unwrap_or_default(),
                peer: server.peer.unwrap_or_default(),
                skipped: server.skipped,
            };
            (Ok(tested), server.protocol_version)
        }
        Err(HubError::Problem(problem))
            if matches!(problem.kind.as_str(), "server-failed" | "login-needed") =>
        {
            let needs_login = problem.kind == "login-needed";
            let kind = if needs_login { "login_needed" } else { "connection_failed" };
            let (text, brief) = (problem.detail.clone(), problem.detail);
            (Err(TrialFailure { text, brief, kind: kind.to_owned(), needs_login }), None)
        }
        Err(error) => return Err(error_about(app, api, id, error).await),
    };
    Ok(ServerTest { id: id.to_owned(), took, result, version, stderr: stderr(api, id).await? })
}

pub(crate) async fn test(app: &App, api: &HubApi, ids: &[String]) -> anyhow::Result<Exit> {
    let ids = match ids.is_empty() {
        true => {
            all(api).await?.into_iter().filter(RemoteServer::is_enabled).map(|server| server.id).collect()
        }
        false => ids.to_vec(),
    };
    if ids.is_empty() {
        return list(app, api).await;
    }
    let mut tests = Vec::new();
    for id in &ids {
        let test = connect(app, api, id, ":test").await?;
        if !app.screen.json {
            test.show(app);
        }
        tests.push(test);
    }
    if app.screen.json {
        let all: Vec<RawObject> = tests.iter().map(ServerTest::as_json).collect();
        app.screen.json(&RawJson::of(&all));
    }
    Ok(exit_of(&tests))
}

pub(crate) async fn restart(app: &App, api: &HubApi, id: &str) -> anyhow::Result<Exit> {
    let test = connect(app, api, id, ":restart").await?;
    test.report(app);
    Ok(exit_of(&[test]))
}

pub(crate) async fn enable(app: &App, api: &HubApi, id: &str, on: bool) -> anyhow::Result<Exit> {
    let body = RawObject::default().with("enabled", on);
    let path = ApiPath::item("servers", id, "")?;
    let server = match api.write::<RemoteServer>(Method::PATCH, &path, body).await {
        Ok(server) => server,
        Err(error) => return Err(error_about(app, api, id, error).await),
    };
    report_change(app, if on { "enabled" } else { "disabled" }, id, server.origin.as_ref());
    if server.is_enabled() != on {
        app.screen.warn(&app.lang().choose(
            format!("`enabled` of `{id}` in the hub's toolhub.toml overrides this setting"),
            format!("hub 的 toolhub.toml 中 `{id}` 的 `enabled` 与此相反，以它为准"),
        ));
    }
    Ok(Exit::Done)
}

pub(crate) async fn logs(app: &App, api: &HubApi, id: &str) -> anyhow::Result<Exit> {
    let log = match api.get::<ServerLog>(&ApiPath::item("servers", id, "/log")?, &[]).await {
        Ok(log) => log,
        Err(error) => return Err(error_about(app, api, id, error).await),
    };
    let text = (!log.lines.is_empty()).then(|| log.lines.join("\n"));
    show_log(app, id, text);
    Ok(Exit::Done)
}
