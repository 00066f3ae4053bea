//! `toolhub trust`: shows what the current folder would run, read and contact, and trusts it if its owner agrees.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use toolhub::settings::Paths;
use toolhub::trust::{
    ChangeKind, FolderReview, LaunchScope, ReviewedProgram, RunTrust, TrustList, TrustStatus,
};
use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;
use toolhub_core::{Localize as _, RawJson, RawObject};
use toolhub_engine::definition_scan::escape_invisible;

use crate::app::App;
use crate::args::trust::TrustArgs;
use crate::exit::{Exit, UsageError};
use crate::render::sanitize::Style;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};

/// The maximum number of changed files that are listed.
const MAX_CHANGES: usize = 40;

pub(crate) async fn run(app: &App, args: &TrustArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    // Uses the list of trusted folders only: `--trust` and `TOOLHUB_TRUST` are ignored. A named config decides which servers of
    // the owner are reviewed with the folder.
    let paths = Paths::find_trusting(
        app.global.config.as_deref(),
        app.global.home.as_deref(),
        &RunTrust { review: true, ..RunTrust::default() },
    )
    .map_err(toolhub::BuildError::from)?;
    if args.list {
        return list(app, &paths);
    }
    if let Some(path) = &args.revoke {
        return revoke(app, &paths, &folders_to_revoke(&paths, path));
    }
    if Path::new("mcp.json").exists() && !Path::new("toolhub.toml").exists() {
        app.screen.to_stderr(lang.choose(
            "`mcp.json` counts only beside a `toolhub.toml`, which may be empty; or name it `.mcp.json`",
            "`mcp.json` 仅在与 `toolhub.toml`（可为空）放在一起时有效；也可改名为 `.mcp.json`",
        ));
    }
    let reviews = paths.workspace.reviews();
    if reviews.is_empty() {
        report_nothing_to_trust(app);
        return Ok(Exit::Failed);
    }
    if !app.screen.json {
        reviews.iter().for_each(|review| show(app, review));
    }
    let trusted =
        reviews.iter().all(|review| review.status == TrustStatus::Trusted && review.are_user_servers_current);
    let outcome = match trusted {
        true => Ok(true),
        false => ask_consent(app, args, &reviews).await?.map(|()| false),
    };
    let outcome = outcome.and_then(|known| match known {
        true => Ok(true),
        false => paths.workspace.trust().map(|()| false).map_err(|why| UsageError(why.localize(lang))),
    });
    if app.screen.json {
        return Ok(report_as_json(app, &reviews, &outcome));
    }
    match outcome? {
        true => app.screen.note(lang.choose("it is trusted already", "已经信任")),
        false => report_trusted(app, &reviews),
    }
    Ok(Exit::Done)
}

/// The folders whose trust is revoked. `.` means the folders that `toolhub trust` would trust here: in a subfolder, those of the
/// surrounding project.
fn folders_to_revoke(paths: &Paths, path: &Path) -> Vec<PathBuf> {
    let workspace_folders = || paths.workspace.folders().map(Path::to_path_buf).collect::<Vec<_>>();
    let folders = if path.as_os_str() == "." { workspace_folders() } else { Vec::new() };
    if folders.is_empty() { vec![path.to_owned()] } else { folders }
}

fn report_nothing_to_trust(app: &App) {
    if app.screen.json {
        app.screen.json(
            &RawObject::default().with("trusted", false).with("folders", RawJson::of(&[""; 0])).into_raw(),
        );
    }
    app.screen.to_stderr(app.lang().choose(
        "there is nothing to trust here: this folder brings no toolhub.toml, .mcp.json or skills",
        "这里没有需要信任的内容：此目录没有 toolhub.toml、.mcp.json 或技能",
    ));
}

/// Prints the folders and whether they are trusted now.
fn report_as_json(app: &App, reviews: &[FolderReview], outcome: &Result<bool, UsageError>) -> Exit {
    let folders: Vec<RawObject> = reviews.iter().map(|review| as_json(app, review)).collect();
    let displayed = RawObject::default()
        .with("trusted", outcome.is_ok())
        .with("error", RawJson::of(&outcome.as_ref().err().map(|error| error.0.clone())))
        .with("folders", RawJson::of(&folders));
    app.screen.json(&displayed.into_raw());
    if let Err(error) = outcome {
        app.screen.error(&error.0);
        return Exit::Usage;
    }
    Exit::Done
}

/// Prints what follows from the trust that was just given.
fn report_trusted(app: &App, reviews: &[FolderReview]) {
    let lang = app.lang();
    app.screen.note(lang.choose(
        "trusted: it is used from now on, until something of it changes",
        "已信任：从现在起会使用，直到其中有内容改动",
    ));
    if reviews.iter().any(|review| !review.skills.is_empty()) {
        app.screen.note(lang.choose(
            "skills that you have not approved yet wait for `toolhub skills approve --all`, which shows each of them",
            "尚未批准的技能需运行 `toolhub skills approve --all`，会逐个显示",
        ));
    }
    for review in reviews.iter().filter(|review| !review.is_here && review.has_config()) {
        let folder = review.folder.display();
        app.screen.note(&lang.choose(
            format!(
                "settings and servers of `{folder}` are used in that folder itself; here only its skills are"
            ),
            format!("`{folder}` 的设置和服务器只在该目录中使用；这里只使用它的技能"),
        ));
    }
}

/// Prompts the owner; the error is the reason for missing consent.
async fn ask_consent(
    app: &App,
    args: &TrustArgs,
    reviews: &[FolderReview],
) -> anyhow::Result<Result<(), UsageError>> {
    let lang = app.lang();
    if let Some(problem) = reviews.iter().find_map(|review| review.problems.first()) {
        let problem = problem.localize(lang);
        return Ok(Err(UsageError(lang.choose(
            format!("it cannot be trusted before this is fixed: {problem}"),
            format!("须先解决此问题才能信任：{problem}"),
        ))));
    }
    if args.yes {
        return Ok(Ok(()));
    }
    if app.screen.json || !std::io::stdin().is_terminal() {
        return Ok(Err(UsageError(
            lang.choose(
                "not trusted: run \"toolhub trust\" in a terminal, or add `--yes`",
                "未信任：请在终端中运行 “toolhub trust”，或加上 `--yes`",
            )
            .to_owned(),
        )));
    }
    let question = lang.choose("Trust this folder as it is shown here? [y/N] ", "信任此处显示的内容？[y/N] ");
    Ok(match app.confirm(question).await? {
        true => Ok(()),
        false => Err(UsageError(lang.choose("not trusted", "未信任").to_owned())),
    })
}

fn list(app: &App, paths: &Paths) -> anyhow::Result<Exit> {
    let list = TrustList::read(&paths.data_dir);
    if app.screen.json {
        let record = |(path, record): (&String, &toolhub::trust::TrustRecord)| {
            RawObject::default()
                .with("path", path.as_str())
                .with("sha256", record.sha256.as_str())
                .with("trusted_at", record.at)
                .with("exists", Path::new(path).is_dir())
                .with("current", list.is_current(path))
        };
        let all: Vec<RawObject> = list.folders.iter().map(record).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    if list.folders.is_empty() {
        app.screen.note(app.lang().choose("no folder is trusted", "没有受信任的目录"));
    }
    for path in list.folders.keys() {
        let gone = match (Path::new(path).is_dir(), list.is_current(path)) {
            (true, true) => "",
            (true, false) => app.lang().choose("  (changed, not used)", "（有改动，不使用）"),
            (false, _) => app.lang().choose("  (gone)", "（已不存在）"),
        };
        app.screen.line(&format!("{NAME}{}{NAME:#}{DIM}{gone}{DIM:#}", escape_invisible(path)));
    }
    Ok(Exit::Done)
}

fn revoke(app: &App, paths: &Paths, folders: &[PathBuf]) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let mut any = false;
    for path in folders {
        // A deleted folder is still on the list by its previous path.
        let real = path.canonicalize().or_else(|_| std::path::absolute(path))?;
        let key = real.display().to_string();
        let mut found = false;
        let mut list = TrustList::read(&paths.data_dir);
        if list.folders.contains_key(&key) {
            let changed = list.change(|folders| found = folders.remove(&key).is_some());
            changed.map_err(|why| anyhow::anyhow!(why.localize(lang)))?;
        }
        any |= found;
        if app.screen.json {
            let displayed = RawObject::default().with("path", key.as_str()).with("revoked", found);
            app.screen.json(&displayed.into_raw());
        } else {
            let key = escape_invisible(&key);
            app.screen.note(&match found {
                true => lang.choose(format!("`{key}` is no longer trusted"), format!("不再信任 `{key}`")),
                false => lang.choose(format!("`{key}` was not trusted"), format!("`{key}` 未被信任")),
            });
        }
    }
    Ok(if any { Exit::Done } else { Exit::Failed })
}

/// Shows a folder with everything that trusting it would permit.
fn show(app: &App, review: &FolderReview) {
    let lang = app.lang();
    let head = lang.choose("brings", "带有");
    let folder = review.folder.display().to_string();
    let brings = if review.brings.is_empty() { &review.steering } else { &review.brings };
    let brings = brings.join(", ");
    let line = format!("{BOLD}{}{BOLD:#} {head} {}", escape_invisible(&folder), escape_invisible(&brings));
    app.screen.line(&line);
    show_changes(app, review);
    show_programs(app, lang.choose("It would run", "会运行"), &review.programs);
    show_programs(
        app,
        lang.choose("Your own servers that would start in it", "你自己的服务器，会在其中启动"),
        &review.user_programs,
    );
    texts(
        app,
        lang.choose("Your own servers that trust cannot cover", "信任无法覆盖的你自己的服务器"),
        ODD,
        &review.user_program_problems,
    );
    show_addresses(app, review);
    show_settings(app, review);
    texts(app, lang.choose("It would be allowed", "会被允许"), ODD, &review.capabilities);
    show_steering(app, review);
    show_skills(app, review);
    texts(app, lang.choose("Look twice", "请留意"), BAD, &review.suspicious);
    texts(app, lang.choose("Problems", "问题"), BAD, &review.problems);
    show_summary(app, review);
    if review.status == TrustStatus::Trusted {
        app.screen.line(&format!("{GOOD}✓{GOOD:#} {}", lang.choose("trusted", "已信任")));
    }
    app.screen.line("");
}

fn show_heading(app: &App, title: &str) {
    app.screen.line("");
    app.screen.line(&format!("{BOLD}{title}{BOLD:#}"));
}

/// The changed files; of many only the first ones and the number of the others.
fn show_changes(app: &App, review: &FolderReview) {
    let lang = app.lang();
    if !review.changes.is_empty() {
        show_heading(app, lang.choose("Changed since you trusted it", "信任之后的改动"));
    }
    for change in review.changes.iter().take(MAX_CHANGES) {
        let kind = match change.kind {
            ChangeKind::Added => lang.choose("added", "新增"),
            ChangeKind::Modified => lang.choose("modified", "修改"),
            ChangeKind::Removed => lang.choose("removed", "移除"),
        };
        app.screen.line(&format!("  {ODD}{kind}{ODD:#}  {}", escape_invisible(&change.file)));
    }
    if let more @ 1.. = review.changes.len().saturating_sub(MAX_CHANGES) {
        app.screen.line(&lang.choose(format!("  and {more} more"), format!("  另有 {more} 个文件")));
    }
}

fn show_programs(app: &App, title: &str, programs: &[ReviewedProgram]) {
    if !programs.is_empty() {
        show_heading(app, title);
    }
    for program in programs {
        show_program(app, program);
    }
}

/// The addresses, with the variables and headers that are sent there.
fn show_addresses(app: &App, review: &FolderReview) {
    let lang = app.lang();
    let line = |text: &str| app.screen.line(text);
    if !review.addresses.is_empty() {
        show_heading(app, lang.choose("It would contact", "会连接"));
    }
    for address in &review.addresses {
        let reads = match address.reads.is_empty() {
            true => String::new(),
            false => {
                let names = address.reads.join(", ");
                lang.choose(format!("  (sends your {names})"), format!("（发送你的 {names}）"))
            }
        };
        let (purpose, url) = (escape_invisible(&address.purpose), escape_invisible(&address.url));
        line(&format!("  {NAME}{purpose}{NAME:#}  {url}{}", escape_invisible(&reads)));
        for (name, value) in &address.headers {
            let label = lang.choose("header:", "请求头：");
            line(&format!("      {DIM}{label}{DIM:#} {}", escape_invisible(&format!("{name}: {value}"))));
        }
    }
}

fn show_settings(app: &App, review: &FolderReview) {
    if !review.settings.is_empty() {
        show_heading(app, app.lang().choose("Settings", "设置"));
    }
    for (key, value) in &review.settings {
        app.screen.line(&format!("  {} = {}", escape_invisible(key), escape_invisible(value)));
    }
}

/// The files that can change what the owner's own servers run.
fn show_steering(app: &App, review: &FolderReview) {
    if review.steering.is_empty() {
        return;
    }
    let title = app.lang().choose(
        "Can change what your own servers run, if they start here",
        "若你自己的服务器在此启动，可能改变其运行内容",
    );
    show_heading(app, title);
    app.screen.line(&format!("  {}", escape_invisible(&review.steering.join(", "))));
}

fn show_skills(app: &App, review: &FolderReview) {
    if !review.skills.is_empty() {
        show_heading(app, app.lang().choose("Skills", "技能"));
    }
    for skill in &review.skills {
        let scripts: Vec<String> = skill.scripts.iter().map(|file| file.display().to_string()).collect();
        let path = skill.path.display().to_string();
        app.screen.line(&format!(
            "  {NAME}{}{NAME:#}  {}",
            escape_invisible(&path),
            escape_invisible(&scripts.join(", "))
        ));
    }
}

/// All addresses and variables once more, next to the question: long lists before may have scrolled them away.
fn show_summary(app: &App, review: &FolderReview) {
    let lang = app.lang();
    let all = [
        (lang.choose("All addresses", "全部地址"), review.urls()),
        (lang.choose("All of your variables that it reads", "读取的全部变量"), review.variables()),
    ];
    for (title, texts) in all.into_iter().filter(|(_, texts)| !texts.is_empty()) {
        app.screen.line("");
        app.screen.line(&format!("{BOLD}{title} ({}){BOLD:#}", texts.len()));
        texts.iter().for_each(|text| app.screen.line(&format!("  {}", escape_invisible(text))));
    }
}

/// The values of each variable. A launch may set one more than once, such as in its entry and in its command line.
fn values_by_name(sets: &[(String, String)]) -> BTreeMap<&str, String> {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in sets {
        let known = values.entry(name.as_str()).or_default();
        if !known.is_empty() {
            known.push_str(", ");
        }
        known.push_str(value);
    }
    values
}

fn show_program(app: &App, program: &ReviewedProgram) {
    let lang = app.lang();
    let line = |text: &str| app.screen.line(text);
    let command = shell::command_line(program.command.iter().map(String::as_str));
    line(&format!("  {NAME}{}{NAME:#}  {}", escape_invisible(&program.purpose), escape_invisible(&command)));
    let detail = |label: &str, text: String| {
        if !text.is_empty() {
            line(&format!("      {DIM}{label}{DIM:#} {}", escape_invisible(&text)));
        }
    };
    let resolved = program.resolved.as_ref().map(|file| file.display().to_string());
    let unknown = || lang.choose("(not found)", "（未找到）").to_owned();
    detail(lang.choose("program:", "程序："), resolved.unwrap_or_else(unknown));
    detail(lang.choose("in:", "位于："), program.folder.display().to_string());
    detail(lang.choose("sees your:", "可见你的变量："), program.reads.join(", "));
    let sets: Vec<String> =
        program.sets.iter().map(|(name, value)| format!("{name}={}", shell::shell_quote(value))).collect();
    detail(lang.choose("is given:", "设置变量："), sets.join(" "));
    let files = match program.scope {
        LaunchScope::Named => {
            program.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
        }
        LaunchScope::Tasks | LaunchScope::Project => {
            let count = program.files.len();
            lang.choose(format!("all files ({count})"), format!("全部文件（{count} 个）"))
        }
    };
    detail(lang.choose("from this project:", "项目内文件："), files);
    if program.sandboxed {
        detail(lang.choose("sandbox:", "沙箱："), lang.choose("yes", "是").to_owned());
    }
}

fn texts(app: &App, title: &str, style: Style, all: &[LocalizedText]) {
    if all.is_empty() {
        return;
    }
    show_heading(app, title);
    for text in all {
        app.screen.line(&format!("  {style}!{style:#} {}", escape_invisible(&text.localize(app.lang()))));
    }
}

fn as_json(app: &App, review: &FolderReview) -> RawObject {
    let lang = app.lang();
    let localize =
        |texts: &[LocalizedText]| -> Vec<String> { texts.iter().map(|text| text.localize(lang)).collect() };
    let displayed = |path: &Path| path.display().to_string();
    let program_json = |program: &ReviewedProgram| {
        let files: Vec<String> = program.files.iter().map(|file| displayed(file)).collect();
        RawObject::default()
            .with("purpose", program.purpose.as_str())
            .with("command", RawJson::of(&program.command))
            .with("program", RawJson::of(&program.resolved.as_deref().map(displayed)))
            .with("cwd", displayed(&program.folder))
            .with("reads", RawJson::of(&program.reads))
            .with("sets", RawJson::of(&values_by_name(&program.sets)))
            .with("files", RawJson::of(&files))
            .with("all_files", program.scope != LaunchScope::Named)
            .with("sandbox", program.sandboxed)
    };
    let programs: Vec<RawObject> = review.programs.iter().map(program_json).collect();
    let user_programs: Vec<RawObject> = review.user_programs.iter().map(program_json).collect();
    let addresses: Vec<RawObject> = review
        .addresses
        .iter()
        .map(|address| {
            RawObject::default()
                .with("purpose", address.purpose.as_str())
                .with("url", address.url.as_str())
                .with("headers", RawJson::of(&address.headers.iter().cloned().collect::<BTreeMap<_, _>>()))
                .with("reads", RawJson::of(&address.reads))
        })
        .collect();
    let skills: Vec<RawObject> = review
        .skills
        .iter()
        .map(|skill| {
            let scripts: Vec<String> = skill.scripts.iter().map(|file| displayed(file)).collect();
            RawObject::default().with("path", displayed(&skill.path)).with("scripts", RawJson::of(&scripts))
        })
        .collect();
    let changes: Vec<RawObject> = review
        .changes
        .iter()
        .map(|change| {
            RawObject::default().with("file", change.file.as_str()).with("change", change.kind.name())
        })
        .collect();
    let mut settings = RawObject::default();
    for (key, value) in &review.settings {
        settings.set(key.clone(), value.as_str());
    }
    RawObject::default()
        .with("path", displayed(&review.folder))
        .with("was_trusted", review.status.is_trusted())
        .with("changed", review.status == TrustStatus::Changed)
        .with("changes", RawJson::of(&changes))
        .with("brings", RawJson::of(&review.brings))
        .with("programs", RawJson::of(&programs))
        .with("own_programs", RawJson::of(&user_programs))
        .with("own_problems", RawJson::of(&localize(&review.user_program_problems)))
        .with("variables", RawJson::of(&review.variables()))
        .with("addresses", RawJson::of(&addresses))
        .with("settings", settings)
        .with("powers", RawJson::of(&localize(&review.capabilities)))
        .with("steering", RawJson::of(&review.steering))
        .with("skills", RawJson::of(&skills))
        .with("suspicious", RawJson::of(&localize(&review.suspicious)))
        .with("problems", RawJson::of(&localize(&review.problems)))
}
