//! `toolhub skills`: lists skills, and shows one skill.

pub(crate) mod approve;
pub(crate) mod authoring;
pub(crate) mod run;

use std::path::{Path, PathBuf};

use toolhub::Hub;
use toolhub_core::shell;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_engine::definition_scan::escape_invisible;
use toolhub_engine::similar_names;
use toolhub_skills::{
    ApprovalState, Diagnostic, RegisteredSkill, Severity, SkillShape, SkillSnapshot, SkippedFile, use_skill,
};

use crate::app::App;
use crate::args::skills::{SkillListArgs, SkillShowArgs, SkillsArgs, SkillsCommand};
use crate::exit::{Exit, UsageError};
use crate::render::findings;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, table_lines, wrap_text};

pub(crate) async fn run(app: &App, args: SkillsArgs) -> anyhow::Result<Exit> {
    match args.command {
        None => list(app, &SkillListArgs::default()).await,
        Some(SkillsCommand::List(args)) => list(app, &args).await,
        Some(SkillsCommand::Show(args)) => show(app, &args).await,
        Some(SkillsCommand::Validate(args)) => authoring::validate(app, &args).await,
        Some(SkillsCommand::New(args)) => authoring::new(app, &args).await,
        Some(SkillsCommand::Run(args)) => run::run(app, &args).await,
        Some(SkillsCommand::Approve(args)) => approve::run(app, &args).await,
    }
}

/// The state of a skill in JSON.
pub(crate) fn state(known: &RegisteredSkill) -> &'static str {
    match (known.approval.may_be_used(), &known.hidden_by) {
        (true, None) => "used",
        (true, Some(_)) => "hidden",
        (false, _) => "waiting",
    }
}

async fn list(app: &App, args: &SkillListArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    if args.servers {
        app.interruptible(async {
            hub.list_again().await;
            hub.refresh_server_skills().await;
        })
        .await?;
    }
    let snapshot = hub.skills();
    if app.screen.json {
        app.screen.json(&as_json(hub, &snapshot, app.lang()));
        return Ok(Exit::Done);
    }
    print(app, &snapshot);
    report_problems(app, hub, &snapshot);
    Ok(Exit::Done)
}

fn print(app: &App, snapshot: &SkillSnapshot) {
    let lang = app.lang();
    let mut rows: Vec<Vec<Cell>> = snapshot
        .skills
        .iter()
        .map(|known| {
            let (word, style) = match state(known) {
                "used" => ("", GOOD),
                "hidden" => (lang.choose("hidden", "被覆盖"), ODD),
                _ => (lang.choose("not approved", "未批准"), BAD),
            };
            let tools = known.skill.tools.len();
            let tools = match tools {
                0 => String::new(),
                1 => lang.choose("1 tool".to_owned(), "1 个工具".to_owned()),
                many => lang.choose(format!("{many} tools"), format!("{many} 个工具")),
            };
            vec![
                Cell::new(escape_invisible(&known.skill.name), NAME),
                Cell::new(origin(known.skill.origin.name(), lang), DIM),
                Cell::new(word, style),
                Cell::new(tools, DIM),
                Cell::from(one_line(&known.skill.description).as_str()),
            ]
        })
        .collect();
    for skill in &snapshot.remote {
        rows.push(vec![
            Cell::new(escape_invisible(&skill.shown()), NAME),
            Cell::new(lang.choose("server", "服务器"), DIM),
            Cell::new("", GOOD),
            Cell::new("", DIM),
            Cell::from(one_line(&skill.description).as_str()),
        ]);
    }
    // Removes empty columns.
    for column in [3, 2] {
        if rows.iter().all(|row| row.get(column).is_none_or(Cell::is_empty)) {
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
}

fn one_line(text: &str) -> String {
    escape_invisible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

pub(crate) fn origin(name: &'static str, lang: Lang) -> &'static str {
    match name {
        "project" => lang.choose("project", "项目"),
        "config" => lang.choose("config", "配置"),
        _ => lang.choose("user", "用户"),
    }
}

/// Prints warnings about skills, and how to resolve them.
fn report_problems(app: &App, hub: &Hub, snapshot: &SkillSnapshot) {
    let lang = app.lang();
    if snapshot.skills.is_empty() && snapshot.skipped.is_empty() && snapshot.remote.is_empty() {
        let text = match hub.settings().skills.enabled {
            true => lang.choose(
                "no skills; make one with `toolhub skills new NAME`",
                "没有技能；可用 `toolhub skills new 名称` 新建",
            ),
            false => lang.choose(
                "skills are switched off: `[skills] enabled = false`",
                "技能已关闭：`[skills] enabled = false`",
            ),
        };
        app.screen.note(text);
    }
    for known in &snapshot.skills {
        let name = escape_invisible(&known.skill.name);
        let place = known.skill.file.display();
        if let Some(by) = &known.hidden_by {
            let by = by.display();
            app.screen.warn(&lang.choose(
                format!("`{name}` in `{place}` is hidden by `{by}`"),
                format!("`{place}` 中的 `{name}` 被 `{by}` 覆盖"),
            ));
        }
        match &known.approval {
            ApprovalState::NotRequired | ApprovalState::Approved => {}
            // An unreadable skill cannot be approved; the reason contains the fix.
            ApprovalState::Unreadable(why) => {
                let why = why.localize(lang);
                let why = escape_invisible(&why);
                app.screen.warn(
                    &lang.choose(format!("`{name}` is not used: {why}"), format!("`{name}` 未启用：{why}")),
                );
            }
            ApprovalState::Unapproved | ApprovalState::Changed => {
                let why = known.approval.localize(lang);
                // If two skills have the same name, commands must use their paths.
                let named = |other: &&RegisteredSkill| other.skill.name == known.skill.name;
                let word = match snapshot.skills.iter().filter(named).count() > 1 {
                    true => approve::location(known).display().to_string(),
                    false => name.clone().into_owned(),
                };
                app.screen.warn(&lang.choose(
                    format!("`{name}` is not used: {why}; see `toolhub skills show {0}`, then `toolhub skills approve {0}`", shell::shell_quote(&word)),
                    format!("`{name}` 未启用：{why}；见 `toolhub skills show {0}`，再用 `toolhub skills approve {0}`", shell::shell_quote(&word)),
                ));
            }
        }
        for tool in hub.shadowed_by(known.tool_names.iter().map(String::as_str)) {
            app.screen.warn(&format!("`{name}`: {}", shadowing_note(&tool, lang)));
        }
        for diagnostic in
            known.skill.diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Advice)
        {
            app.screen.warn(&escape_invisible(&diagnostic.localize(lang)));
        }
    }
    for skipped in &snapshot.skipped {
        let fatal = skipped.diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Advice);
        for diagnostic in fatal {
            let message = diagnostic.localize(lang);
            let message = escape_invisible(&message);
            app.screen.warn(&lang.choose(format!("skipped: {message}"), format!("已跳过：{message}")));
        }
    }
    for note in &snapshot.notes {
        app.screen.warn(&note.localize(lang));
    }
}

fn as_json(hub: &Hub, snapshot: &SkillSnapshot, lang: Lang) -> RawJson {
    let skills = snapshot.skills.iter().map(|known| {
        let shadows = hub.shadowed_by(known.tool_names.iter().map(String::as_str));
        described(known, lang).with("shadows", RawJson::of(&shadows))
    });
    let remote = snapshot.remote.iter().map(|skill| {
        RawObject::default()
            .with("name", skill.shown())
            .with("description", skill.description.as_str())
            .with("origin", "server")
            .with("path", skill.uri.as_str())
            .with("state", "used")
            .with("server", skill.server.as_str())
    });
    let skipped = snapshot.skipped.iter().map(|skipped| skipped_json(skipped, lang));
    RawJson::of(&skills.chain(remote).chain(skipped).collect::<Vec<_>>())
}

fn skipped_json(skipped: &SkippedFile, lang: Lang) -> RawObject {
    RawObject::default()
        .with("name", RawJson::null())
        .with("origin", skipped.origin.name())
        .with("path", skipped.file.display().to_string())
        .with("state", "skipped")
        .with("faults", diagnostics_json(&skipped.diagnostics, lang))
}

pub(crate) fn diagnostics_json(diagnostics: &[Diagnostic], lang: Lang) -> RawJson {
    let all: Vec<RawObject> = diagnostics
        .iter()
        .map(|diagnostic| {
            RawObject::default()
                .with("file", diagnostic.file.display().to_string())
                .with("line", RawJson::of(&diagnostic.line))
                .with("weight", diagnostic.severity.name())
                .with("what", diagnostic.problem.localize(lang))
                .with("instead", diagnostic.remedy.localize(lang))
        })
        .collect();
    RawJson::of(&all)
}

fn described(known: &RegisteredSkill, lang: Lang) -> RawObject {
    let skill = &known.skill;
    RawObject::default()
        .with("name", skill.name.as_str())
        .with("description", skill.description.as_str())
        .with("origin", skill.origin.name())
        .with("path", skill.file.display().to_string())
        .with("state", state(known))
        .with("standing", known.approval.name())
        .with("hidden_by", RawJson::of(&known.hidden_by.as_ref().map(|by| by.display().to_string())))
        .with("tools", RawJson::of(&known.tool_names))
        .with("grants", RawJson::of(&known.grants))
        .with("faults", diagnostics_json(&skill.diagnostics, lang))
}

/// The note for a tool with the name of a native tool.
pub(crate) fn shadowing_note(tool: &str, lang: Lang) -> String {
    lang.choose(
        format!("its tool `{tool}` shadows the native tool `{tool}`, and is called in its place"),
        format!("其工具 `{tool}` 覆盖了同名的内置工具 `{tool}`，会代替它被调用"),
    )
}

/// Expands `~`, if the shell did not.
pub(crate) fn expand_home(path: &Path) -> PathBuf {
    let home = || Some(std::env::home_dir()?.join(path.strip_prefix("~").ok()?));
    home().unwrap_or_else(|| path.to_owned())
}

/// The skill at a path: its folder, its `SKILL.md` or its single file.
pub(crate) fn at_path<'a>(snapshot: &'a SkillSnapshot, word: &str) -> Option<&'a RegisteredSkill> {
    let place = expand_home(Path::new(word)).canonicalize().ok()?;
    let is = |path: &Path| path.canonicalize().is_ok_and(|path| path == place);
    snapshot.skills.iter().find(|known| {
        is(&known.skill.file) || known.skill.shape == SkillShape::Folder && is(&known.skill.folder)
    })
}

/// The skill with that name, path, or tool.
pub(crate) fn find_skill<'a>(
    app: &App,
    snapshot: &'a SkillSnapshot,
    name: &str,
) -> Result<&'a RegisteredSkill, UsageError> {
    let found = snapshot
        .named(name)
        .or_else(|| at_path(snapshot, name))
        .or_else(|| snapshot.with_tool(name).map(|(known, _)| known));
    found.ok_or_else(|| {
        let lang = app.lang();
        let names = snapshot.skills.iter().map(|known| known.skill.name.as_str());
        let lies_in =
            |known: &&RegisteredSkill| known.skill.folder.file_name().is_some_and(|own| own == name);
        let by_folder = snapshot.skills.iter().find(lies_in).map(|known| known.skill.name.clone());
        let suggestion = by_folder.or_else(|| similar_names(name, names, 1).pop());
        let name = escape_invisible(name);
        UsageError(match suggestion {
            Some(suggestion) => lang.choose(
                format!("there is no skill `{name}`; did you mean `{suggestion}`?"),
                format!("没有技能 `{name}`；是否想用 `{suggestion}`？"),
            ),
            None => lang.choose(
                format!("there is no skill `{name}`; `toolhub skills list` shows them"),
                format!("没有技能 `{name}`；`toolhub skills list` 列出所有技能"),
            ),
        })
    })
}

async fn show(app: &App, args: &SkillShowArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let snapshot = hub.skills();
    let known = find_skill(app, &snapshot, &args.name)?;
    if let Some(file) = &args.file {
        return Ok(show_file(app, known, file));
    }
    let text = match known.skill.shape {
        SkillShape::Folder => use_skill::instructions(hub.skill_registry(), &known.skill)
            .map_err(|error| error.localize(app.lang())),
        SkillShape::PythonFile => Ok("".into()),
    };
    if app.screen.json {
        let frontmatter = RawJson::of(&known.skill.frontmatter);
        let files = hub.skill_registry().files_of(&known.skill).unwrap_or_default();
        let suspicious = findings::as_json(&Hub::suspicious_in_skill(&known.skill, &files), app.lang());
        let shadows = hub.shadowed_by(known.tool_names.iter().map(String::as_str));
        let files: Vec<RawObject> = files
            .files
            .iter()
            .map(|(path, file)| {
                RawObject::default()
                    .with("path", path.as_str())
                    .with("size", file.size)
                    .with("sha256", file.digest.as_str())
            })
            .collect();
        let shown = described(known, app.lang())
            .with("frontmatter", frontmatter)
            .with("asked", RawJson::of(&known.skill.requested))
            .with("files", RawJson::of(&files))
            .with("suspicious", suspicious)
            .with("shadows", RawJson::of(&shadows))
            .with("instructions", RawJson::of(&text.as_deref().ok()));
        app.screen.json(&shown.into_raw());
        return Ok(Exit::Done);
    }
    print_skill(app, hub, known).await;
    let others = snapshot.skills.iter().filter(|other| other.skill.name == known.skill.name);
    for other in others.filter(|other| other.skill.file != known.skill.file) {
        let place = other.skill.file.display().to_string();
        app.screen.warn(&another_of_its_name(&escape_invisible(&place), app.lang()));
    }
    match text {
        Ok(text) if text.is_empty() => {}
        Ok(text) => {
            app.screen.line("");
            app.screen.verbatim(&visible_text(&text));
        }
        Err(error) => app.screen.error(&error),
    }
    Ok(Exit::Done)
}

fn another_of_its_name(place: &str, lang: Lang) -> String {
    lang.choose(
        format!("another skill of this name is in `{place}`; name it by its path"),
        format!("`{place}` 中还有同名技能；请用路径指明"),
    )
}

/// Makes invisible characters visible, line by line.
fn visible_text(text: &str) -> String {
    text.lines().map(escape_invisible).collect::<Vec<_>>().join("\n")
}

fn show_file(app: &App, known: &RegisteredSkill, file: &str) -> Exit {
    match toolhub_skills::skill_file::read(&known.skill.folder, file, 1 << 20) {
        Ok(bytes) => {
            app.screen.verbatim(&visible_text(&String::from_utf8_lossy(&bytes)));
            Exit::Done
        }
        Err(error) => {
            app.screen.error(&error.text().localize(app.lang()));
            Exit::Failed
        }
    }
}

/// Prints a skill and its permissions, without its text.
pub(crate) async fn print_skill(app: &App, hub: &Hub, known: &RegisteredSkill) {
    let (lang, skill) = (app.lang(), &known.skill);
    let approval = known.approval.localize(lang);
    let name = escape_invisible(&skill.name);
    let whose = origin(skill.origin.name(), lang);
    app.screen.line(&format!("{NAME}{name}{NAME:#} {DIM}({whose}){DIM:#}  {approval}"));
    let width = app.screen.width().map(|width| width.saturating_sub(2));
    for line in wrap_text(&one_line(&skill.description), width) {
        app.screen.line(&format!("  {line}"));
    }
    let place = skill.file.display();
    field(app, lang.choose("file", "文件"), &place.to_string());
    for key in ["license", "compatibility", "allowed-tools"] {
        if let Some(value) = skill.frontmatter.get(key) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            field(app, key, &one_line(&value));
        }
    }
    if !known.tool_names.is_empty() {
        field(app, lang.choose("tools", "工具"), &known.tool_names.join(", "));
        field(app, lang.choose("its scripts may", "脚本可以"), &known.grants.localize(lang));
        if !skill.requested.is_empty() {
            field(app, lang.choose("of that it asks for", "其中由它请求"), &skill.requested.localize(lang));
        }
    }
    for tool in hub.shadowed_by(known.tool_names.iter().map(String::as_str)) {
        app.screen.line(&format!("  {ODD}!{ODD:#} {}", shadowing_note(&tool, lang)));
    }
    if let Ok(files) = hub.skill_registry().files_of(skill) {
        let runs = |path: &&String| path.starts_with("scripts/") || skill.shape == SkillShape::PythonFile;
        let count = approve::file_count(&files, lang);
        let count = match files.files.keys().filter(runs).count() {
            0 => count,
            scripts => lang.choose(
                format!("{count}, of them scripts: {scripts}"),
                format!("{count}，其中脚本 {scripts} 个"),
            ),
        };
        field(app, lang.choose("in all", "共"), &count);
        findings::show(app, &Hub::suspicious_in_skill(skill, &files), "  ");
        let others: Vec<String> =
            files.files.keys().filter(|path| *path != "SKILL.md").take(20).cloned().collect();
        let more = files.files.len().saturating_sub(others.len() + 1);
        if !others.is_empty() {
            let more = if more > 0 { format!(", … (+{more})") } else { String::new() };
            field(
                app,
                lang.choose("other files", "其他文件"),
                &format!("{}{more}", escape_invisible(&others.join(", "))),
            );
        }
        if let Some(change) = hub.skill_change(skill, &files).await {
            for (paths, en, zh) in [
                (&change.added, "new since it was approved", "批准后新增"),
                (&change.changed, "changed since it was approved", "批准后改动"),
                (&change.removed, "gone since it was approved", "批准后删除"),
            ] {
                if !paths.is_empty() {
                    field(app, lang.choose(en, zh), &escape_invisible(&paths.join(", ")));
                }
            }
        }
    }
    for diagnostic in &skill.diagnostics {
        app.screen.line(&format!("  {ODD}!{ODD:#} {}", escape_invisible(&diagnostic.localize(lang))));
    }
}

fn field(app: &App, name: &str, value: &str) {
    let colon = app.lang().choose(": ", "：");
    let width = app.screen.width().map(|width| width.saturating_sub(4));
    for (at, line) in wrap_text(&format!("{name}{colon}{value}"), width).into_iter().enumerate() {
        match at {
            0 => app.screen.line(&format!(
                "  {BOLD}{}{BOLD:#}{}",
                name,
                line.strip_prefix(name).unwrap_or(&line)
            )),
            _ => app.screen.line(&format!("    {line}")),
        }
    }
}
