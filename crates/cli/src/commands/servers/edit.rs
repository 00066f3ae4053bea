//! `toolhub servers add` and `servers remove`: changes to `mcp.json`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhub::Hub;
use toolhub::settings::{Settings, load_servers};
use toolhub_client_config::{HttpSpec, StdioSpec, TransportSpec};
use toolhub_core::audit::ChangeKind;
use toolhub_core::principal::LOCAL;
use toolhub_core::shell;
use toolhub_core::{Localize as _, RawJson, RawObject, ServerId, Source};
use toolhub_mcp_client::config::{
    ServerEntry, ServerSpec, add_server, parse_servers, remove_server, set_enabled,
};

use crate::app::App;
use crate::args::{AddArgs, ServerIdArgs};
use crate::commands::servers::show::show_tools;
use crate::commands::servers::trial::{exit_of, test_all};
use crate::commands::servers::unknown_server;
use crate::exit::{Exit, UsageError};
use crate::render::findings;

pub(crate) async fn add(app: &App, args: AddArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let from_stdin = args.id == "-" || args.command == ["-"];
    let entries = match from_stdin {
        true => entries_from_stdin(app, Some(args.id.as_str()).filter(|id| *id != "-"))?,
        false => vec![ServerEntry { id: args.id.clone(), transport: transport(app, &args)? }],
    };
    let reserved = |id: &str| ServerId::RESERVED.contains(&id) || id.trim().is_empty();
    if let Some(ServerEntry { id, .. }) = entries.iter().find(|entry| reserved(&entry.id)) {
        return Err(UsageError(lang.choose(
            format!("`{id}` cannot be a server's name, as it means something else in a call's source: choose another"),
            format!("`{id}` 在调用的 source 中另有含义，不能用作服务器名：请换一个"),
        ))
        .into());
    }
    let paths = app.paths()?;
    // An invalid configuration must not be written to.
    let (servers, _) = load_servers(&paths, &Settings::read(&paths)?)?;
    let mut actions = Vec::new();
    for entry in &entries {
        let id = entry.id.as_str();
        let existed = servers.iter().any(|spec| spec.id.as_str() == id && spec.origin == paths.servers);
        add_server(&paths.servers, entry, args.replace)?;
        actions.push(if existed { "replaced" } else { "added" });
    }
    app.keep_trust(&paths, &[&paths.servers]);
    for (action, entry) in actions.iter().zip(&entries) {
        let change = if *action == "added" { ChangeKind::Created } else { ChangeKind::Updated };
        audit_change(app, &entry.id, change, action).await;
    }
    let added = || actions.iter().zip(entries.iter().map(|entry| entry.id.as_str()));
    if args.no_test || !app.screen.json {
        added().for_each(|(action, id)| report_change(app, action, id, &paths.servers));
    }
    if args.no_test {
        return Ok(Exit::Done);
    }
    let hub = app.hub().await?;
    let ids: Vec<String> = entries.iter().map(|entry| entry.id.clone()).collect();
    let tests = app.interruptible(test_all(app, hub, ids)).await?;
    let exit = exit_of(&tests);
    let catalog = hub.catalog();
    for (action, id) in added() {
        let own: Vec<_> = catalog.iter().filter(|entry| entry.tool.source.to_string() == id).collect();
        if !app.screen.json {
            show_tools(app, own.iter().map(|entry| entry.as_ref()));
            let replaced: Vec<&str> = own
                .iter()
                .map(|entry| entry.tool.name().as_str())
                .filter(|name| catalog.named(name).any(|entry| entry.tool.source == Source::Native))
                .collect();
            warn_of_replaced_tools(app, id, &replaced);
            continue;
        }
        let tools: Vec<RawObject> = own.iter().map(|entry| findings::described(entry, lang)).collect();
        let report = change(action, id, &paths.servers).with("tools", RawJson::of(&tools));
        let test = tests.iter().find(|test| test.id == id).map(|test| test.as_json());
        app.screen.json(&report.with("test", RawJson::of(&test)).into_raw());
    }
    for test in tests.iter().filter(|test| test.result.is_err()) {
        let id = &test.id;
        app.screen.warn(&lang.choose(
            format!("it stays in the config; try again with `toolhub servers test {0}`, change it with `toolhub servers add --replace {0} …`, or remove it with `toolhub servers remove {0}`", shell::shell_quote(id)),
            format!("配置已保留；可用 `toolhub servers test {0}` 再试，用 `toolhub servers add --replace {0} …` 修改，或用 `toolhub servers remove {0}` 移除", shell::shell_quote(id)),
        ));
    }
    Ok(exit)
}

/// Warns that calls by these names now reach the server before the built-in tools.
fn warn_of_replaced_tools(app: &App, id: &str, names: &[&str]) {
    let Some(first) = names.first() else { return };
    let displayed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    app.screen.warn(&app.lang().choose(
        format!("built-in tools have these names, too: {displayed}; calls by name use `{id}` first, `native__{first}` is the built-in one"),
        format!("内置工具也有这些名称：{displayed}；按名称调用时先用 `{id}`，内置工具可用 `native__{first}` 调用"),
    ));
}

/// The servers on standard input: `{"mcpServers": {…}}`, `{NAME: {…}}`, or one server if its name is given.
fn entries_from_stdin(app: &App, name: Option<&str>) -> anyhow::Result<Vec<ServerEntry>> {
    let lang = app.lang();
    let wrong = |why: String| {
        UsageError(lang.choose(
            format!("standard input contains no server: {why}; write {{\"command\": …}}, {{\"url\": …}} or {{\"mcpServers\": {{…}}}}"),
            format!("标准输入中没有服务器：{why}；请写 {{\"command\": …}}、{{\"url\": …}} 或 {{\"mcpServers\": {{…}}}}"),
        ))
    };
    let text = std::io::read_to_string(std::io::stdin())?;
    let object = RawJson::parse(text.trim().to_owned()).map_err(|error| wrong(error.to_string()))?;
    let members =
        object.object().ok_or_else(|| wrong(lang.choose("it is no object", "不是对象").to_owned()))?;
    let one = members.contains("command") || members.contains("url");
    let full = ["mcpServers", "servers"].iter().find_map(|key| members.get(key).and_then(RawJson::object));
    let servers = match (one, name, full) {
        (true, Some(name), _) => RawObject::default().with(name.to_owned(), members.into_raw()),
        (true, None, _) => {
            let why = lang.choose(
                "it has no name: `toolhub servers add NAME -`",
                "缺少名称：`toolhub servers add 名称 -`",
            );
            return Err(UsageError(why.to_owned()).into());
        }
        (false, _, Some(servers)) => servers,
        (false, _, None) => members,
    };
    let text = RawObject::default().with("mcpServers", servers.into_raw()).into_raw();
    let specs = parse_servers(Path::new("-"), text.get())?;
    match (specs.as_slice(), name) {
        ([], _) => Err(wrong(lang.choose("it is empty", "内容为空").to_owned()).into()),
        ([spec], Some(name)) => {
            Ok(vec![ServerEntry { id: name.to_owned(), transport: spec.transport.clone() }])
        }
        (_, Some(name)) => {
            let why = lang.choose(
                format!(
                    "it contains several servers, so leave out the name `{name}`: `toolhub servers add -`"
                ),
                format!("其中有多个服务器，请不要写名称 `{name}`：`toolhub servers add -`"),
            );
            Err(UsageError(why).into())
        }
        (_, None) => {
            let entry = |spec: &ServerSpec| ServerEntry {
                id: spec.id.as_str().to_owned(),
                transport: spec.transport.clone(),
            };
            Ok(specs.iter().map(entry).collect())
        }
    }
}

pub(crate) async fn remove(app: &App, args: ServerIdArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == args.id) else {
        return Err(unknown_server(app, hub, &args.id).into());
    };
    remove_server(&server.spec.origin, &args.id)?;
    app.keep_trust(hub.paths(), &[&server.spec.origin]);
    record_in(app, hub, &args.id, ChangeKind::Deleted, "removed").await;
    // A server without a login has nothing to revoke.
    let _ = hub.logout(&args.id).await;
    hub.forget_server(&args.id).await;
    report_change(app, "removed", &args.id, &server.spec.origin);
    Ok(Exit::Done)
}

/// Enables or disables a server in the file that configures it.
pub(crate) async fn enable(app: &App, id: &str, on: bool) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == id) else {
        return Err(unknown_server(app, hub, id).into());
    };
    let action = if on { "enabled" } else { "disabled" };
    let is_changed = set_enabled(&server.spec.origin, id, on)?;
    app.keep_trust(hub.paths(), &[&server.spec.origin]);
    if is_changed {
        record_in(app, hub, id, ChangeKind::Updated, action).await;
    }
    report_change(app, action, id, &server.spec.origin);
    if hub.settings().servers.iter().any(|extras| extras.id == id && extras.enabled == Some(!on)) {
        let file = hub.paths().config.display();
        app.screen.warn(&app.lang().choose(
            format!("`enabled` of `{id}` in `{file}` overrides this setting"),
            format!("`{file}` 中 `{id}` 的 `enabled` 与此相反，以它为准"),
        ));
    }
    Ok(Exit::Done)
}

/// Appends a change of a server by the local user to the audit log, if it is on. The change is already made: a failure is reported
/// and does not undo it.
pub(crate) async fn audit_change(app: &App, id: &str, change: ChangeKind, action: &str) {
    let is_on = || -> anyhow::Result<bool> {
        let paths = app.paths()?;
        let settings = Settings::read(&paths)?;
        Ok(settings.audit.options(&settings.auth, &paths).is_some())
    };
    match is_on() {
        Ok(false) => {}
        Ok(true) => match app.hub().await {
            Ok(hub) => record_in(app, hub, id, change, action).await,
            Err(error) => app.screen.warn(&error.localize(app.lang())),
        },
        Err(error) => app.screen.warn(&error.to_string()),
    }
}

/// Like [`audit_change`], with a hub that was built before the change.
async fn record_in(app: &App, hub: &Hub, id: &str, change: ChangeKind, action: &str) {
    if let Err(error) = hub.record_server_change(&Arc::from(LOCAL), id, change, action).await {
        app.screen.warn(&error.localize(app.lang()));
    }
}

fn change(action: &str, id: &str, file: &Path) -> RawObject {
    RawObject::default().with("id", id).with("action", action).with("file", file.display().to_string())
}

pub(crate) fn report_change(app: &App, action: &str, id: &str, file: &Path) {
    let displayed = file.display();
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
    app.screen.note(
        &app.lang().choose(format!("{en} `{id}` (`{displayed}`)"), format!("{zh} `{id}`（`{displayed}`）")),
    );
}

fn transport(app: &App, args: &AddArgs) -> Result<TransportSpec, UsageError> {
    let lang = app.lang();
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            let plain = url.starts_with("http://") || url.starts_with("https://");
            // A variable may contain the scheme.
            if !plain && !url.contains("${") {
                return Err(UsageError(lang.choose(
                    format!("`{url}` is no address: write it with `http://` or `https://` in front"),
                    format!("`{url}` 不是地址：请在前面写上 `http://` 或 `https://`"),
                )));
            }
            let spec = HttpSpec { url: url.clone(), headers: pairs(app, &args.header)? };
            Ok(if args.kind.as_deref() == Some("sse") { TransportSpec::Sse(spec) } else { TransportSpec::Http(spec) })
        }
        (None, Some(_)) if !args.header.is_empty() || args.kind.is_some() => Err(UsageError(lang.choose(
            "`--header` and `--type` are for servers with a `--url`".to_owned(),
            "`--header` 和 `--type` 只用于带 `--url` 的服务器".to_owned(),
        ))),
        (None, Some((command, rest))) => Ok(TransportSpec::Stdio(StdioSpec {
            command: rooted(command),
            args: rest.iter().map(|arg| if args.cwd.is_some() { arg.clone() } else { rooted_argument(app, arg) }).collect(),
            env: pairs(app, &args.env)?,
            cwd: args.cwd.clone().map(|folder| std::path::absolute(&folder).unwrap_or(folder)),
            ..StdioSpec::default()
        })),
        (None, None) => Err(UsageError(lang.choose(
            format!("say how to reach it: `toolhub servers add {0} -- COMMAND ARGS…` or `toolhub servers add {0} --url URL`", shell::shell_quote(&args.id)),
            format!("请说明如何连接：`toolhub servers add {0} -- 命令 参数…` 或 `toolhub servers add {0} --url 地址`", shell::shell_quote(&args.id)),
        ))),
    }
}

/// Makes a relative path of a program absolute, so that it does not depend on the working directory.
fn rooted(command: &str) -> String {
    let path = PathBuf::from(command);
    if path.components().count() < 2 || path.is_absolute() || !path.exists() {
        return command.to_owned();
    }
    std::path::absolute(&path).map_or_else(|_| command.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Makes an argument absolute if it is written as a path and exists. A bare word without an extension is kept: it may be a
/// subcommand of the program.
fn rooted_argument(app: &App, arg: &str) -> String {
    let path = Path::new(arg);
    let is_path = arg == "."
        || arg == ".."
        || path.components().count() > 1
        || arg.ends_with(std::path::MAIN_SEPARATOR)
        || (path.extension().is_some() && path.is_file());
    if arg.starts_with('-') || path.is_absolute() || !is_path || !path.exists() {
        return arg.to_owned();
    }
    // The canonical path, without `.` and `..` if it can be resolved.
    let Ok(full) = path.canonicalize().or_else(|_| std::path::absolute(path)) else { return arg.to_owned() };
    let Some(full) = full.to_str() else { return arg.to_owned() };
    app.screen.note(&app.lang().choose(
        format!("`{arg}` is kept as `{full}`, so that it is found from every folder"),
        format!("`{arg}` 保存为 `{full}`，以便在任何目录中都能找到"),
    ));
    full.to_owned()
}

fn pairs(app: &App, texts: &[String]) -> Result<Vec<(String, String)>, UsageError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').or_else(|| text.split_once(": ")).ok_or_else(|| {
            let lang = app.lang();
            UsageError(
                lang.choose(format!("`{text}` should be NAME=VALUE"), format!("`{text}` 应写成 NAME=VALUE")),
            )
        })?;
        Ok((name.trim().to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}
