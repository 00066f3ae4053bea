//! `toolhub serve`: the hub as an MCP server, over HTTP or over stdin and stdout.

pub(crate) mod check;
pub(crate) mod console_link;
pub(crate) mod event_sinks;
#[cfg(unix)]
pub(crate) mod relay;
pub(crate) mod reload;
pub(crate) mod stdio;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use toolhub::keys::KeyError;
use toolhub::settings::{DEFAULT_PROFILE, Paths, Settings, folder_note};
use toolhub::{Gateways, Hub, Lang, Localize as _, NotificationBus};
use toolhub_console::{Console, PublishedAddress};
use toolhub_engine::similar_names;
use toolhub_mcp_gateway::random_token;
use toolhub_openai_api::OpenAiApi;
use toolhub_server::{HubServer, PendingConnections, ServeError, ServeOptions, hash_of};

use crate::app::{App, StopSignal, script_hosted};
use crate::args::serve::ServeArgs;
use crate::commands::serve::event_sinks::EventSinks;
use crate::commands::serve::reload::{ConfigWatcher, ReloadScope};
use crate::commands::serve::stdio::serve_stdio;
use crate::exit::{Exit, UsageError};
use crate::render::plural::plural;
use crate::render::screen::{BOLD, DIM, NAME, Screen};
use crate::render::trace::TracePrinter;

/// Grace period for closing streams.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a replica that ends still answers with 503: a load balancer that checks once per second has noticed it by then.
const NOTICE_TIME: Duration = Duration::from_secs(3);

pub(crate) async fn run(app: &App, args: ServeArgs) -> anyhow::Result<Exit> {
    if let Some(name) = &args.new_token {
        return new_token(app, name);
    }
    let notifications = NotificationBus::default();
    let paths = app.paths()?;
    let settings = read_settings(app, &args, &paths)?;
    if args.check {
        return Ok(check::run(app, settings.serve.address(args.bind)).await);
    }
    let sinks = open_sinks(app, &settings, &paths)?;
    let mut builder = script_hosted(Hub::builder())
        .paths(paths)
        .settings(settings)
        .handler(Arc::new(notifications.clone()))
        .join_cluster();
    if args.stdio {
        builder = builder.single_client();
    }
    if args.no_servers {
        builder = builder.without_servers();
    }
    for listener in sinks.call_sinks() {
        builder = builder.listen(Arc::clone(listener));
    }
    let hub = Arc::new(builder.build().await?);
    let servers = hub.servers();
    let folder = folder_note(servers.iter().map(|view| &view.spec), hub.paths());
    for note in hub.notes().iter().chain(&folder).chain(&hub.unknown_names_in_rules()) {
        app.screen.warn(&note.localize(app.lang()));
    }
    let gateways = Gateways::new(Arc::clone(&hub), notifications, app.lang());
    let mut gateways = gateways.map_err(|error| UsageError(error.localize(app.lang())))?;
    if let Some(profile) = &args.profile {
        known_profile(app, hub.settings(), profile)?;
    }
    if let Some(profile) = &args.profile {
        gateways = gateways.with_default_profile(profile);
    }
    let gateways = Arc::new(gateways);
    let following = Arc::clone(&gateways);
    // Before servers are started: until then, a signal kills this process but not its servers.
    let mut stopped = StopSignal::register();
    let mut background_tasks = tokio::task::JoinSet::new();
    background_tasks.spawn(async move { following.follow().await });
    let scope = if args.no_servers { ReloadScope::Access } else { ReloadScope::All };
    background_tasks.spawn(ConfigWatcher::new(app, scope).follow(Arc::clone(&gateways)));
    background_tasks.spawn(report_problems(Arc::clone(&hub), Arc::clone(&app.screen), app.lang()));
    // Background work of requests may continue until the hub has shut down.
    let ended = match args.stdio {
        true => serve_stdio(&gateways, &sinks, &mut stopped).await.map(|exit| (exit, None)),
        false => {
            http(app, &gateways, &args, &sinks, &mut stopped).await.map(|unfinished| (Exit::Done, unfinished))
        }
    };
    background_tasks.shutdown().await;
    // Requests that exceed the grace period must not keep their servers, and so the process, running.
    gateways.abort_all();
    gateways.close(CLOSE_TIMEOUT).await;
    if let aborted_requests @ 1.. = gateways.aborted_requests() {
        app.screen.warn(&app.lang().choose(
            format!("requests that were not done in time and were cut off: {aborted_requests}"),
            format!("未能及时完成而被中断的请求：{aborted_requests} 个"),
        ));
    }
    hub.close().await;
    sinks.close().await;
    ended.map(|(exit, _)| exit)
}

/// Reads the settings. Over HTTP, access rules or tokens that are configured and would not be used are an error: without them, the
/// gateway would be open.
fn read_settings(app: &App, args: &ServeArgs, paths: &Paths) -> anyhow::Result<Settings> {
    let needs_access_rules = !args.stdio && app.global.config.is_none();
    if needs_access_rules && let Some(why) = paths.workspace.unused_access_rules() {
        return Err(UsageError(why.localize(app.lang())).into());
    }
    let settings = Settings::read(paths)?;
    if needs_access_rules && let Some(why) = paths.dropped_tokens(&settings) {
        return Err(UsageError(why.localize(app.lang())).into());
    }
    Ok(settings)
}

/// Opens the receivers of events: the trace on the terminal, the access log and the telemetry.
fn open_sinks(app: &App, settings: &Settings, paths: &Paths) -> anyhow::Result<EventSinks> {
    let mut sinks = EventSinks::default();
    if app.global.trace || app.global.verbose > 0 {
        sinks.listen(Arc::new(TracePrinter::new(Arc::clone(&app.screen), app.global.trace)));
    }
    sinks.open_log(app, settings.serve.access_log(&paths.config))?;
    let traces = settings.telemetry.options(|name| std::env::var(name).ok());
    sinks.open_telemetry(app, traces.map_err(|why| UsageError(why.localize(app.lang())))?);
    Ok(sinks)
}

/// Returns an error for a profile that is not configured.
pub(crate) fn known_profile(app: &App, settings: &Settings, profile: &str) -> Result<(), UsageError> {
    let mut names: Vec<&str> = settings.profiles.keys().map(String::as_str).collect();
    if !names.contains(&DEFAULT_PROFILE) {
        names.insert(0, DEFAULT_PROFILE);
    }
    if names.contains(&profile) {
        return Ok(());
    }
    let (en, zh) = match similar_names(profile, names.iter().copied(), 1).first() {
        Some(suggestion) => (format!("did you mean `{suggestion}`?"), format!("是否想用 `{suggestion}`？")),
        None => (format!("there are: {}", names.join(", ")), format!("现有：{}", names.join(", "))),
    };
    Err(UsageError(
        app.lang().choose(
            format!("there is no profile `{profile}`; {en}"),
            format!("没有配置方案 `{profile}`；{zh}"),
        ),
    ))
}

/// The number of stderr lines of a failed server that are shown.
const STDERR_TAIL_LINES: usize = 3;

/// Prints problems of servers and profiles once, when they are detected.
async fn report_problems(hub: Arc<Hub>, screen: Arc<Screen>, lang: Lang) {
    let (mut updates, mut reported) = (hub.server_updates(), HashMap::new());
    let mut report_profile_problems = {
        let mut reported = HashSet::new();
        move |hub: &Hub, screen: &Screen| {
            for problem in hub.profile_problems().into_iter().map(|problem| problem.localize(lang)) {
                if reported.insert(problem.clone()) {
                    screen.warn(&problem);
                }
            }
        }
    };
    report_profile_problems(&hub, &screen);
    // Failures of an earlier run are reported only if they occur again.
    for view in hub.servers() {
        reported.insert(view.spec.id.clone(), view.list.and_then(|list| list.failure).map(|(at, _)| at));
    }
    while updates.changed().await.is_ok() {
        report_profile_problems(&hub, &screen);
        for view in hub.servers().into_iter().filter(|view| view.spec.enabled) {
            let failure = view.list.and_then(|list| list.failure);
            let at = failure.as_ref().map(|(at, _)| *at);
            let before = reported.insert(view.spec.id.clone(), at).flatten();
            if let Some((_, why)) = failure.filter(|_| at != before) {
                let (id, why) = (view.spec.id, why.localize(lang));
                let mut text = lang.choose(format!("server `{id}`: {why}"), format!("服务器 `{id}`：{why}"));
                // For the operator of the gateway; clients do not see the stderr of servers.
                for line in view.stderr.iter().rev().take(STDERR_TAIL_LINES).rev() {
                    text += "\n  ";
                    text += line;
                }
                screen.warn(&text);
            }
        }
    }
}

async fn http(
    app: &App,
    gateways: &Arc<Gateways>,
    args: &ServeArgs,
    sinks: &EventSinks,
    stopped: &mut StopSignal,
) -> anyhow::Result<Option<PendingConnections>> {
    let lang = app.lang();
    let settings = gateways.hub().settings();
    let options = settings.serve.options(Arc::clone(gateways.access()) as _, args.bind);
    let drain = options.drain;
    let serving = sinks.attach_to(bind(gateways, options, lang).await?);
    let address = serving.address()?;
    let console = Arc::new(Console::new(Arc::clone(gateways), lang));
    let serving = serving.with_web_app(Arc::clone(&console) as _);
    let openai = settings.openai.is_enabled().then(|| Arc::new(OpenAiApi::new(Arc::clone(gateways))));
    let serving = match &openai {
        Some(api) => serving.with_api(Arc::clone(api) as _),
        None => serving,
    };
    let serving = match gateways.hub().is_in_cluster() {
        true => serving.with_notice(NOTICE_TIME),
        false => serving,
    };
    let _published = publish(app, gateways.hub(), address);
    let mut app_tasks = tokio::task::JoinSet::new();
    let following = Arc::clone(&console);
    app_tasks.spawn(async move { following.follow().await });
    if let Some(api) = openai {
        app_tasks.spawn(async move { api.work().await });
    }
    let stop = CancellationToken::new();
    let mut replica_requests = tokio::task::JoinSet::new();
    let (serving_replicas, replicas_stop) = (Arc::clone(gateways), CancellationToken::new());
    let until = replicas_stop.clone();
    replica_requests.spawn(async move { serving_replicas.serve_replicas(until).await });
    // Before the address is printed: from then on commands may be run.
    #[cfg(unix)]
    let mut relay = relay::start(app, gateways, &stop, drain).await;
    announce(app, address, gateways.tools());
    if let Some(link) = args.console_link {
        console_link::present(app, address, link, Some(gateways.hub().as_ref())).await?;
    }
    let closing = Arc::clone(gateways);
    let run = serving.run(stop.clone(), async move {
        console.close();
        closing.close(CLOSE_TIMEOUT).await;
    });
    tokio::pin!(run);
    let unfinished = tokio::select! {
        ended = &mut run => Some(ended),
        () = stopped.recv() => {
            app.screen.note(lang.choose(
                "finishing requests in progress; Ctrl-C again ends it at once",
                "正在完成未结束的请求；再按一次 Ctrl-C 立即结束",
            ));
            stop.cancel();
            tokio::select! {
                ended = async {
                    #[cfg(unix)]
                    let (ended, _) = tokio::join!(&mut run, relay.join_next());
                    #[cfg(not(unix))]
                    let ended = (&mut run).await;
                    // Last, since other replicas continue the sessions of this one only once it has ended.
                    replicas_stop.cancel();
                    finish_replica_requests(gateways, &mut replica_requests, drain).await;
                    ended
                } => Some(ended),
                // A second signal stops immediately.
                () = stopped.recv() => None,
            }
        }
    };
    // Requests that are still waiting receive an error.
    gateways.abort_all();
    let unfinished = unfinished.transpose().map_err(|error| anyhow::anyhow!(error.localize(lang)))?;
    if let Some(unfinished) = &unfinished {
        unfinished.wait(CLOSE_TIMEOUT).await;
    }
    Ok(unfinished)
}

/// Binds the address of the gateway. Without tokens where they are required, the configuration is at fault.
async fn bind(gateways: &Arc<Gateways>, options: ServeOptions, lang: Lang) -> anyhow::Result<HubServer> {
    match HubServer::bind(Arc::clone(gateways) as _, options).await {
        Ok(serving) => Ok(serving),
        Err(error @ ServeError::TokenRequired(_)) => Err(UsageError(error.localize(lang)).into()),
        Err(error) => anyhow::bail!(error.localize(lang)),
    }
}

/// Writes the address for `toolhub console`, until the result is dropped.
fn publish(app: &App, hub: &Hub, address: SocketAddr) -> Option<PublishedAddress> {
    let published = PublishedAddress::publish(&hub.paths().data_dir, address);
    if let Err(error) = &published {
        app.screen.warn(&app.lang().choose(
            format!("`toolhub console` will not find this hub: {error}"),
            format!("`toolhub console` 将找不到此 hub：{error}"),
        ));
    }
    published.ok()
}

/// Prints the address of the gateway.
fn announce(app: &App, address: SocketAddr, tools: usize) {
    let lang = app.lang();
    if app.screen.json {
        let json = toolhub_core::RawObject::default()
            .with("mcp", format!("http://{address}/mcp"))
            .with("sse", format!("http://{address}/sse"));
        app.screen.json(&json.into_raw());
    } else {
        let head = lang.choose(
            format!("serving {} to MCP clients at ", plural(tools, "tool")),
            format!("正在向 MCP 客户端提供 {tools} 个工具："),
        );
        app.screen.to_stderr(&format!("{BOLD}toolhub{BOLD:#} {head}{NAME}http://{address}/mcp{NAME:#}"));
        if address.ip().is_unspecified() {
            let everywhere = lang.choose(
                "from other machines: by this machine's name or address, with a token",
                "从其他机器访问：使用本机的名称或地址，并带上令牌",
            );
            app.screen.to_stderr(&format!("{DIM}{everywhere}{DIM:#}"));
        }
        let hint = lang.choose(
            "`toolhub console` opens the console; Ctrl-C ends it",
            "`toolhub console` 打开控制台；按 Ctrl-C 结束",
        );
        app.screen.to_stderr(&format!("{DIM}{hint}{DIM:#}"));
    }
}

/// Finishes the requests of other replicas that have begun, within the drain time. Their streams end.
async fn finish_replica_requests(
    gateways: &Gateways,
    serving: &mut tokio::task::JoinSet<()>,
    drain: Duration,
) {
    let finished = async { tokio::join!(gateways.close(CLOSE_TIMEOUT), serving.join_next()) };
    let _ = tokio::time::timeout(drain, finished).await;
}

/// Creates a token: it is printed once, and only its hash is stored.
fn new_token(app: &App, name: &str) -> anyhow::Result<Exit> {
    let lang = app.lang();
    if name.trim().is_empty() {
        let why = lang
            .choose("a token needs a name, of the person or program that uses it", "令牌需要使用者的名称");
        return Err(UsageError(why.to_owned()).into());
    }
    let paths = app.paths()?;
    if let Some(at) = Settings::read(&paths)?.auth.revoked_at(name) {
        return Err(UsageError(KeyError::Revoked(at.to_owned()).text(name).localize(lang)).into());
    }
    let config = paths.config.display();
    let secret = random_token().zip(random_token()).map(|(one, other)| format!("th_{one}{other}"));
    let token = secret.context("the system has no random numbers to give")?;
    let hash = hash_of(&token);
    if app.screen.json {
        let json = toolhub_core::RawObject::default()
            .with("name", name)
            .with("token", token.as_str())
            .with("sha256", hash.as_str());
        app.screen.json(&json.into_raw());
        return Ok(Exit::Done);
    }
    app.screen.line(&token);
    app.screen.to_stderr(&lang.choose(
        format!("Give this token to `{name}`; it is not shown again. Put its hash into `{config}`:"),
        format!("请把此令牌交给 `{name}`；它不会再次显示。请把它的哈希写入 `{config}`："),
    ));
    let name = toolhub_core::RawJson::from(name);
    for line in ["", "[[auth.tokens]]", &format!("name = {name}"), &format!("sha256 = \"{hash}\"")] {
        app.screen.to_stderr(line);
    }
    Ok(Exit::Done)
}
