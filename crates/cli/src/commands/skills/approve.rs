//! `toolhub skills approve`: approves skills in their current state, after showing them.

use std::io::IsTerminal as _;
use std::path::Path;

use toolhub::Hub;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_engine::definition_scan::{Finding, escape_invisible};
use toolhub_skills::{ApprovalState, FileSet, RegisteredSkill, SkillShape, SkillSnapshot};

use crate::app::App;
use crate::args::skills::SkillApproveArgs;
use crate::commands::skills::{at_path, find_skill, print_skill};
use crate::exit::{Exit, UsageError};
use crate::render::findings;
use crate::render::screen::GOOD;

pub(crate) async fn run(app: &App, args: &SkillApproveArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let snapshot = hub.skills();
    let mut selected: Vec<RegisteredSkill> = Vec::new();
    if args.all {
        selected.extend(snapshot.skills.iter().filter(|known| !known.approval.may_be_used()).cloned());
    }
    for name in &args.names {
        selected.push(matching_skill(app, &snapshot, name, args.revoke)?.clone());
    }
    let mut json = Vec::new();
    let mut worst = Exit::Done;
    for known in &selected {
        let (done, exit) = match args.revoke {
            true => revoke(app, hub, known).await?,
            false => approve(app, hub, known, args.yes).await?,
        };
        json.push(done);
        if exit != Exit::Done {
            worst = exit;
        }
    }
    if app.screen.json {
        app.screen.json(&RawJson::of(&json));
    } else if selected.is_empty() {
        app.screen.note(app.lang().choose("no skill waits for approval", "没有等待审批的技能"));
    }
    Ok(worst)
}

/// The skill with a name or path. Of several with the same name, the one whose approval would change.
fn matching_skill<'a>(
    app: &App,
    snapshot: &'a SkillSnapshot,
    word: &str,
    revoke: bool,
) -> Result<&'a RegisteredSkill, UsageError> {
    if let Some(known) = at_path(snapshot, word) {
        return Ok(known);
    }
    let changes = |known: &&RegisteredSkill| match revoke {
        true => matches!(known.approval, ApprovalState::Approved | ApprovalState::Changed),
        false => !known.approval.may_be_used(),
    };
    let of_name = || snapshot.skills.iter().filter(|known| known.skill.name == word);
    let matching_skill: Vec<&RegisteredSkill> = of_name().filter(changes).collect();
    match &matching_skill[..] {
        [one] => Ok(one),
        [] => match of_name().find(|known| known.approval != ApprovalState::NotRequired) {
            Some(known) => Ok(known),
            None => find_skill(app, snapshot, word),
        },
        several => {
            let places = several.iter().map(|known| format!("`{}`", location(known).display()));
            let places = places.collect::<Vec<_>>().join(app.lang().choose(", ", "、"));
            let word = escape_invisible(word);
            Err(UsageError(app.lang().choose(
                format!("`{word}` is in {places}: say which by its path"),
                format!("`{word}` 在 {places} 中都有：请用路径指明"),
            )))
        }
    }
}

/// The path of a skill, for display.
pub(crate) fn location(known: &RegisteredSkill) -> &Path {
    match known.skill.shape {
        SkillShape::Folder => &known.skill.folder,
        SkillShape::PythonFile => &known.skill.file,
    }
}

fn approval_json(known: &RegisteredSkill, approved: bool) -> RawObject {
    RawObject::default()
        .with("skill", known.skill.name.as_str())
        .with("path", known.skill.file.display().to_string())
        .with("before", known.approval.name())
        .with("approved", approved)
        .with("grants", RawJson::of(&known.skill.requested))
}

async fn approve(
    app: &App,
    hub: &Hub,
    known: &RegisteredSkill,
    yes: bool,
) -> anyhow::Result<(RawObject, Exit)> {
    let (lang, name) = (app.lang(), &known.skill.name);
    if known.approval == ApprovalState::NotRequired {
        if !app.screen.json {
            app.screen.note(&lang.choose(
                format!("`{name}` is your own and asks for nothing: it needs no approval"),
                format!("`{name}` 是你自己的技能且不请求权限，无需批准"),
            ));
        }
        return Ok((approval_json(known, false), Exit::Done));
    }
    let files = match hub.skill_registry().files_of(&known.skill) {
        Ok(files) => files,
        Err(why) => {
            app.screen.error(&why.localize(lang));
            return Ok((approval_json(known, false), Exit::Failed));
        }
    };
    if !app.screen.json {
        print_skill(app, hub, known).await;
    }
    let suspicious = Hub::suspicious_in_skill(&known.skill, &files);
    let json = |approved: bool| {
        approval_json(known, approved)
            .with("files", files.files.len() as u64)
            .with("suspicious", findings::as_json(&suspicious, lang))
            .with("shadows", RawJson::of(&hub.shadowed_by(known.tool_names.iter().map(String::as_str))))
    };
    if !yes && let Err(refused) = consent(app, known, &suspicious).await? {
        app.screen.error(&refused);
        return Ok((json(false), Exit::Failed));
    }
    hub.approve_skill(&known.skill, &files).await?;
    if !app.screen.json {
        let with = file_count(&files, lang);
        app.screen.note(&lang.choose(
            format!(
                "{GOOD}✓{GOOD:#} approved `{name}` with its {with}; a change to any of them takes that back"
            ),
            format!("{GOOD}✓{GOOD:#} 已批准 `{name}` 及其 {with}；任何改动都会使批准失效"),
        ));
    }
    Ok((json(true).with("digest", files.digest()), Exit::Done))
}

/// The number of files as text.
pub(crate) fn file_count(files: &FileSet, lang: Lang) -> String {
    match files.files.len() {
        1 => lang.choose("1 file".to_owned(), "1 个文件".to_owned()),
        many => lang.choose(format!("{many} files"), format!("{many} 个文件")),
    }
}

/// The owner's consent: by a prompt at a terminal. Without a terminal, only skills without suspicious findings that request no
/// write access, environment variables, network or tools are approved; otherwise returns the reason.
async fn consent(
    app: &App,
    known: &RegisteredSkill,
    suspicious: &[Finding],
) -> anyhow::Result<Result<(), String>> {
    let (lang, requested) = (app.lang(), &known.skill.requested);
    let name = escape_invisible(&known.skill.name);
    if !app.screen.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        return Ok(match ask(app, &name).await? {
            true => Ok(()),
            false => Err(lang.choose(format!("`{name}` is not approved"), format!("未批准 `{name}`"))),
        });
    }
    let reaches_out = !requested.write.is_empty()
        || !requested.environment.is_empty()
        || requested.network
        || requested.tools;
    let why = match (suspicious.is_empty(), reaches_out) {
        (true, false) => return Ok(Ok(())),
        (false, _) => lang.choose("something in it is suspicious".to_owned(), "内容可疑".to_owned()),
        (true, true) => {
            let requested = requested.localize(lang);
            lang.choose(format!("it asks to {requested}"), format!("它请求{requested}"))
        }
    };
    Ok(Err(lang.choose(
        format!("`{name}` is not approved, as {why}: read it, then add `--yes` if you agree"),
        format!("未批准 `{name}`：{why}；看过之后如果同意，请加 `--yes`"),
    )))
}

async fn ask(app: &App, name: &str) -> anyhow::Result<bool> {
    let question =
        app.lang().choose(format!("approve `{name}`? [y/N] "), format!("要批准 `{name}` 吗？[y/N] "));
    app.confirm(&question).await
}

async fn revoke(app: &App, hub: &Hub, known: &RegisteredSkill) -> anyhow::Result<(RawObject, Exit)> {
    let (lang, name) = (app.lang(), &known.skill.name);
    let revoked = hub.revoke_skill(&known.skill).await?;
    match revoked {
        true => app.screen.note(&lang.choose(
            format!(
                "`{name}` is no longer approved; a running `toolhub serve` applies this within 5 seconds"
            ),
            format!("已撤销对 `{name}` 的批准；正在运行的 `toolhub serve` 会在 5 秒内得知"),
        )),
        false => app.screen.error(lang.choose("there is no such approval", "没有这样的批准")),
    }
    let exit = if revoked { Exit::Done } else { Exit::Failed };
    Ok((approval_json(known, false).with("revoked", revoked), exit))
}
