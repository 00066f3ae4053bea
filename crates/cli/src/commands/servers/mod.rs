//! `toolhub servers`: tests and refreshes MCP servers. `list` shows their state, `edit` changes them.

pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod extras;
pub(crate) mod import;
pub(crate) mod import_files;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod offers;
pub(crate) mod read;
pub(crate) mod show;
pub(crate) mod transfer;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolhub::{Hub, ServerState, ToolError};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::CachedList;
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::args::{ServersArgs, ServersCommand, TestArgs};
use crate::commands::tools::plural;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BAD, DIM, GOOD, NAME};

pub(crate) async fn run(app: &App, args: ServersArgs) -> anyhow::Result<Exit> {
    match args.command {
        None | Some(ServersCommand::List) => list::run(app).await,
        Some(ServersCommand::Add(args)) => edit::add(app, args).await,
        Some(ServersCommand::Remove(args)) => edit::remove(app, args).await,
        Some(ServersCommand::Test(args)) => test(app, args).await,
        Some(ServersCommand::Refresh(args)) => refresh(app, args).await,
        Some(ServersCommand::Show(args)) => show::run(app, &args.id).await,
        Some(ServersCommand::Read(args)) => read::read(app, &args).await,
        Some(ServersCommand::Prompt(args)) => read::prompt(app, &args).await,
        Some(ServersCommand::Offers(args)) => offers::run(app, &args.id).await,
        Some(ServersCommand::Logs(args)) => logs(app, &args.id).await,
        Some(ServersCommand::Enable(args)) => edit::enable(app, &args.id, true).await,
        Some(ServersCommand::Disable(args)) => edit::enable(app, &args.id, false).await,
        Some(ServersCommand::Login(args)) => login::login(app, args).await,
        Some(ServersCommand::Logout(args)) => login::logout(app, args).await,
        Some(ServersCommand::Import(args)) => import::run(app, &args),
        Some(ServersCommand::Export(args)) => export::run(app, &args),
    }
}

/// The error for a server that is not configured.
pub(crate) fn unknown(app: &App, hub: &Hub, id: &str) -> UsageError {
    let servers = hub.servers();
    let names = servers.iter().map(|server| server.spec.id.as_str());
    let suggestion = toolhub_engine::similar_names(id, names, 1);
    let lang = app.lang();
    UsageError(match suggestion.first() {
        Some(suggestion) => lang.choose(
            format!("there is no server `{id}`; did you mean `{suggestion}`?"),
            format!("没有服务器 `{id}`；是否想用 `{suggestion}`？"),
        ),
        None => lang.choose(
            format!("there is no server `{id}`; `toolhub servers list` shows what there is"),
            format!("没有服务器 `{id}`；`toolhub servers list` 列出现有服务器"),
        ),
    })
}

/// The named servers, or all enabled servers.
fn chosen(app: &App, hub: &Hub, named: Vec<String>) -> Result<Vec<String>, UsageError> {
    let servers = hub.servers();
    if let Some(id) = named.iter().find(|id| !servers.iter().any(|server| server.spec.id.as_str() == **id)) {
        return Err(unknown(app, hub, id));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let enabled = servers.iter().filter(|server| server.spec.enabled);
    Ok(enabled.map(|server| server.spec.id.as_str().to_owned()).collect())
}

/// Tool names with the versions of their definitions.
fn versions(hub: &Hub, id: &str) -> BTreeMap<String, String> {
    let catalog = hub.catalog();
    let own = catalog.iter().filter(|entry| entry.tool.source.to_string() == id);
    own.map(|entry| (entry.tool.name().to_string(), entry.tool.definition.version().to_owned())).collect()
}

async fn refresh(app: &App, args: TestArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let ids = chosen(app, hub, args.ids)?;
    let before: Vec<_> = ids.iter().map(|id| versions(hub, id)).collect();
    let tests = app.interruptible(test_all(app, hub, ids.clone())).await?;
    let mut changes = Vec::new();
    for (id, before) in ids.iter().zip(before) {
        let after = versions(hub, id);
        let names = |filter: &dyn Fn(&String) -> bool, of: &BTreeMap<String, String>| -> Vec<String> {
            of.keys().filter(|name| filter(name)).cloned().collect()
        };
        let added = names(&|name| !before.contains_key(name), &after);
        let removed = names(&|name| !after.contains_key(name), &before);
        let changed =
            names(&|name| before.get(name).is_some_and(|version| after.get(name) != Some(version)), &after);
        let parts = [(added, "added", "新增"), (removed, "removed", "移除"), (changed, "changed", "变化")];
        let failure = tests.iter().find(|test| test.id == *id).and_then(|test| test.result.as_ref().err());
        let mut report = RawObject::default()
            .with("id", id.as_str())
            .with("success", failure.is_none())
            .with("error", RawJson::of(&failure.map(|error| error.localize(lang))));
        for (names, en, zh) in &parts {
            report.set(*en, RawJson::of(names));
            if !names.is_empty() && !app.screen.json {
                app.screen.line(&format!("  {}: {}", lang.choose(en, zh), names.join(", ")));
            }
        }
        changes.push(report);
    }
    if app.screen.json {
        app.screen.json(&RawJson::of(&changes));
    }
    Ok(exit_of(&tests))
}

async fn logs(app: &App, id: &str) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    chosen(app, hub, vec![id.to_owned()])?;
    match std::fs::read(hub.places().log_of(id)) {
        Ok(bytes) => app.screen.verbatim(&String::from_utf8_lossy(&bytes)),
        Err(_) => app.screen.note(&app.lang().choose(
            format!("`{id}` has written nothing to its standard error"),
            format!("`{id}` 没有向标准错误写过内容"),
        )),
    }
    Ok(Exit::Done)
}

async fn test(app: &App, args: TestArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let ids = chosen(app, hub, args.ids)?;
    if ids.is_empty() {
        return list::run(app).await;
    }
    let tests = app.interruptible(test_all(app, hub, ids)).await?;
    if app.screen.json {
        let all: Vec<RawObject> = tests.iter().map(|test| test.as_json(app)).collect();
        app.screen.json(&RawJson::of(&all));
    }
    Ok(exit_of(&tests))
}

/// The exit code of all tests. A server that requires a login counts as reachable.
pub(crate) fn exit_of(tests: &[ServerTest]) -> Exit {
    let failures: Vec<&ToolError> = tests.iter().filter_map(|test| test.result.as_ref().err()).collect();
    let logins = failures.iter().all(|error| matches!(error, ToolError::LoginNeeded { .. }));
    match (failures.is_empty(), logins) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Unreachable,
    }
}

/// The result of testing one server.
pub(crate) struct ServerTest {
    pub(crate) id: String,
    pub(crate) took: Duration,
    pub(crate) result: Result<CachedList, ToolError>,
    /// The negotiated MCP version.
    version: Option<String>,
    /// The last lines of its stderr.
    stderr: Vec<String>,
}

impl ServerTest {
    pub(crate) fn as_json(&self, app: &App) -> RawObject {
        let list = self.result.as_ref().ok();
        let error = self.result.as_ref().err();
        let localize = |texts: &[LocalizedText]| -> Vec<String> {
            texts.iter().map(|text| text.localize(app.lang())).collect()
        };
        RawObject::default()
            .with("id", self.id.as_str())
            .with("success", self.result.is_ok())
            .with("era", RawJson::of(&list.map(|list| &list.era)))
            .with("peer", RawJson::of(&list.map(|list| &list.peer)))
            .with("tools", RawJson::of(&list.map(|list| list.tools.len())))
            .with("version", RawJson::of(&self.version))
            .with("skipped", RawJson::of(&list.map(|list| localize(&list.skipped))))
            .with("duration_ms", self.took.as_millis() as u64)
            .with("error", RawJson::of(&error.map(|error| error.localize(app.lang()))))
            .with("error_kind", RawJson::of(&error.map(ToolError::kind)))
            .with("stderr", RawJson::of(&self.stderr))
    }

    fn show(&self, app: &App) {
        let (lang, id, millis) = (app.lang(), &self.id, self.took.as_millis());
        match &self.result {
            Ok(list) => {
                let (tools, era, peer) = (list.tools.len(), &list.era, &list.peer);
                let text = lang.choose(
                    format!("{} ({peer}, {era}, {millis} ms)", plural(tools, "tool")),
                    format!("{tools} 个工具（{peer}，{era}，{millis} 毫秒）"),
                );
                app.screen.line(&format!("{GOOD}✓{GOOD:#} {NAME}{id}{NAME:#}  {text}"));
                for skipped in list.skipped.iter().map(|skipped| skipped.localize(lang)) {
                    app.screen.warn(
                        &lang.choose(format!("`{id}` skipped {skipped}"), format!("`{id}` 跳过 {skipped}")),
                    );
                }
            }
            Err(error) => {
                app.screen.line(&format!("{BAD}✗{BAD:#} {NAME}{id}{NAME:#}  {}", error.brief(lang)));
            }
        }
        // The stderr of a working server is shown only with `-v`.
        if self.result.is_err() || app.global.verbose > 0 {
            for line in &self.stderr {
                app.screen.line(&format!("    {DIM}{line}{DIM:#}"));
            }
        }
    }
}

/// Connects to these servers concurrently, and prints each result when it is available.
pub(crate) async fn test_all(app: &App, hub: &Hub, ids: Vec<String>) -> Vec<ServerTest> {
    let one = |id: String| async move {
        let started = Instant::now();
        let result = hub.list_server(&id).await?;
        let took = started.elapsed();
        let view = hub.servers().into_iter().find(|view| view.spec.id.as_str() == id)?;
        let version = match view.state {
            ServerState::Connected { version, .. } => Some(version),
            _ => None,
        };
        let stderr = match &result {
            Err(error) if view.stderr.is_empty() => error.stderr_tail().to_vec(),
            _ => view.stderr,
        };
        Some(ServerTest { id, took, result, version, stderr })
    };
    let mut under_way: FuturesUnordered<_> = ids.into_iter().map(one).collect();
    let mut tests = Vec::new();
    while let Some(test) = under_way.next().await {
        let Some(test) = test else { continue };
        if !app.screen.json {
            test.show(app);
        }
        tests.push(test);
    }
    tests
}
