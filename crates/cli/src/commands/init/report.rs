//! The output of `toolhub init`: the clients, the changes to their servers, and the next steps. Contains no value that may be a
//! secret.

use std::path::Path;

use serde_json::{Value, json};
use toolhub::settings::Paths;
use toolhub_client_config::{Client, ClientEnvironment};
use toolhub_core::{Lang, Localize as _, RawJson};

use crate::app::App;
use crate::commands::init::files::{InstalledClient, user_locations};
use crate::commands::init::plan::{ClientPlan, HUB, HubConnection, PlannedChange, ServerPlan};
use crate::commands::init::record::InitRecord;
use crate::commands::init::trial::Trial;
use crate::commands::init::undo_hint;
use crate::commands::init::undone_file::{UndoStatus, UndoneFile};
use crate::exit::Exit;
use crate::render::plural::plural;
use crate::render::sanitize::Style;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, Overflow, row_lines, table_lines};

/// The plans of all clients, or why a client is skipped.
pub(crate) struct InitPlan {
    pub(crate) clients: Vec<(InstalledClient, Result<ClientPlan, String>)>,
    /// The new texts of `mcp.json` and `toolhub.toml`.
    pub(crate) servers: String,
    pub(crate) settings: String,
}

impl InitPlan {
    /// Whether any file would change.
    pub(crate) fn changes_something(&self) -> bool {
        self.clients.iter().filter_map(|(_, plan)| plan.as_ref().ok()).any(|plan| {
            plan.connection == HubConnection::Added
                || plan.servers.iter().any(|server| server.is_new || server.placement == PlannedChange::Moved)
        })
    }

    fn plans(&self) -> impl Iterator<Item = &ClientPlan> {
        self.clients.iter().filter_map(|(_, plan)| plan.as_ref().ok())
    }

    fn exit(&self) -> Exit {
        if self.clients.iter().any(|(_, plan)| plan.is_err()) { Exit::Usage } else { Exit::Done }
    }

    fn imported(&self) -> usize {
        self.plans().flat_map(|plan| &plan.servers).filter(|server| server.is_new).count()
    }

    fn connected(&self) -> Vec<Client> {
        let connected = self.plans().filter(|plan| !matches!(plan.connection, HubConnection::No(_)));
        connected.map(|plan| plan.client).collect()
    }

    fn as_json(&self, lang: Lang) -> Value {
        let server = |server: &ServerPlan| {
            json!({
                "id": server.id,
                "action": server.placement.name(),
                "new": server.is_new,
                "why": server.placement.why().map(|why| why.localize(lang)),
                "left_out": server.left_out,
                "notes": server.notes.iter().map(|note| note.localize(lang)).collect::<Vec<_>>(),
            })
        };
        let client = |(found, plan): &(InstalledClient, Result<ClientPlan, String>)| {
            let (connection, why, servers) = match plan {
                Ok(plan) => match &plan.connection {
                    HubConnection::Added => ("added", None, &*plan.servers),
                    HubConnection::Present => ("present", None, &*plan.servers),
                    HubConnection::No(why) => ("none", Some(why.localize(lang)), &*plan.servers),
                },
                Err(_) => ("none", None, &[][..]),
            };
            json!({
                "client": found.client.name(),
                "file": found.location.file.to_string_lossy(),
                "hub": connection,
                "why": why,
                "servers": servers.iter().map(server).collect::<Vec<_>>(),
                "error": plan.as_ref().err(),
            })
        };
        self.clients.iter().map(client).collect()
    }
}

/// Prints the clients to choose from.
pub(crate) fn list(app: &App, found: &[InstalledClient]) {
    app.screen.note(app.lang().choose("MCP clients on this machine:", "此计算机上的 MCP 客户端："));
    let row = |(at, found): (usize, &InstalledClient)| {
        vec![
            Cell::new((at + 1).to_string(), BOLD),
            Cell::new(found.client.title(), NAME),
            Cell::new(found.location.file.display().to_string(), DIM),
        ]
    };
    let rows: Vec<Vec<Cell>> = found.iter().enumerate().map(row).collect();
    table_lines(&rows, "  ", None).iter().for_each(|line| app.screen.note(line));
}

/// Prints the next steps if no client is installed.
pub(crate) fn no_clients(app: &App, environment: &ClientEnvironment) -> Exit {
    let lang = app.lang();
    let next = [
        lang.choose(
            "add a server: toolhub servers add NAME -- COMMAND",
            "添加服务器：toolhub servers add 名称 -- 命令",
        ),
        lang.choose(
            "ask for something: toolhub ask \"what is 6*7?\"",
            "提一个请求：toolhub ask \"6*7 是多少？\"",
        ),
        lang.choose(
            "serve MCP clients over HTTP: toolhub serve",
            "通过 HTTP 供 MCP 客户端使用：toolhub serve",
        ),
    ];
    if app.screen.json {
        let none: [Value; 0] = [];
        app.screen.json(&RawJson::of(&json!({"dry_run": false, "clients": none, "next": next})));
        return Exit::Done;
    }
    app.screen.line(lang.choose(
        "no MCP client was found on this machine; looked for:",
        "此计算机上没有找到 MCP 客户端；已查找：",
    ));
    let row = |client: Client| {
        let location = user_locations(client, environment).into_iter().next()?;
        Some(vec![Cell::new(client.title(), NAME), Cell::new(location.file.display().to_string(), DIM)])
    };
    let rows: Vec<Vec<Cell>> = Client::all().filter_map(row).collect();
    table_lines(&rows, "  ", None).iter().for_each(|line| app.screen.line(line));
    show_next(app, next.iter().map(|step| (*step).to_owned()));
    Exit::Done
}

pub(crate) fn dry_run(app: &App, paths: &Paths, planned: &InitPlan) -> Exit {
    let lang = app.lang();
    if app.screen.json {
        let report_json = json!({
            "dry_run": true,
            "clients": planned.as_json(lang),
            "servers": paths.servers.to_string_lossy(),
        });
        app.screen.json(&RawJson::of(&report_json));
        return planned.exit();
    }
    show(app, planned, true);
    app.screen.note(match planned.changes_something() {
        true => lang.choose("nothing was changed (`--dry-run`)", "未做任何改动（`--dry-run`）"),
        false => lang.choose("there is nothing to change", "没有需要改动的内容"),
    });
    planned.exit()
}

/// Prints the changes, client by client.
pub(crate) fn show(app: &App, planned: &InitPlan, future: bool) {
    let lang = app.lang();
    for (found, plan) in &planned.clients {
        let (title, file) = (found.client.title(), found.location.file.display());
        app.screen.line(&format!("{BOLD}{title}{BOLD:#}  {DIM}{file}{DIM:#}"));
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                app.screen.line(&format!("  {BAD}✗{BAD:#} {error}"));
                continue;
            }
        };
        let mut rows = vec![hub_row(plan, lang, future)];
        rows.extend(plan.servers.iter().map(|server| server_row(server, lang, future)));
        let table = row_lines(&rows, "  ", app.screen.width(), Overflow::Fold);
        for (at, lines) in table.iter().enumerate() {
            lines.iter().for_each(|line| app.screen.line(line));
            let Some(server) = at.checked_sub(1).and_then(|at| plan.servers.get(at)) else { continue };
            if !server.left_out.is_empty() {
                let names = server.left_out.join(", ");
                let text = lang.choose(format!("not carried over: {names}"), format!("未能带过来：{names}"));
                app.screen.line(&format!("      {text}"));
            }
            for note in &server.notes {
                app.screen.line(&format!("      {}", note.localize(lang)));
            }
        }
    }
}

fn hub_row(plan: &ClientPlan, lang: Lang, future: bool) -> Vec<Cell> {
    let (mark, style, word, why) = match (&plan.connection, future) {
        (HubConnection::Added, true) => ("✓", GOOD, lang.choose("to add", "将添加"), String::new()),
        (HubConnection::Added, false) => ("✓", GOOD, lang.choose("added", "已添加"), String::new()),
        (HubConnection::Present, _) => ("=", DIM, lang.choose("present", "已存在"), String::new()),
        (HubConnection::No(why), _) => ("✗", ODD, lang.choose("not added", "未添加"), why.localize(lang)),
    };
    vec![Cell::new(mark, style), Cell::new(HUB, NAME), word.into(), why.into()]
}

fn server_row(server: &ServerPlan, lang: Lang, future: bool) -> Vec<Cell> {
    let (mark, style, word) = match (&server.placement, future) {
        (PlannedChange::Moved, true) => ("✓", GOOD, lang.choose("to move to toolhub", "将移到 toolhub")),
        (PlannedChange::Moved, false) => ("✓", GOOD, lang.choose("moved to toolhub", "已移到 toolhub")),
        (PlannedChange::Copied(_), true) => {
            ("✓", GOOD, lang.choose("to copy to toolhub", "将复制到 toolhub"))
        }
        (PlannedChange::Copied(_), false) => {
            ("✓", GOOD, lang.choose("copied to toolhub", "已复制到 toolhub"))
        }
        (PlannedChange::Stays(_), true) => ("=", DIM, lang.choose("to keep", "将保留")),
        (PlannedChange::Stays(_), false) => ("=", DIM, lang.choose("kept", "已保留")),
    };
    let details = server.placement.why().map_or_else(|| server.summary.clone(), |why| why.localize(lang));
    vec![Cell::new(mark, style), Cell::new(server.id.as_str(), NAME), word.into(), details.into()]
}

/// Prints the changes, the result of the trial call, and the next steps.
pub(crate) fn done(app: &App, paths: &Paths, planned: &InitPlan, shows: bool, trial: &Trial) -> Exit {
    let lang = app.lang();
    let next = next_steps(lang, planned);
    let exit = match (&trial.result, planned.exit()) {
        (Err(_), Exit::Done) => Exit::Failed,
        (_, exit) => exit,
    };
    if app.screen.json {
        let report_json = json!({
            "dry_run": false,
            "clients": planned.as_json(lang),
            "servers": paths.servers.to_string_lossy(),
            "imported": planned.imported(),
            "changed": planned.changes_something(),
            "record": InitRecord::path(&paths.data_dir).to_string_lossy(),
            "trial": trial.as_json(),
            "next": next,
        });
        app.screen.json(&RawJson::of(&report_json));
        return exit;
    }
    if shows {
        show(app, planned, false);
    }
    show_changes(app, paths, planned);
    show_trial(app, trial);
    show_next(app, next.into_iter());
    exit
}

/// What the user should do now.
fn next_steps(lang: Lang, planned: &InitPlan) -> Vec<String> {
    let connected = planned.connected();
    let mut next = Vec::new();
    if !connected.is_empty() {
        let titles: Vec<&str> = connected.iter().map(|client| client.title()).collect();
        let titles = titles.join(lang.choose(", ", "、"));
        next.push(
            lang.choose(
                format!("restart {titles} if it is running"),
                format!("若 {titles} 正在运行，请重启"),
            ),
        );
    }
    if planned.imported() > 0 {
        next.push(lang.choose(
            "start the imported servers once and list their tools: toolhub servers test".to_owned(),
            "启动导入的服务器并列出其工具：toolhub servers test".to_owned(),
        ));
    }
    next.push(lang.choose("see the state of things: toolhub".to_owned(), "查看状态：toolhub".to_owned()));
    next
}

/// States which files were changed, or why none was.
fn show_changes(app: &App, paths: &Paths, planned: &InitPlan) {
    let lang = app.lang();
    if planned.changes_something() {
        let (file, imported) = (paths.servers.display(), planned.imported());
        let text = match planned.connected().len() {
            1 => lang.choose("1 client uses toolhub".to_owned(), "1 个客户端使用 toolhub".to_owned()),
            many => {
                lang.choose(format!("{many} clients use toolhub"), format!("{many} 个客户端使用 toolhub"))
            }
        };
        app.screen.note(&lang.choose(
            format!("{} imported into `{file}`; {text}", plural(imported, "server")),
            format!("已向 `{file}` 导入 {imported} 个服务器；{text}"),
        ));
        app.screen.note(&undo_hint().localize(lang));
    } else if planned.exit() == Exit::Done {
        app.screen.note(
            lang.choose("everything was set up already: no file was changed", "一切均已就绪：未改动任何文件"),
        );
    } else {
        app.screen.note(lang.choose(
            "no client was changed: repair what is named above, then run `toolhub init` again",
            "没有改动任何客户端：请先修正上述问题，再运行 `toolhub init`",
        ));
    }
}

fn show_trial(app: &App, trial: &Trial) {
    let lang = app.lang();
    let (tool, expression, millis) = (Trial::TOOL, Trial::EXPRESSION, trial.duration.as_millis());
    match &trial.result {
        Ok(result) => app.screen.line(&lang.choose(
            format!(
                "{GOOD}✓{GOOD:#} tried a call as a client would: {tool} {expression} = {result} ({millis} ms)"
            ),
            format!("{GOOD}✓{GOOD:#} 已像客户端那样试调用：{tool} {expression} = {result}（{millis} ms）"),
        )),
        Err(error) => app.screen.error(&lang.choose(
            format!("the hub did not answer when started as a client would: {error}"),
            format!("像客户端那样启动 hub 后没有得到应答：{error}"),
        )),
    }
}

fn show_next(app: &App, steps: impl Iterator<Item = String>) {
    app.screen.line(&format!("{BOLD}{}{BOLD:#}", app.lang().choose("next:", "接下来：")));
    steps.for_each(|step| app.screen.line(&format!("  - {step}")));
}

/// The mark, its style and the words for what was done with a file, or would be done.
fn undo_status(lang: Lang, status: UndoStatus, dry_run: bool) -> (&'static str, Style, &'static str) {
    match status {
        UndoStatus::Restored if dry_run => {
            ("✓", GOOD, lang.choose("would be restored byte for byte", "将逐字节恢复"))
        }
        UndoStatus::Deleted if dry_run => (
            "✓",
            GOOD,
            lang.choose("would be deleted: `toolhub init` made it", "将被删除：它由 `toolhub init` 创建"),
        ),
        UndoStatus::Edited if dry_run => (
            "✓",
            GOOD,
            lang.choose(
                "edited since: only the entries of `toolhub init` would be changed back",
                "此后有改动：只会还原 `toolhub init` 的条目",
            ),
        ),
        UndoStatus::Restored => ("✓", GOOD, lang.choose("restored byte for byte", "已逐字节恢复")),
        UndoStatus::Deleted => (
            "✓",
            GOOD,
            lang.choose("deleted: it was made by `toolhub init`", "已删除：它由 `toolhub init` 创建"),
        ),
        UndoStatus::Edited => (
            "✓",
            GOOD,
            lang.choose(
                "edited since: only the entries of `toolhub init` were changed back",
                "此后有改动：只还原了 `toolhub init` 的条目",
            ),
        ),
        UndoStatus::Unchanged => ("=", DIM, lang.choose("is as it was before", "与之前相同")),
        UndoStatus::Missing => {
            ("=", ODD, lang.choose("was deleted since and is not made again", "此后已被删除，不再创建"))
        }
        UndoStatus::Failed => ("✗", BAD, lang.choose("was not undone", "未能撤销")),
    }
}

/// Prints the result for each file.
pub(crate) fn show_undo(app: &App, rows: &[UndoneFile], dry_run: bool, record: &Path) {
    let lang = app.lang();
    if rows.is_empty() {
        app.screen.note(lang.choose(
            "there is nothing to undo: `toolhub init` changed nothing, or it is undone already",
            "没有可撤销的内容：`toolhub init` 没有改动过文件，或已撤销",
        ));
        return;
    }
    for row in rows {
        let (mark, style, word) = undo_status(lang, row.status, dry_run);
        app.screen.line(&format!("{style}{mark}{style:#} {}  {word}", row.change.file.display()));
        let details = [
            (
                lang.choose(
                    if dry_run { "to remove" } else { "removed" },
                    if dry_run { "将移除" } else { "已移除" },
                ),
                &row.removed,
            ),
            (
                lang.choose(
                    if dry_run { "to put back" } else { "put back" },
                    if dry_run { "将放回" } else { "已放回" },
                ),
                &row.restored,
            ),
            (lang.choose("changed since, so kept as they are", "此后有改动，保持不变"), &row.kept),
        ];
        for (word, names) in details.into_iter().filter(|(_, names)| !names.is_empty()) {
            let names = names.join(", ");
            app.screen.line(&lang.choose(format!("    {word}: {names}"), format!("    {word}：{names}")));
        }
        if let Some(error) = &row.error {
            app.screen.line(&format!("    {error}"));
        }
    }
    if dry_run {
        app.screen.note(lang.choose("nothing was changed (`--dry-run`)", "未做任何改动（`--dry-run`）"));
    } else if rows.iter().all(|row| row.status != UndoStatus::Failed) {
        app.screen.note(lang.choose(
            "restart the clients; servers that you added to toolhub yourself are kept",
            "请重启客户端；你自己添加到 toolhub 的服务器会保留",
        ));
    } else if rows.iter().any(|row| row.status == UndoStatus::Failed) {
        let record = record.display();
        app.screen.note(&lang.choose(
            format!("what is left to undo, with the earlier texts, is in `{record}`: repair the file and run `toolhub init --undo` again"),
            format!("尚未撤销的内容及原文在 `{record}` 中：修复文件后再次运行 `toolhub init --undo`"),
        ));
    }
}
