//! `toolhub servers`: the commands about MCP servers. `list` and `show` show their state, `trial` connects to them, `edit` changes
//! them, `live` uses a running hub.

pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod extras;
pub(crate) mod import;
pub(crate) mod import_files;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod offers;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod show;
pub(crate) mod transfer;
pub(crate) mod trial;

use std::collections::BTreeMap;

use anyhow::Context as _;
use toolhub::Hub;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::args::{ServersArgs, ServersCommand, TestArgs};
use crate::commands::servers::trial::{exit_of, test_all};
use crate::exit::{Exit, UsageError};

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
        Some(ServersCommand::Restart(args)) => live::restart(app, &args.id).await,
        Some(ServersCommand::Logs(args)) => logs(app, &args.id).await,
        Some(ServersCommand::Enable(args)) => edit::enable(app, &args.id, true).await,
        Some(ServersCommand::Disable(args)) => edit::enable(app, &args.id, false).await,
        Some(ServersCommand::Login(args)) => login::login(app, args).await,
        Some(ServersCommand::Logout(args)) => login::logout(app, args).await,
        Some(ServersCommand::Import(args)) => import::run(app, &args).await,
        Some(ServersCommand::Export(args)) => export::run(app, &args),
    }
}

/// The error for a server that is not configured.
pub(crate) fn unknown_server(app: &App, hub: &Hub, id: &str) -> UsageError {
    let servers = hub.servers();
    unknown_among(app, id, servers.iter().map(|server| server.spec.id.as_str()))
}

/// The error for a server that is not one of these.
pub(crate) fn unknown_among<'a>(app: &App, id: &str, names: impl Iterator<Item = &'a str>) -> UsageError {
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
        return Err(unknown_server(app, hub, id));
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
            .with("error", RawJson::of(&failure.map(|failure| &failure.text)));
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
    let file = hub.paths().log_of(id);
    let text = match std::fs::read(&file) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.display())),
    };
    show_log(app, id, text);
    Ok(Exit::Done)
}

/// Prints what a server has written to its standard error.
pub(crate) fn show_log(app: &App, id: &str, text: Option<String>) {
    match text {
        Some(text) => app.screen.verbatim(&text),
        None => app.screen.note(&app.lang().choose(
            format!("`{id}` has written nothing to its standard error"),
            format!("`{id}` 没有向标准错误写过内容"),
        )),
    }
}

async fn test(app: &App, args: TestArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let ids = chosen(app, hub, args.ids)?;
    if ids.is_empty() {
        return list::run(app).await;
    }
    let tests = app.interruptible(test_all(app, hub, ids)).await?;
    if app.screen.json {
        let all: Vec<RawObject> = tests.iter().map(|test| test.as_json()).collect();
        app.screen.json(&RawJson::of(&all));
    }
    Ok(exit_of(&tests))
}
