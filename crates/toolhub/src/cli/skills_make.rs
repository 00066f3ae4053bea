//! `toolhub skills new` and `toolhub skills validate`: for whoever writes skills.

use std::path::Path;

use toolhub_core::{RawJson, RawObject, Say as _};
use toolhub_engine::suspicion::visible;
use toolhub_skills::{Kind, Looked, Weight, make};

use super::app::App;
use super::exit::{Exit, UsageError};
use super::options_skills::{NewArgs, ValidateArgs};
use super::screen::{BAD, GOOD, ODD};
use super::skills::faults_json;

pub(crate) fn new(app: &App, args: &NewArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let beside = || app.places().map(|places| places.config.with_file_name("skills"));
    let place = match &args.place {
        Some(place) => place.clone(),
        None => beside()?,
    };
    let kind = if args.tool { Kind::WithTool } else { Kind::Instructions };
    let folder = match make(&place, &args.name, (kind, lang)) {
        Ok(folder) => folder,
        Err(error) => return Err(UsageError(error.0.say(lang)).into()),
    };
    let file = folder.join("SKILL.md");
    if app.screen.json {
        let shown =
            RawObject::default().with("skill", args.name.as_str()).with("path", file.display().to_string());
        app.screen.json(&shown.into_raw());
        return Ok(Exit::Done);
    }
    app.screen.line(&file.display().to_string());
    let (name, shown) = (&args.name, folder.display());
    app.screen.note(&lang.pick(
        format!("write what it does into `description`, and how into the text; then `toolhub skills validate {shown}`"),
        format!("在 `description` 中写明用途，在正文中写明做法；然后运行 `toolhub skills validate {shown}`"),
    ));
    if args.tool {
        let tool = name.replace('-', "_");
        app.screen.note(&lang.pick(
            format!("try its tool: `toolhub skills run {name} {tool} text=\"three short words\"`"),
            format!("试用其工具：`toolhub skills run {name} {tool} text=\"三个 短 词\"`"),
        ));
    }
    Ok(Exit::Done)
}

pub(crate) fn validate(app: &App, args: &ValidateArgs) -> anyhow::Result<Exit> {
    let mut looked: Vec<Looked> = Vec::new();
    for path in &args.paths {
        if !path.exists() {
            return Err(UsageError(missing(app, path)).into());
        }
        looked.extend(toolhub_skills::validate(path));
    }
    let wrong = looked.iter().filter(|one| one.is_wrong()).count();
    if app.screen.json {
        let shown: Vec<RawObject> = looked
            .iter()
            .map(|one| {
                RawObject::default()
                    .with("path", one.file.display().to_string())
                    .with("name", RawJson::of(&one.skill.as_ref().map(|skill| &skill.name)))
                    .with("valid", !one.is_wrong())
                    .with("faults", faults_json(&one.faults, app.lang()))
            })
            .collect();
        app.screen.json(&RawJson::of(&shown));
    } else {
        looked.iter().for_each(|one| print(app, one));
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

fn missing(app: &App, path: &Path) -> String {
    let path = path.display();
    app.lang().pick(
        format!("there is nothing at `{path}`: name a skill's folder or its `SKILL.md`"),
        format!("`{path}` 不存在：请给出技能文件夹或其 `SKILL.md`"),
    )
}

fn print(app: &App, looked: &Looked) {
    let lang = app.lang();
    if !looked.is_wrong() {
        let file = looked.file.display();
        app.screen.line(
            &lang.pick(format!("{GOOD}✓{GOOD:#} {file}: good"), format!("{GOOD}✓{GOOD:#} {file}：正确")),
        );
    }
    for fault in &looked.faults {
        let (sign, style) = match fault.weight {
            Weight::Advice => ("!", ODD),
            Weight::Wrong | Weight::Fatal => ("✗", BAD),
        };
        app.screen.line(&format!("{style}{sign}{style:#} {}", visible(&fault.say(lang))));
    }
}
