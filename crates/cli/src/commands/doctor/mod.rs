//! `toolhub doctor`: checks the installation and reports each problem with its fix.

pub(crate) mod model;
pub(crate) mod sandbox;
pub(crate) mod skills;

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use toolhub::settings::folder_note;
use toolhub::{Hub, Lang, free_bytes};
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Localize as _, RawJson, RawObject, Source};
use toolhub_engine::CatalogEntry;

use crate::app::App;
use crate::args::DoctorArgs;
use crate::commands::servers::trial::{exit_of, test_all};
use crate::exit::Exit;
use crate::render::findings;
use crate::render::plural::plural;
use crate::render::screen::{BAD, GOOD, ODD};

/// The result of a check.
#[derive(Clone, Copy)]
pub(crate) enum CheckResult {
    Pass,
    Warning,
    Problem,
}

/// The results of all checks so far.
pub(crate) struct DoctorReport<'a> {
    app: &'a App,
    checks: Vec<RawObject>,
    reported: HashSet<String>,
    worst: Exit,
}

/// The minimum free space for the data folder.
const MIN_FREE_BYTES: u64 = 64 << 20;

impl DoctorReport<'_> {
    pub(crate) fn add(&mut self, what: &str, result: CheckResult, text: &str) {
        let (word, sign, style) = match result {
            CheckResult::Pass => ("ok", "✓", GOOD),
            CheckResult::Warning => ("warning", "!", ODD),
            CheckResult::Problem => ("problem", "✗", BAD),
        };
        // Several checks may report the same problem.
        if !self.reported.insert(text.to_owned()) {
            return;
        }
        let check = RawObject::default().with("check", what).with("status", word).with("text", text);
        self.checks.push(check);
        if !self.app.screen.json {
            self.app.screen.line(&format!("{style}{sign}{style:#} {text}"));
        }
    }

    pub(crate) fn problem(&mut self, what: &str, text: &str, exit: Exit) {
        self.add(what, CheckResult::Problem, text);
        if self.worst == Exit::Done {
            self.worst = exit;
        }
    }
}

pub(crate) async fn run(app: &App, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let mut report = DoctorReport { app, checks: Vec::new(), reported: HashSet::new(), worst: Exit::Done };
    check(app, args, &mut report).await?;
    if app.screen.json {
        let json = RawObject::default()
            .with("ok", report.worst == Exit::Done)
            .with("checks", RawJson::of(&report.checks));
        app.screen.json(&json.into_raw());
    }
    Ok(report.worst)
}

async fn check(app: &App, args: &DoctorArgs, report: &mut DoctorReport<'_>) -> anyhow::Result<()> {
    let lang = app.lang();
    let hub = match app.hub().await {
        Ok(hub) => hub,
        Err(error) => {
            report.problem("config", &error.localize(lang), Exit::Usage);
            return Ok(());
        }
    };
    check_config(app, hub, report);
    check_store(hub, lang, report);
    let servers = hub.servers();
    let folder = folder_note(servers.iter().map(|view| &view.spec), hub.paths());
    for note in hub.notes().iter().chain(&folder).filter(|note| Some(*note) != hub.store_problem()) {
        report.add("note", CheckResult::Warning, &note.localize(lang));
    }
    for warning in hub.unknown_names_in_rules() {
        report.add("rules", CheckResult::Warning, &warning.localize(lang));
    }
    check_native(hub, lang, report);
    skills::check(app, hub, report);
    sandbox::check(app, hub, report);
    let enabled = hub.servers().into_iter().filter(|server| server.spec.enabled);
    let ids: Vec<String> = enabled.map(|server| server.spec.id.as_str().to_owned()).collect();
    if ids.is_empty() {
        let text = lang.choose(
            "servers: none; add one with `toolhub servers add`",
            "服务器：无；用 `toolhub servers add` 添加",
        );
        report.add("servers", CheckResult::Pass, text);
    }
    let tests = app.interruptible(test_all(app, hub, ids)).await?;
    if report.worst == Exit::Done {
        report.worst = exit_of(&tests);
    }
    for test in tests {
        // Already printed; added for `--json`.
        let (status, text) = match &test.result {
            Ok(tested) => ("ok", format!("{}: {}", test.id, plural(tested.tools, "tool"))),
            Err(failure) => ("problem", failure.brief.clone()),
        };
        let check = RawObject::default().with("check", "server").with("id", test.id.as_str());
        report.checks.push(check.with("status", status).with("text", text));
    }
    approvals(app, hub, report);
    agents(app, hub, report);
    for problem in hub.profile_problems() {
        report.add("profiles", CheckResult::Warning, &problem.localize(lang));
    }
    model::check(app, hub, args, report).await
}

/// The config file, and the trust in the current folder.
fn check_config(app: &App, hub: &Hub, report: &mut DoctorReport<'_>) {
    let lang = app.lang();
    let paths = hub.paths();
    let config = paths.config.display();
    let text = match paths.config.is_file() {
        true => lang.choose(format!("config: `{config}`"), format!("配置：`{config}`")),
        false => lang.choose(
            format!("config: defaults (no `{config}`, none is needed)"),
            format!("配置：默认值（没有 `{config}`，也不需要）"),
        ),
    };
    report.add("config", CheckResult::Pass, &text);
    match paths.workspace.notice(app.global.config.as_deref()) {
        Some(notice) => report.add("workspace", CheckResult::Warning, &notice.localize(lang)),
        None if paths.workspace.is_trusted_here() => {
            report.add("workspace", CheckResult::Pass, lang.choose("this folder: trusted", "此目录：已信任"));
        }
        None => {}
    }
}

/// Whether the data folder can be used, and has room.
fn check_store(hub: &Hub, lang: Lang, report: &mut DoctorReport<'_>) {
    let paths = hub.paths();
    let data_dir = paths.data_dir.display();
    if let Some(problem) = hub.store_problem() {
        let problem = problem.localize(lang);
        let text = lang.choose(format!("data: {problem}"), format!("数据：{problem}"));
        report.problem("store", &text, Exit::Failed);
    } else if let Err(error) = try_writing(&paths.data_dir) {
        let text = lang.choose(
            format!("data: `{data_dir}` cannot be written ({error}); free some space, or choose another folder with `--home`"),
            format!("数据：无法写入 `{data_dir}`（{error}）；请释放空间，或用 `--home` 换一个目录"),
        );
        report.problem("store", &text, Exit::Failed);
    } else if let Some(free) = free_bytes(&paths.data_dir).filter(|free| *free < MIN_FREE_BYTES) {
        let mib = free >> 20;
        let text = lang.choose(
            format!("data: `{data_dir}` has only {mib} MiB left; free some space"),
            format!("数据：`{data_dir}` 只剩 {mib} MiB；请释放空间"),
        );
        report.add("store", CheckResult::Warning, &text);
    } else {
        report.add(
            "store",
            CheckResult::Pass,
            &lang.choose(format!("data: `{data_dir}`"), format!("数据：`{data_dir}`")),
        );
    }
}

/// The native tools, and the folders that they may read.
fn check_native(hub: &Hub, lang: Lang, report: &mut DoctorReport<'_>) {
    let native = hub.catalog().iter().filter(|entry| entry.tool.source == Source::Native).count();
    let folders = hub.settings().folders(&hub.paths().config);
    let missing: Vec<String> = folders
        .iter()
        .filter(|folder| !folder.is_dir())
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    let native = lang.choose(format!("native: {}", plural(native, "tool")), format!("内置：{native} 个工具"));
    report.add("native", CheckResult::Pass, &native);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        let text = lang.choose(
            format!("`[native] folders` names {missing}, which is not there"),
            format!("`[native] folders` 中的 {missing} 不存在"),
        );
        report.problem("native", &text, Exit::Usage);
    }
}

/// Checks that a folder is writable with a temporary file.
fn try_writing(folder: &Path) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&[0; 4096])?;
    file.as_file().sync_all()
}

/// Reports agents whose lists name unknown tools.
fn agents(app: &App, hub: &Hub, report: &mut DoctorReport<'_>) {
    let (lang, catalog) = (app.lang(), hub.catalog());
    let names: Vec<&str> = catalog.iter().map(|entry| entry.tool.name().as_str()).collect();
    for (agent, settings) in &hub.settings().agents {
        let allowlist = settings.allowlist();
        let unknown: Vec<String> = allowlist.without(&names).map(|pattern| format!("`{pattern}`")).collect();
        if unknown.is_empty() {
            continue;
        }
        let listed = unknown.join(", ");
        let none = names.iter().all(|name| !allowlist.has(name));
        let (en, zh) = match none {
            true => ("; it has no tool at all", "；它没有任何可用的工具"),
            false => ("", ""),
        };
        let text = lang.choose(
            format!("`[agents.{agent}] tools` names {listed}, which no tool is called{en}; `toolhub tools` lists them"),
            format!("`[agents.{agent}] tools` 中的 {listed} 不是任何工具的名称{zh}；`toolhub tools` 列出所有工具"),
        );
        match none {
            true => report.problem("agents", &text, Exit::Usage),
            false => report.add("agents", CheckResult::Warning, &text),
        }
    }
}

/// Reports approved, changed and suspicious tools.
fn approvals(app: &App, hub: &Hub, report: &mut DoctorReport<'_>) {
    let (lang, catalog) = (app.lang(), hub.catalog());
    let names_of = |test: fn(&CatalogEntry) -> bool| {
        let mut found = catalog.iter().map(AsRef::as_ref).filter(move |entry| test(entry)).peekable();
        found.peek().is_some().then(|| findings::names(found, lang))
    };
    let count = hub.approvals().len();
    if count > 0 {
        let text =
            lang.choose(format!("approvals: {}", plural(count, "tool")), format!("批准：{count} 个工具"));
        report.add("approvals", CheckResult::Pass, &text);
    }
    if let Some(names) = names_of(|entry| entry.tool.approval == ApprovalStatus::Changed) {
        let text = lang.choose(
            format!("changed since approved: {names}; see `toolhub tools diff TOOL`, then `toolhub tools approve TOOL`"),
            format!("批准后有改动：{names}；见 `toolhub tools diff 工具名`，再用 `toolhub tools approve 工具名`"),
        );
        report.add("changed", CheckResult::Warning, &text);
    }
    if let Some(names) = names_of(|entry| {
        entry.tool.approval == ApprovalStatus::Quarantined && entry.tool.source != Source::Skill
    }) {
        let text = lang.choose(
            format!("held back, as it is not what was approved: {names}; see `toolhub tools diff TOOL`, then `toolhub tools approve TOOL`"),
            format!("因与批准的定义不同而被隔离：{names}；见 `toolhub tools diff 工具名`，再用 `toolhub tools approve 工具名`"),
        );
        report.add("quarantined", CheckResult::Warning, &text);
    }
    if let Some(names) = names_of(|entry| !entry.findings().is_empty()) {
        let text = lang.choose(
            format!("suspicious: {names}; see `toolhub tools show TOOL`"),
            format!("内容可疑：{names}；见 `toolhub tools show 工具名`"),
        );
        report.add("suspicious", CheckResult::Warning, &text);
    }
}
