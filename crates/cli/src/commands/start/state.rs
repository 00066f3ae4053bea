//! `toolhub` without a command if a configuration exists: servers, tools, skills, the last calls and running hubs, only from the
//! configuration and the cache. Starts no program and connects to no server.

use toolhub::{Hub, ServerView};
use toolhub_core::call_log::{CallQuery, CallRecord};
use toolhub_core::shell;
use toolhub_core::{Localize as _, RawJson, RawObject, Source};

use crate::app::App;
use crate::commands::history;
use crate::commands::init::record::InitRecord;
use crate::commands::servers::report::ServerReport;
use crate::commands::skills;
use crate::exit::Exit;
use crate::render::plural::plural;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, Overflow, row_lines, table_lines};

/// The number of recent calls that are shown.
const LAST_CALLS: usize = 3;
/// The maximum number of servers that are shown.
const MAX_SERVERS: usize = 12;
/// The maximum number of suggested next steps.
const MAX_SUGGESTED_STEPS: usize = 3;

/// The displayed state.
struct HubOverview {
    servers: Vec<ServerView>,
    native: usize,
    of_skills: usize,
    of_servers: usize,
    skills: usize,
    waiting_skills: usize,
    calls: Vec<CallRecord>,
    running: usize,
    /// Whether `toolhub init` has connected clients.
    is_set_up: bool,
}

impl HubOverview {
    async fn of(hub: &Hub) -> Self {
        let catalog = hub.catalog();
        let count =
            |fits: &dyn Fn(&Source) -> bool| catalog.iter().filter(|entry| fits(&entry.tool.source)).count();
        let snapshot = hub.skills();
        let waiting = snapshot.skills.iter().filter(|known| skills::state(known) == "waiting").count();
        // `toolhub doctor` reports an unreadable store; the rest is shown without it.
        let calls = hub.calls(CallQuery { limit: Some(LAST_CALLS), ..CallQuery::default() }).await;
        Self {
            servers: hub.servers(),
            native: count(&|source| matches!(source, Source::Native)),
            of_skills: count(&|source| matches!(source, Source::Skill)),
            of_servers: count(&|source| matches!(source, Source::Server(_))),
            skills: snapshot.skills.len(),
            waiting_skills: waiting,
            calls: calls.unwrap_or_default(),
            running: running_hubs(hub).await,
            is_set_up: InitRecord::path(&hub.paths().data_dir).is_file(),
        }
    }

    fn tools(&self) -> usize {
        self.native + self.of_skills + self.of_servers
    }

    /// Suggested next steps, the most useful one first.
    fn next(&self, app: &App) -> Vec<String> {
        let lang = app.lang();
        let step = |en: String, zh: String| lang.choose(en, zh);
        let enabled = || self.servers.iter().filter(|server| server.spec.enabled);
        let first = |state: &str| {
            enabled().find(|server| server.state_name() == state).map(|server| server.spec.id.clone())
        };
        let failed = first("failed").or_else(|| first("circuit_open")).or_else(|| first("slow"));
        let mut next = Vec::new();
        if self.servers.is_empty() {
            next.push(step(
                "import the servers of your MCP clients: toolhub init".to_owned(),
                "导入 MCP 客户端的服务器：toolhub init".to_owned(),
            ));
            next.push(step(
                "add a server: toolhub servers add NAME -- COMMAND".to_owned(),
                "添加服务器：toolhub servers add 名称 -- 命令".to_owned(),
            ));
        }
        if let Some(id) = failed {
            next.push(step(
                format!("see why `{id}` fails: toolhub servers test {}", shell::shell_quote(id.as_str())),
                format!("查看 `{id}` 失败的原因：toolhub servers test {}", shell::shell_quote(id.as_str())),
            ));
        }
        if first("new").is_some() {
            next.push(step(
                "start the new servers and list their tools: toolhub servers test".to_owned(),
                "启动新的服务器并列出其工具：toolhub servers test".to_owned(),
            ));
        }
        if self.waiting_skills > 0 {
            next.push(step(
                format!(
                    "look at {} and approve: toolhub skills approve --all",
                    plural(self.waiting_skills, "skill")
                ),
                format!("查看并批准 {} 个技能：toolhub skills approve --all", self.waiting_skills),
            ));
        }
        if self.calls.is_empty() {
            next.push(step(
                "ask for something: toolhub ask \"what time is it in Tokyo?\"".to_owned(),
                "提一个请求：toolhub ask \"东京现在几点？\"".to_owned(),
            ));
        }
        if self.running == 0 && !self.is_set_up {
            next.push(step(
                "serve MCP clients: toolhub serve; or connect them: toolhub init".to_owned(),
                "供 MCP 客户端使用：toolhub serve；或接入客户端：toolhub init".to_owned(),
            ));
        }
        if next.is_empty() {
            next.push(step(
                "check that all is well: toolhub doctor".to_owned(),
                "检查一切是否正常：toolhub doctor".to_owned(),
            ));
        }
        next.truncate(MAX_SUGGESTED_STEPS);
        next
    }
}

#[cfg(unix)]
async fn running_hubs(hub: &Hub) -> usize {
    toolhub::running_hubs(&hub.paths().data_dir).await
}

#[cfg(not(unix))]
async fn running_hubs(_: &Hub) -> usize {
    0
}

pub(crate) async fn run(app: &App) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let state = HubOverview::of(hub).await;
    match app.screen.json {
        true => app.screen.json(&as_json(app, hub, &state).into_raw()),
        false => show(app, hub, &state),
    }
    Ok(Exit::Done)
}

fn as_json(app: &App, hub: &Hub, state: &HubOverview) -> RawObject {
    let lang = app.lang();
    let servers: Vec<RawObject> =
        state.servers.iter().map(|server| ServerReport::new(hub, server, lang).as_json()).collect();
    let calls: Vec<RawObject> = state.calls.iter().map(|call| history::as_json(app, call)).collect();
    let tools = RawObject::default()
        .with("total", state.tools() as u64)
        .with("native", state.native as u64)
        .with("skill", state.of_skills as u64)
        .with("servers", state.of_servers as u64);
    let skills =
        RawObject::default().with("total", state.skills as u64).with("waiting", state.waiting_skills as u64);
    RawObject::default()
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("configured", true)
        .with("config", hub.paths().config.to_string_lossy().into_owned())
        .with("servers", RawJson::of(&servers))
        .with("tools", tools.into_raw())
        .with("skills", skills.into_raw())
        .with("calls", RawJson::of(&calls))
        .with("running_hubs", state.running as u64)
        .with("next", RawJson::of(&state.next(app)))
}

fn show(app: &App, hub: &Hub, state: &HubOverview) {
    let (lang, screen) = (app.lang(), &app.screen);
    let (version, config) = (env!("CARGO_PKG_VERSION"), hub.paths().config.display());
    screen.line(&format!("{BOLD}toolhub{BOLD:#} {version}  {DIM}{config}{DIM:#}"));
    let head = |text: String| screen.line(&format!("{BOLD}{text}{BOLD:#}"));
    head(
        lang.choose(
            format!("servers ({})", state.servers.len()),
            format!("服务器（{}）", state.servers.len()),
        ),
    );
    let shown = state.servers.iter().take(MAX_SERVERS);
    let rows: Vec<Vec<Cell>> = shown.map(|server| ServerReport::new(hub, server, lang).row(lang)).collect();
    for lines in row_lines(&rows, "  ", screen.width(), Overflow::Cut) {
        lines.iter().for_each(|line| screen.line(line));
    }
    if let Some(more) = state.servers.len().checked_sub(MAX_SERVERS).filter(|more| *more > 0) {
        screen.line(&lang.choose(
            format!("  and {more} more: toolhub servers list"),
            format!("  另有 {more} 个：toolhub servers list"),
        ));
    }
    let (tools, native, of_skills, of_servers) =
        (state.tools(), state.native, state.of_skills, state.of_servers);
    head(lang.choose(
        format!("tools ({tools}): {native} native, {of_skills} of skills, {of_servers} of servers"),
        format!("工具（{tools}）：内置 {native}，技能 {of_skills}，服务器 {of_servers}"),
    ));
    let waiting = match state.waiting_skills {
        0 => String::new(),
        waiting => lang.choose(format!(", {waiting} not approved"), format!("，{waiting} 个未批准")),
    };
    head(
        lang.choose(
            format!("skills ({}){waiting}", state.skills),
            format!("技能（{}）{waiting}", state.skills),
        ),
    );
    head(match state.running {
        0 => lang.choose("hub: not running".to_owned(), "hub：未运行".to_owned()),
        running => lang.choose(format!("hub: running ({running})"), format!("hub：运行中（{running}）")),
    });
    if !state.calls.is_empty() {
        head(lang.choose("last calls".to_owned(), "最近的调用".to_owned()));
        let rows: Vec<Vec<Cell>> = state.calls.iter().map(|call| history::row(app, call)).collect();
        table_lines(&rows, "  ", screen.width()).iter().for_each(|line| screen.line(line));
    }
    if let Some(problem) = hub.store_problem() {
        screen.warn(&problem.localize(lang));
    }
    head(lang.choose("next".to_owned(), "接下来".to_owned()));
    let rows: Vec<Vec<Cell>> =
        state.next(app).into_iter().map(|step| vec![Cell::from("-"), Cell::new(step, NAME)]).collect();
    table_lines(&rows, "  ", screen.width()).iter().for_each(|line| screen.line(line));
    screen.line(&format!(
        "{DIM}{}{DIM:#}",
        lang.choose("All commands: toolhub --help", "全部命令：toolhub --help")
    ));
}
