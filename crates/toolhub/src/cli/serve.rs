//! `toolhub serve`: the hub as an MCP server, over HTTP or over stdin and stdout.

use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolhub::{Gateways, Hub, Lang, Say as _, Tidings};
use toolhub_mcp::gateway::{Duplex, Principal, secret};
use toolhub_server::{ServeError, Serving, hash_of};

use super::app::{App, stop_signal};
use super::exit::{Exit, UsageError};
use super::options_serve::ServeArgs;
use super::screen::{BOLD, DIM, NAME, Screen};
use super::trace::Trace;

/// How long streams may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);
/// The longest message that a client may send over stdin.
const LONGEST: u64 = 4 << 20;
/// Messages that may wait.
const WAITING: usize = 256;

pub(crate) async fn run(app: &App, args: ServeArgs) -> anyhow::Result<Exit> {
    if let Some(name) = &args.new_token {
        return new_token(app, name);
    }
    let tidings = Tidings::default();
    let mut builder = Hub::builder().places(app.places()?).handler(Arc::new(tidings.clone()));
    if app.global.trace || app.global.verbose > 0 {
        builder = builder.listen(Arc::new(Trace::new(Arc::clone(&app.screen), app.global.trace)));
    }
    let hub = Arc::new(builder.build().await?);
    for note in hub.notes() {
        app.screen.warn(&note.say(app.lang()));
    }
    let mut gateways = Gateways::new(Arc::clone(&hub), tidings, app.lang());
    if let Some(profile) = &args.profile
        && gateways.profile(Some(profile)).is_none()
    {
        let known = gateways.names().collect::<Vec<_>>().join(", ");
        let lang = app.lang();
        return Err(UsageError(lang.pick(
            format!("there is no profile `{profile}`; there are: {known}"),
            format!("没有配置档 `{profile}`；现有：{known}"),
        ))
        .into());
    }
    if let Some(profile) = &args.profile {
        gateways = gateways.by_default(profile);
    }
    let gateways = Arc::new(gateways);
    let following = Arc::clone(&gateways);
    let mut beside = tokio::task::JoinSet::new();
    beside.spawn(async move { following.follow().await });
    beside.spawn(tell_troubles(Arc::clone(&hub), Arc::clone(&app.screen), app.lang()));
    let ended = match args.stdio {
        true => stdio(&gateways).await,
        false => http(app, &gateways, &args).await,
    };
    beside.shutdown().await;
    // What could not be answered in time must not keep its server, and so the program, any longer.
    gateways.give_up();
    gateways.close(FAREWELL).await;
    hub.shutdown().await;
    ended
}

/// Says once what is wrong with a server, as it becomes known.
async fn tell_troubles(hub: Arc<Hub>, screen: Arc<Screen>, lang: Lang) {
    let (mut news, mut told) = (hub.news_of_servers(), HashMap::new());
    // What an earlier run met is told when it is met again.
    for view in hub.servers() {
        told.insert(view.spec.id.clone(), view.list.and_then(|list| list.failure).map(|(at, _)| at));
    }
    while news.changed().await.is_ok() {
        for view in hub.servers().into_iter().filter(|view| view.spec.enabled) {
            let failure = view.list.and_then(|list| list.failure);
            let at = failure.as_ref().map(|(at, _)| *at);
            let before = told.insert(view.spec.id.clone(), at).flatten();
            if let Some((_, why)) = failure.filter(|_| at != before) {
                let (id, why) = (view.spec.id, why.say(lang));
                screen.warn(&lang.pick(format!("server `{id}`: {why}"), format!("服务器 `{id}`：{why}")));
            }
        }
    }
}

async fn http(app: &App, gateways: &Arc<Gateways>, args: &ServeArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let settings = gateways.hub().settings();
    let options = settings.serve.options(&settings.auth, args.bind);
    let serving = match Serving::bind(Arc::clone(gateways) as _, options).await {
        Ok(serving) => serving,
        Err(error @ ServeError::OpenDoor(_)) => return Err(UsageError(error.say(lang)).into()),
        Err(error) => anyhow::bail!(error.say(lang)),
    };
    let address = serving.address()?;
    if app.screen.json {
        let shown = toolhub_core::RawObject::default()
            .with("mcp", format!("http://{address}/mcp"))
            .with("sse", format!("http://{address}/sse"));
        app.screen.json(&shown.into_raw());
    } else {
        let tools = gateways.tools();
        let head = lang.pick(
            format!("serving {tools} tools to MCP clients at"),
            format!("正在向 MCP 客户端提供 {tools} 个工具："),
        );
        app.screen.to_stderr(&format!("{BOLD}toolhub{BOLD:#} {head} {NAME}http://{address}/mcp{NAME:#}"));
        let hint = lang.pick("Ctrl-C ends it", "按 Ctrl-C 结束");
        app.screen.to_stderr(&format!("{DIM}{hint}{DIM:#}"));
    }
    let stop = CancellationToken::new();
    let closing = Arc::clone(gateways);
    let run = serving.run(stop.clone(), async move { closing.close(FAREWELL).await });
    tokio::pin!(run);
    tokio::select! {
        ended = &mut run => ended.map_err(|error| anyhow::anyhow!(error.say(lang)))?,
        () = stop_signal() => {
            app.screen.warn(lang.pick("finishing what runs", "正在完成未结束的请求"));
            stop.cancel();
            tokio::select! {
                ended = &mut run => ended.map_err(|error| anyhow::anyhow!(error.say(lang)))?,
                // A second time: at once.
                () = stop_signal() => {}
            }
        }
    }
    Ok(Exit::Done)
}

/// One client over stdin and stdout. Threads of their own read and write: neither can be waited for otherwise without a
/// thread being borrowed for each line.
async fn stdio(gateways: &Arc<Gateways>) -> anyhow::Result<Exit> {
    let gateway = gateways.profile(None).context("the profile is gone")?;
    let (duplex, mut messages) = Duplex::open(&gateway, Principal::new("stdio"));
    let (lines, mut heard) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read_lines(&lines))?;
    let (said, mut to_say) = mpsc::channel::<String>(WAITING);
    let writer = std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        let mut out = std::io::stdout().lock();
        while let Some(text) = to_say.blocking_recv() {
            let mut written = writeln!(out, "{text}");
            while let Ok(text) = to_say.try_recv() {
                written = written.and_then(|()| writeln!(out, "{text}"));
            }
            if written.and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    })?;
    let talking = async {
        while let Some(line) = heard.recv().await {
            duplex.receive(&line).await;
        }
        // The client is done; what it asked for is still answered.
        let _ = tokio::time::timeout(FAREWELL, duplex.drain()).await;
    };
    let saying = async {
        while let Some(text) = messages.recv().await {
            if said.send(text).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = talking => {}
        () = saying => {}
        () = stop_signal() => {}
    }
    while let Ok(text) = messages.try_recv() {
        let _ = said.send(text).await;
    }
    drop((said, duplex));
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(Exit::Done)
}

fn read_lines(lines: &mpsc::Sender<String>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match (&mut input).take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // What is too long is cut, and refused as what it then is.
        if line.last() != Some(&b'\n') && line.len() as u64 >= LONGEST && !skip_line(&mut input) {
            return;
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() && lines.blocking_send(text).is_err() {
            return;
        }
    }
}

/// Reads on to the end of a line; whether there is more after it.
fn skip_line(input: &mut std::io::StdinLock<'_>) -> bool {
    loop {
        let (used, found) = match input.fill_buf() {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(used);
        if found {
            return true;
        }
    }
}

/// Makes a token: it is shown once, and kept as its hash alone.
fn new_token(app: &App, name: &str) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let secret = secret().zip(secret()).map(|(one, other)| format!("th_{one}{other}"));
    let token = secret.context("the system has no random numbers to give")?;
    let hash = hash_of(&token);
    if app.screen.json {
        let shown = toolhub_core::RawObject::default()
            .with("name", name)
            .with("token", token.as_str())
            .with("sha256", hash.as_str());
        app.screen.json(&shown.into_raw());
        return Ok(Exit::Done);
    }
    app.screen.line(&token);
    app.screen.to_stderr(&lang.pick(
        format!("Give this token to `{name}`; it is not shown again. Put its hash into toolhub.toml:\n"),
        format!("请把此令牌交给 `{name}`；它不会再次显示。请把它的哈希写入 toolhub.toml：\n"),
    ));
    let name = toolhub_core::RawJson::from(name);
    app.screen.to_stderr(&format!("[[auth.tokens]]\nname = {name}\nsha256 = \"{hash}\""));
    Ok(Exit::Done)
}
