//! `toolhub skills approve`: agreeing to skills as they are now, after showing what one agrees to.

use toolhub::Hub;
use toolhub_core::{RawJson, RawObject, Say as _};
use toolhub_skills::{Known, Standing};

use super::app::App;
use super::exit::Exit;
use super::options_skills::SkillApproveArgs;
use super::screen::GOOD;
use super::skills::{named, present};

pub(crate) async fn run(app: &App, args: &SkillApproveArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let shelf = hub.skills();
    let mut wanted: Vec<Known> = Vec::new();
    if args.all {
        wanted.extend(shelf.skills.iter().filter(|known| !known.standing.may_be_used()).cloned());
    }
    for name in &args.names {
        // Of two with one name, the one that waits is meant.
        let waiting =
            shelf.skills.iter().find(|known| known.skill.name == *name && known.standing != Standing::Own);
        let found = match waiting {
            Some(known) => known,
            None => named(app, &shelf, name)?,
        };
        wanted.push(found.clone());
    }
    let mut shown = Vec::new();
    let mut worst = Exit::Done;
    for known in &wanted {
        let (done, exit) = match args.revoke {
            true => revoke(app, hub, known).await?,
            false => approve(app, hub, known).await?,
        };
        shown.push(done);
        if exit != Exit::Done {
            worst = exit;
        }
    }
    if app.screen.json {
        app.screen.json(&RawJson::of(&shown));
    } else if wanted.is_empty() {
        app.screen.note(app.lang().pick("no skill waits for approval", "没有等待批准的技能"));
    }
    Ok(worst)
}

fn told(known: &Known, approved: bool) -> RawObject {
    RawObject::default()
        .with("skill", known.skill.name.as_str())
        .with("path", known.skill.file.display().to_string())
        .with("before", known.standing.name())
        .with("approved", approved)
        .with("grants", RawJson::of(&known.skill.asked))
}

async fn approve(app: &App, hub: &Hub, known: &Known) -> anyhow::Result<(RawObject, Exit)> {
    let (lang, name) = (app.lang(), &known.skill.name);
    if known.standing == Standing::Own {
        if !app.screen.json {
            app.screen.note(&lang.pick(
                format!("`{name}` is your own and asks for nothing: it needs no approval"),
                format!("`{name}` 是你自己的技能且不请求权限，无需批准"),
            ));
        }
        return Ok((told(known, false), Exit::Done));
    }
    let files = match hub.skill_book().files_of(&known.skill) {
        Ok(files) => files,
        Err(why) => {
            app.screen.error(&why.say(lang));
            return Ok((told(known, false), Exit::Failed));
        }
    };
    if !app.screen.json {
        present(app, hub, known).await;
    }
    hub.approve_skill(&known.skill, &files).await?;
    if !app.screen.json {
        let count = files.files.len();
        app.screen.note(&lang.pick(
            format!("{GOOD}✓{GOOD:#} approved `{name}` with its {count} files; a change to any of them takes that back"),
            format!("{GOOD}✓{GOOD:#} 已批准 `{name}` 及其 {count} 个文件；任何改动都会使批准失效"),
        ));
    }
    Ok((told(known, true).with("digest", files.digest()), Exit::Done))
}

async fn revoke(app: &App, hub: &Hub, known: &Known) -> anyhow::Result<(RawObject, Exit)> {
    let (lang, name) = (app.lang(), &known.skill.name);
    let revoked = hub.revoke_skill(&known.skill).await?;
    match revoked {
        true => app
            .screen
            .note(&lang.pick(format!("`{name}` is no longer approved"), format!("已撤销对 `{name}` 的批准"))),
        false => app.screen.error(lang.pick("there is no such approval", "没有这样的批准")),
    }
    let exit = if revoked { Exit::Done } else { Exit::Failed };
    Ok((told(known, false).with("revoked", revoked), exit))
}
