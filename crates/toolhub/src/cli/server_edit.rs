//! `toolhub servers add` and `servers remove`: changes to `mcp.json`.

use std::path::{Path, PathBuf};

use toolhub::settings::{Settings, load_servers};
use toolhub_core::{RawJson, RawObject, ServerId};
use toolhub_mcp::config::{
    HttpSpec, ServerEntry, StdioSpec, TransportSpec, add_server, remove_server, set_enabled,
};

use super::app::App;
use super::exit::{Exit, UsageError};
use super::findings;
use super::options::{AddArgs, RemoveArgs};
use super::servers::{exit_of, test_all, unknown};

pub(crate) async fn add(app: &App, args: AddArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let id = args.id.as_str();
    if ServerId::RESERVED.contains(&id) || id.trim().is_empty() {
        return Err(UsageError(lang.pick(
            format!("`{id}` cannot be a server's name, as it means something else in a call's source: choose another"),
            format!("`{id}` 在调用的 source 中另有含义，不能用作服务器名：请换一个"),
        ))
        .into());
    }
    let entry = ServerEntry { id: id.to_owned(), transport: transport(app, &args)? };
    let places = app.places()?;
    // A config that cannot be read as it is must not be written to.
    let (servers, _) = load_servers(&places, &Settings::read(&places)?)?;
    let existed = servers.iter().any(|spec| spec.id.as_str() == id && spec.origin == places.servers);
    add_server(&places.servers, &entry, args.replace)?;
    app.keep_trust(&places, &[&places.servers]);
    let action = if existed { "replaced" } else { "added" };
    if args.no_test || !app.screen.json {
        tell(app, action, id, &places.servers);
    }
    if args.no_test {
        return Ok(Exit::Done);
    }
    let hub = app.hub().await?;
    let tested = app.interruptible(test_all(app, hub, vec![id.to_owned()])).await?;
    let exit = exit_of(&tested);
    if app.screen.json {
        let catalog = hub.catalog();
        let own = catalog.iter().filter(|entry| entry.tool.source.to_string() == id);
        let tools: Vec<RawObject> = own.map(|entry| findings::described(entry, lang)).collect();
        let told = change(action, id, &places.servers).with("tools", RawJson::of(&tools));
        let tested: Vec<RawObject> = tested.iter().map(|test| test.as_json(app)).collect();
        app.screen.json(&told.with("test", RawJson::of(&tested.first())).into_raw());
    }
    if exit != Exit::Done {
        app.screen.warn(&lang.pick(
            format!("it stays in the config; try again with `toolhub servers test {id}`"),
            format!("配置已保留；可用 `toolhub servers test {id}` 再试"),
        ));
    }
    Ok(exit)
}

pub(crate) async fn remove(app: &App, args: RemoveArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == args.id) else {
        return Err(unknown(app, hub, &args.id).into());
    };
    remove_server(&server.spec.origin, &args.id)?;
    app.keep_trust(hub.places(), &[&server.spec.origin]);
    // A server that cannot be logged in to has nothing to give back.
    let _ = hub.logout(&args.id).await;
    hub.forget_server(&args.id).await;
    tell(app, "removed", &args.id, &server.spec.origin);
    Ok(Exit::Done)
}

/// Switches a server on or off, where it is configured.
pub(crate) async fn enable(app: &App, id: &str, on: bool) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == id) else {
        return Err(unknown(app, hub, id).into());
    };
    set_enabled(&server.spec.origin, id, on)?;
    app.keep_trust(hub.places(), &[&server.spec.origin]);
    tell(app, if on { "enabled" } else { "disabled" }, id, &server.spec.origin);
    if hub.settings().servers.iter().any(|extras| extras.id == id && extras.enabled == Some(!on)) {
        let file = hub.places().config.display();
        app.screen.warn(&app.lang().pick(
            format!("`enabled` of `{id}` in `{file}` says otherwise, and wins"),
            format!("`{file}` 中 `{id}` 的 `enabled` 与此相反，以它为准"),
        ));
    }
    Ok(Exit::Done)
}

fn change(action: &str, id: &str, file: &Path) -> RawObject {
    RawObject::default().with("id", id).with("action", action).with("file", file.display().to_string())
}

fn tell(app: &App, action: &str, id: &str, file: &Path) {
    let shown = file.display();
    if app.screen.json {
        app.screen.json(&change(action, id, file).into_raw());
        return;
    }
    let (en, zh) = match action {
        "added" => ("added", "已添加"),
        "replaced" => ("replaced", "已替换"),
        "enabled" => ("enabled", "已启用"),
        "disabled" => ("disabled", "已停用"),
        _ => ("removed", "已删除"),
    };
    app.screen
        .note(&app.lang().pick(format!("{en} `{id}` (`{shown}`)"), format!("{zh} `{id}`（`{shown}`）")));
}

fn transport(app: &App, args: &AddArgs) -> Result<TransportSpec, UsageError> {
    let lang = app.lang();
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            let plain = url.starts_with("http://") || url.starts_with("https://");
            // A variable may hold the beginning too.
            if !plain && !url.contains("${") {
                return Err(UsageError(lang.pick(
                    format!("`{url}` is no address: write it with `http://` or `https://` in front"),
                    format!("`{url}` 不是地址：请在前面写上 `http://` 或 `https://`"),
                )));
            }
            let spec = HttpSpec { url: url.clone(), headers: pairs(app, &args.header)? };
            Ok(if args.kind.as_deref() == Some("sse") { TransportSpec::Sse(spec) } else { TransportSpec::Http(spec) })
        }
        (None, Some(_)) if !args.header.is_empty() || args.kind.is_some() => Err(UsageError(lang.pick(
            "`--header` and `--type` are for servers with a `--url`".to_owned(),
            "`--header` 和 `--type` 只用于带 `--url` 的服务器".to_owned(),
        ))),
        (None, Some((command, rest))) => Ok(TransportSpec::Stdio(StdioSpec {
            command: rooted(command),
            args: rest.to_vec(),
            env: pairs(app, &args.env)?,
            cwd: args.cwd.clone().map(|folder| std::path::absolute(&folder).unwrap_or(folder)),
            ..StdioSpec::default()
        })),
        (None, None) => Err(UsageError(lang.pick(
            format!("say how to reach it: `toolhub servers add {0} -- COMMAND ARGS…` or `toolhub servers add {0} --url URL`", args.id),
            format!("请说明如何连接：`toolhub servers add {0} -- 命令 参数…` 或 `toolhub servers add {0} --url 地址`", args.id),
        ))),
    }
}

/// A program named by a relative path is meant from here, wherever toolhub is started later.
fn rooted(command: &str) -> String {
    let path = PathBuf::from(command);
    if path.components().count() < 2 || path.is_absolute() || !path.exists() {
        return command.to_owned();
    }
    std::path::absolute(&path).map_or_else(|_| command.to_owned(), |path| path.to_string_lossy().into_owned())
}

fn pairs(app: &App, texts: &[String]) -> Result<Vec<(String, String)>, UsageError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').or_else(|| text.split_once(": ")).ok_or_else(|| {
            let lang = app.lang();
            UsageError(
                lang.pick(format!("`{text}` should be NAME=VALUE"), format!("`{text}` 应写成 NAME=VALUE")),
            )
        })?;
        Ok((name.trim().to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}
