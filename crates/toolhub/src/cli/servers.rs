//! `toolhub servers`: the MCP servers: listed, added, removed, tested.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolhub::settings::{Settings, load_servers};
use toolhub::{Hub, ServerView, ToolError};
use toolhub_core::ports::CachedList;
use toolhub_core::{RawJson, RawObject, Say as _, ServerId};
use toolhub_mcp::config::{HttpSpec, ServerEntry, StdioSpec, TransportSpec, add_server, remove_server};

use super::app::App;
use super::exit::{Exit, UsageError};
use super::options::{AddArgs, RemoveArgs, ServersArgs, ServersCommand, TestArgs};
use super::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use super::table::{Cell, lines};

pub(crate) async fn run(app: &App, args: ServersArgs) -> anyhow::Result<Exit> {
    match args.command {
        None | Some(ServersCommand::List) => list(app).await,
        Some(ServersCommand::Add(args)) => add(app, args).await,
        Some(ServersCommand::Remove(args)) => remove(app, args).await,
        Some(ServersCommand::Test(args)) => test(app, args).await,
    }
}

/// How a server stands, as far as is known without asking it.
fn state(server: &ServerView) -> &'static str {
    match &server.list {
        _ if !server.spec.enabled => "disabled",
        None => "new",
        Some(CachedList { failure: Some(_), .. }) => "failed",
        Some(CachedList { listed_at: Some(_), .. }) => "ready",
        Some(_) => "new",
    }
}

fn failure(server: &ServerView) -> Option<&str> {
    server.list.as_ref()?.failure.as_ref().map(|(_, why)| why.as_str())
}

async fn list(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let servers = hub.servers();
    if app.screen.json {
        let all: Vec<RawObject> = servers.iter().map(as_json).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        app.screen.line(lang.pick(
            "no servers yet; add one with `toolhub servers add NAME -- COMMAND` or `toolhub servers add NAME --url URL`",
            "还没有服务器；用 `toolhub servers add 名称 -- 命令` 或 `toolhub servers add 名称 --url 地址` 添加",
        ));
        return Ok(Exit::Done);
    }
    let head = lang
        .pick(["ID", "TRANSPORT", "STATE", "ERA", "TOOLS", ""], ["名称", "传输", "状态", "世代", "工具", ""]);
    let mut rows = vec![head.iter().map(|text| Cell::new(*text, BOLD)).collect()];
    for server in &servers {
        let state = state(server);
        let (word, style) = match state {
            "ready" => (lang.pick("ready", "就绪"), GOOD),
            "failed" => (lang.pick("failed", "失败"), BAD),
            "disabled" => (lang.pick("disabled", "停用"), DIM),
            _ => (lang.pick("new", "未连接过"), ODD),
        };
        let list = server.list.as_ref();
        let tools = list.filter(|list| list.listed_at.is_some()).map(|list| list.tools.len().to_string());
        rows.push(vec![
            Cell::new(server.spec.id.as_str(), NAME),
            Cell::from(server.spec.transport.name()),
            Cell::new(word, style),
            Cell::from(
                list.map(|list| list.era.clone()).filter(|era| !era.is_empty()).unwrap_or("-".to_owned()),
            ),
            Cell::from(tools.unwrap_or("-".to_owned())),
            Cell::from(failure(server).unwrap_or_default()),
        ]);
    }
    for line in lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
    Ok(Exit::Done)
}

fn as_json(server: &ServerView) -> RawObject {
    let list = server.list.as_ref();
    let tools = list.filter(|list| list.listed_at.is_some()).map(|list| list.tools.len() as u64);
    RawObject::default()
        .with("id", server.spec.id.as_str())
        .with("transport", server.spec.transport.name())
        .with("state", state(server))
        .with("era", RawJson::of(&list.map(|list| list.era.as_str()).filter(|era| !era.is_empty())))
        .with("tools", RawJson::of(&tools))
        .with("error", RawJson::of(&failure(server)))
        .with("peer", RawJson::of(&list.map(|list| list.peer.as_str()).filter(|peer| !peer.is_empty())))
        .with("origin", server.spec.origin.to_string_lossy().into_owned())
}

async fn add(app: &App, args: AddArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    if ServerId::RESERVED.contains(&args.id.as_str()) || args.id.trim().is_empty() {
        return Err(UsageError(lang.pick(
            format!("`{}` cannot be a server's name: choose another", args.id),
            format!("`{}` 不能用作服务器名：请换一个", args.id),
        ))
        .into());
    }
    let entry = ServerEntry { id: args.id.clone(), transport: transport(app, &args)? };
    let places = app.places()?;
    // A config that cannot be read as it is must not be written to.
    load_servers(&places, &Settings::read(&places.config)?)?;
    add_server(&places.servers, &entry, args.replace)?;
    app.screen.note(&lang.pick(
        format!("added `{}` to `{}`", args.id, places.servers.display()),
        format!("已将 `{}` 写入 `{}`", args.id, places.servers.display()),
    ));
    if args.no_test {
        return Ok(Exit::Done);
    }
    let hub = app.hub().await?;
    let tested = app.interruptible(test_all(app, hub, vec![args.id.clone()])).await?;
    if tested.iter().any(|test| test.result.is_err()) {
        app.screen.warn(&lang.pick(
            format!("it stays in the config; try again with `toolhub servers test {}`", args.id),
            format!("配置已保留；可用 `toolhub servers test {}` 再试", args.id),
        ));
    }
    Ok(Exit::Done)
}

fn transport(app: &App, args: &AddArgs) -> Result<TransportSpec, UsageError> {
    let lang = app.lang();
    let pairs = |texts: &[String]| -> Result<Vec<(String, String)>, UsageError> {
        let pair = |text: &String| {
            let (name, value) =
                text.split_once('=').or_else(|| text.split_once(": ")).ok_or_else(|| {
                    UsageError(lang.pick(
                        format!("`{text}` should be NAME=VALUE"),
                        format!("`{text}` 应写成 NAME=VALUE"),
                    ))
                })?;
            Ok((name.trim().to_owned(), value.to_owned()))
        };
        texts.iter().map(pair).collect()
    };
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            let spec = HttpSpec { url: url.clone(), headers: pairs(&args.header)? };
            Ok(if args.kind == "sse" { TransportSpec::Sse(spec) } else { TransportSpec::Http(spec) })
        }
        (None, Some((command, rest))) => Ok(TransportSpec::Stdio(StdioSpec {
            command: command.clone(),
            args: rest.to_vec(),
            env: pairs(&args.env)?,
            cwd: args.cwd.clone(),
            env_pass: Vec::new(),
        })),
        (None, None) => Err(UsageError(lang.pick(
            format!("say how to reach it: `toolhub servers add {0} -- COMMAND ARGS…` or `toolhub servers add {0} --url URL`", args.id),
            format!("请说明如何连接：`toolhub servers add {0} -- 命令 参数…` 或 `toolhub servers add {0} --url 地址`", args.id),
        ))),
    }
}

async fn remove(app: &App, args: RemoveArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == args.id) else {
        return Err(unknown(app, hub, &args.id).into());
    };
    remove_server(&server.spec.origin, &args.id)?;
    hub.forget_server(&args.id).await;
    app.screen.note(&lang.pick(
        format!("removed `{}` from `{}`", args.id, server.spec.origin.display()),
        format!("已从 `{1}` 删除 `{0}`", args.id, server.spec.origin.display()),
    ));
    Ok(Exit::Done)
}

fn unknown(app: &App, hub: &Hub, id: &str) -> UsageError {
    let servers = hub.servers();
    let names = servers.iter().map(|server| server.spec.id.as_str());
    let near = toolhub_engine::near_names(id, names, 1);
    let lang = app.lang();
    UsageError(match near.first() {
        Some(near) => lang.pick(
            format!("there is no server `{id}`; did you mean `{near}`?"),
            format!("没有服务器 `{id}`；是否想用 `{near}`？"),
        ),
        None => lang.pick(
            format!("there is no server `{id}`; `toolhub servers list` shows what there is"),
            format!("没有服务器 `{id}`；`toolhub servers list` 列出现有服务器"),
        ),
    })
}

async fn test(app: &App, args: TestArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let servers = hub.servers();
    if let Some(id) = args.ids.iter().find(|id| !servers.iter().any(|server| server.spec.id.as_str() == **id))
    {
        return Err(unknown(app, hub, id).into());
    }
    let ids = if args.ids.is_empty() {
        let enabled = servers.iter().filter(|server| server.spec.enabled);
        enabled.map(|server| server.spec.id.as_str().to_owned()).collect()
    } else {
        args.ids
    };
    if ids.is_empty() {
        return list(app).await;
    }
    let tested = app.interruptible(test_all(app, hub, ids)).await?;
    if app.screen.json {
        let all: Vec<RawObject> = tested.iter().map(|test| test.as_json(app)).collect();
        app.screen.json(&RawJson::of(&all));
    }
    let failed = tested.iter().find_map(|test| test.result.as_ref().err());
    Ok(failed.map_or(Exit::Done, |_| Exit::Unreachable))
}

/// What came of testing one server.
pub(crate) struct Tested {
    pub(crate) id: String,
    pub(crate) took: Duration,
    pub(crate) result: Result<CachedList, ToolError>,
}

impl Tested {
    fn as_json(&self, app: &App) -> RawObject {
        let list = self.result.as_ref().ok();
        let error = self.result.as_ref().err();
        RawObject::default()
            .with("id", self.id.as_str())
            .with("success", self.result.is_ok())
            .with("era", RawJson::of(&list.map(|list| &list.era)))
            .with("peer", RawJson::of(&list.map(|list| &list.peer)))
            .with("tools", RawJson::of(&list.map(|list| list.tools.len())))
            .with("skipped", RawJson::of(&list.map(|list| &list.skipped)))
            .with("duration_ms", self.took.as_millis() as u64)
            .with("error", RawJson::of(&error.map(|error| error.say(app.lang()))))
            .with("error_kind", RawJson::of(&error.map(ToolError::kind)))
    }

    fn show(&self, app: &App) {
        let (lang, id, millis) = (app.lang(), &self.id, self.took.as_millis());
        match &self.result {
            Ok(list) => {
                let (tools, era, peer) = (list.tools.len(), &list.era, &list.peer);
                let text = lang.pick(
                    format!("{tools} tools ({peer}, {era}, {millis} ms)"),
                    format!("{tools} 个工具（{peer}，{era}，{millis} 毫秒）"),
                );
                app.screen.line(&format!("{GOOD}✓{GOOD:#} {NAME}{id}{NAME:#}  {text}"));
                for skipped in &list.skipped {
                    app.screen.warn(
                        &lang.pick(format!("`{id}` skipped {skipped}"), format!("`{id}` 跳过 {skipped}")),
                    );
                }
            }
            Err(error) => {
                app.screen.line(&format!("{BAD}✗{BAD:#} {NAME}{id}{NAME:#}  {}", error.say(lang)));
            }
        }
    }
}

/// Connects to these servers, all at once, and shows each as it comes.
pub(crate) async fn test_all(app: &App, hub: &Hub, ids: Vec<String>) -> Vec<Tested> {
    let one = |id: String| async move {
        let started = Instant::now();
        let result = hub.list_server(&id).await?;
        Some(Tested { id, took: started.elapsed(), result })
    };
    let mut under_way: FuturesUnordered<_> = ids.into_iter().map(one).collect();
    let mut tested = Vec::new();
    while let Some(test) = under_way.next().await {
        let Some(test) = test else { continue };
        if !app.screen.json {
            test.show(app);
        }
        tested.push(test);
    }
    tested
}
