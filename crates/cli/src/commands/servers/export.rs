//! `toolhub servers export`: writes the configured servers to the file of another MCP client.

use std::path::{Path, PathBuf};

use toolhub::settings::{ServerExtras, Settings, load_servers};
use toolhub_client_config as clients;
use toolhub_client_config::{
    Client, ClientEnvironment, ClientServer, EditError, Extras, FileScope, Format, LockedFile, ServerAction,
    ServerOutcome, StdioSpec, TargetFile, TransportSpec,
};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Localize as _, RawJson};
use toolhub_mcp_client::config::ServerSpec;

use crate::app::App;
use crate::args::ExportArgs;
use crate::commands::serve::known_profile;
use crate::commands::servers::transfer::{TransferReport, TransferRow, server_summary};
use crate::exit::{Exit, UsageError};

pub(crate) fn run(app: &App, args: &ExportArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let client = Client::named(&args.client).ok_or_else(|| UsageError(args.client.clone()))?;
    let file = target_file(app, client, args)?;
    let servers = if args.gateway { vec![gateway(app, args)?] } else { chosen(app, args)? };
    if servers.is_empty() {
        app.screen.warn(lang.choose("there are no servers to export", "没有可导出的服务器"));
    }
    let (servers, off): (Vec<ClientServer>, Vec<ClientServer>) = servers
        .into_iter()
        .map(|server| adapt_to_format(server, client.format(), !args.servers.is_empty()))
        .partition(|server| server.enabled || client.format().disables);
    let locked = LockedFile::open(&file)?;
    let format = client.format();
    let target = TargetFile { file: &file, text: locked.text(), format, replace: args.replace };
    let edited = match clients::merge_servers(&target, &servers) {
        Ok(edited) => edited,
        Err(EditError::Config(error)) => return Err(error.into()),
        Err(EditError::Unsafe { why, snippet }) => {
            let text = lang.choose(
                format!("{}; put this into it yourself, with your values for `<…>`:", why.localize(lang)),
                format!("{}；请自行写入以下内容，并填入 `<…>` 的值：", why.localize(lang)),
            );
            if app.screen.json {
                let report =
                    TransferReport { client, file, rows: Vec::new(), dry_run: true, error: Some(text) };
                app.screen.json(&report.as_json(lang).with("snippet", &*snippet).into_raw());
            } else {
                app.screen.error(&text);
                app.screen.verbatim(&snippet);
            }
            return Ok(Exit::Usage);
        }
    };
    if !args.dry_run {
        locked.write(&edited.text)?;
    }
    let row = |(outcome, server): (ServerOutcome, &ClientServer)| TransferRow {
        outcome,
        summary: server_summary(server, lang),
        file: file.clone(),
        settings: Vec::new(),
    };
    let mut rows: Vec<TransferRow> = edited.outcomes.into_iter().zip(&servers).map(row).collect();
    rows.extend(off.iter().map(|server| row((disabled_outcome(server, client), server))));
    let report = TransferReport { client, file: file.clone(), rows, dry_run: args.dry_run, error: None };
    show_report(app, &report);
    Ok(report.exit())
}

fn show_report(app: &App, report: &TransferReport) {
    let lang = app.lang();
    if app.screen.json {
        app.screen.json(&RawJson::from(report.as_json(lang)));
        return;
    }
    report.show(app);
    let (written, file, title) = (report.written(), report.file.display(), report.client.title());
    app.screen.note(&match written {
        0 => lang.choose("nothing was written".to_owned(), "未写入".to_owned()),
        _ if report.dry_run => lang.choose(
            format!("nothing was written; without `--dry-run`, {written} would go to `{file}`"),
            format!("未写入；去掉 `--dry-run` 会将 {written} 个写入 `{file}`"),
        ),
        _ => lang.choose(
            format!("{written} written to `{file}`; restart {title} if it is running"),
            format!("已将 {written} 个写入 `{file}`；若 {title} 正在运行，请重启"),
        ),
    });
}

fn target_file(app: &App, client: Client, args: &ExportArgs) -> Result<PathBuf, UsageError> {
    if let Some(file) = &args.file {
        return Ok(file.clone());
    }
    let locations = clients::config_locations(client, &ClientEnvironment::current());
    let user = locations.into_iter().find(|location| location.scope == FileScope::User);
    user.map(|location| location.file).ok_or_else(|| {
        UsageError(app.lang().choose(
            "your home folder is not known: set `HOME`, or give `--file`".to_owned(),
            "不知道你的主目录：请设置 `HOME`，或给出 `--file`".to_owned(),
        ))
    })
}

/// The selected servers as entries for clients.
fn chosen(app: &App, args: &ExportArgs) -> anyhow::Result<Vec<ClientServer>> {
    let paths = app.paths()?;
    let settings = Settings::read(&paths)?;
    let (servers, _) = load_servers(&paths, &settings)?;
    for requested in &args.servers {
        if !servers.iter().any(|spec| spec.id.as_str() == requested) {
            let suggestion =
                toolhub_engine::similar_names(requested, servers.iter().map(|spec| spec.id.as_str()), 1);
            let (en, zh) = match suggestion.first() {
                Some(suggestion) => {
                    (format!("; did you mean `{suggestion}`?"), format!("；是否想用 `{suggestion}`？"))
                }
                None => (
                    "; `toolhub servers list` shows what there is".to_owned(),
                    "；`toolhub servers list` 列出现有服务器".to_owned(),
                ),
            };
            let lang = app.lang();
            return Err(UsageError(lang.choose(
                format!("there is no server `{requested}`{en}"),
                format!("没有服务器 `{requested}`{zh}"),
            ))
            .into());
        }
    }
    let requested = |spec: &&ServerSpec| {
        args.servers.is_empty() || args.servers.iter().any(|requested| requested == spec.id.as_str())
    };
    let extras = |spec: &ServerSpec| settings.servers.iter().find(|extras| extras.id == spec.id.as_str());
    Ok(servers.iter().filter(requested).map(|spec| to_client_server(spec, extras(spec))).collect())
}

/// Toolhub itself as a server entry, with the current options.
fn gateway(app: &App, args: &ExportArgs) -> anyhow::Result<ClientServer> {
    let paths = app.paths()?;
    let settings = Settings::read(&paths)?;
    if let Some(profile) = &args.profile {
        known_profile(app, &settings, profile)?;
    }
    // A config named with `--config` is used without trust checks, so that later changes of a project's file would take effect
    // unnoticed.
    if app.global.config.is_none() && paths.workspace.is_bound_config() {
        return Err(UsageError(app.lang().choose(
            "the config in use is this project's: add `--config toolhub.toml` to export it, and later changes of it will be used without a question".to_owned(),
            "正在使用的是此项目的配置：如要导出，请加上 `--config toolhub.toml`，之后对它的改动会直接生效而不再询问".to_owned(),
        ))
        .into());
    }
    let config = paths.config.is_file().then_some(paths.config.as_path());
    Ok(hub_entry(app, config, args.profile.as_deref())?)
}

/// `toolhub serve --stdio` as an entry, with this config: the client starts it in a different folder, where another config might
/// be found.
pub(crate) fn hub_entry(
    app: &App,
    config: Option<&Path>,
    profile: Option<&str>,
) -> std::io::Result<ClientServer> {
    let mut arguments = Vec::new();
    for (option, path) in [("--config", config), ("--home", app.global.home.as_deref())] {
        if let Some(path) = path {
            arguments.extend([option.to_owned(), std::path::absolute(path)?.display().to_string()]);
        }
    }
    arguments.extend(["serve".to_owned(), "--stdio".to_owned()]);
    if let Some(profile) = profile {
        arguments.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    let command = toolhub::program_path()?.display().to_string();
    Ok(ClientServer {
        id: "toolhub".to_owned(),
        transport: TransportSpec::Stdio(StdioSpec { command, args: arguments, ..StdioSpec::default() }),
        enabled: true,
        extras: Extras::default(),
        left_out: Vec::new(),
        notes: Vec::new(),
    })
}

fn to_client_server(spec: &ServerSpec, extras: Option<&ServerExtras>) -> ClientServer {
    let mut left_out = Vec::new();
    if !spec.hints.is_empty() {
        left_out.push("hints".to_owned());
    }
    if extras.is_some_and(|extras| extras.idle_timeout.is_some()) {
        left_out.push("idle_timeout".to_owned());
    }
    if spec.era.is_some() {
        left_out.push("era".to_owned());
    }
    if !spec.tags.is_empty() {
        left_out.push("tags".to_owned());
    }
    if matches!(&spec.transport, TransportSpec::Stdio(stdio) if stdio.process_sandbox.is_some()) {
        left_out.push("sandbox".to_owned());
    }
    ClientServer {
        id: spec.id.as_str().to_owned(),
        transport: spec.transport.clone(),
        enabled: spec.enabled,
        extras: Extras {
            connect_timeout: extras.and_then(|extras| extras.connect_timeout).map(|span| span.0),
            call_timeout: spec.call_timeout,
            tools: spec.tools.clone(),
            oauth: spec.oauth.clone(),
        },
        left_out,
        notes: Vec::new(),
    }
}

/// A disabled server stays disabled. If the format cannot express that and the server was named, it is written as enabled.
fn adapt_to_format(mut server: ClientServer, format: Format, named: bool) -> ClientServer {
    if !server.enabled && !format.disables && named {
        server.enabled = true;
        server.left_out.push("disabled".to_owned());
    }
    server
}

fn disabled_outcome(server: &ClientServer, client: Client) -> ServerOutcome {
    let title = client.title();
    let why = LocalizedText::new(
        format!("it is disabled, which {title}'s file cannot say: name it to export it even so"),
        format!("它已停用，而 {title} 的文件无法表示：指定其名称即可照样导出"),
    );
    ServerOutcome::not_written(&server.id, ServerAction::Skipped, why)
}
