//! `toolhub skills new` and `toolhub skills validate`: for authors of skills.

use std::path::{Path, PathBuf};

use toolhub::Hub;
use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::shell;
use toolhub_core::{Localize as _, RawJson, RawObject};
use toolhub_engine::definition_scan::{Finding, escape_invisible};
use toolhub_skills::{
    Diagnostic, Runner, Severity, SkillOptions, SkillRegistry, SkillValidation, TemplateKind, create_skill,
};

use crate::app::App;
use crate::args::skills::{NewArgs, ValidateArgs};
use crate::commands::skills::{at_path, diagnostics_json, expand_home, shadowing_note};
use crate::exit::{Exit, UsageError};
use crate::render::findings;
use crate::render::screen::{BAD, GOOD, ODD};

pub(crate) async fn new(app: &App, args: &NewArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let before = app.paths();
    let place = match (&args.place, &before) {
        (Some(place), _) => expand_home(place),
        (None, Ok(paths)) => paths.config.with_file_name("skills"),
        (None, Err(_)) => app.paths()?.config.with_file_name("skills"),
    };
    let kind = if args.tool { TemplateKind::WithTool } else { TemplateKind::Instructions };
    let folder = match create_skill(&place, &args.name, kind, lang) {
        Ok(folder) => folder,
        Err(error) => return Err(UsageError(error.0.localize(lang)).into()),
    };
    if let (Ok(before), Ok(real)) = (&before, std::path::absolute(&folder)) {
        app.keep_trust(before, &[&real]);
    }
    let file = folder.join("SKILL.md");
    if app.screen.json {
        let displayed =
            RawObject::default().with("skill", args.name.as_str()).with("path", file.display().to_string());
        app.screen.json(&displayed.into_raw());
        return Ok(Exit::Done);
    }
    app.screen.line(&file.display().to_string());
    let (name, displayed) = (&args.name, folder.display().to_string());
    app.screen.note(&lang.choose(
        format!(
            "write what it does into `description`, and how into the text; then `toolhub skills validate {}`",
            shell::shell_quote(&displayed)
        ),
        format!(
            "在 `description` 中写明用途，在正文中写明做法；然后运行 `toolhub skills validate {}`",
            shell::shell_quote(&displayed)
        ),
    ));
    // The skill has been created, even if the configuration is invalid.
    let Ok(hub) = app.hub().await else { return Ok(Exit::Done) };
    let snapshot = hub.skills();
    let Some(known) = at_path(&snapshot, &folder.display().to_string()) else {
        let place = place.display();
        app.screen.note(&lang.choose(
            format!("skills are not looked for in `{place}`: add `folders = [\"{place}\"]` below `[skills]` to use it"),
            format!("不会在 `{place}` 中查找技能：如要使用，请在 `[skills]` 下加上 `folders = [\"{place}\"]`"),
        ));
        return Ok(Exit::Done);
    };
    if !known.approval.may_be_used() {
        app.screen.note(&lang.choose(
            format!(
                "it is the project's, so approve it when it is done: `toolhub skills approve {}`",
                shell::shell_quote(&displayed)
            ),
            format!("它属于项目，写好后请批准：`toolhub skills approve {}`", shell::shell_quote(&displayed)),
        ));
    }
    if args.tool {
        let tool = name.replace('-', "_");
        app.screen.note(&lang.choose(
            format!("try its tool: `toolhub skills run {name} {tool} text=\"three short words\"`"),
            format!("试用其工具：`toolhub skills run {name} {tool} text=\"三个 短 词\"`"),
        ));
    }
    Ok(Exit::Done)
}

pub(crate) async fn validate(app: &App, args: &ValidateArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let mut validation: Vec<SkillValidation> = Vec::new();
    // Skills can be validated with an invalid configuration, but not against other tools.
    let hub = app.hub().await.ok();
    for path in &args.paths {
        let Some(place) = place_of(app, path) else { return Err(UsageError(missing(app, path)).into()) };
        validation.extend(match hub {
            Some(hub) => toolhub_skills::validate_with_registry(&place, hub.skill_registry()).await,
            None => toolhub_skills::validate_with_python(&place, None).await,
        });
    }
    if let Some(hub) = hub {
        for one in &mut validation {
            let errors = syntax_errors(hub, one).await;
            one.diagnostics.extend(errors);
        }
    }
    let wrong = validation.iter().filter(|one| one.has_errors()).count();
    let warnings: Vec<Warnings> = validation.iter().map(|one| Warnings::of(hub, one)).collect();
    if app.screen.json {
        let displayed: Vec<RawObject> = validation
            .iter()
            .zip(&warnings)
            .map(|(one, warnings)| {
                RawObject::default()
                    .with("path", one.file.display().to_string())
                    .with("name", RawJson::of(&one.skill.as_ref().map(|skill| &skill.name)))
                    .with("valid", !one.has_errors())
                    .with("faults", diagnostics_json(&one.diagnostics, lang))
                    .with("suspicious", findings::as_json(&warnings.suspicious, lang))
                    .with("shadows", RawJson::of(&warnings.shadows))
            })
            .collect();
        app.screen.json(&RawJson::of(&displayed));
    } else {
        for (one, warnings) in validation.iter().zip(&warnings) {
            print(app, one);
            findings::show(app, &warnings.suspicious, "");
            for tool in &warnings.shadows {
                let (displayed, name) =
                    (shadowing_note(tool, lang), one.skill.as_ref().map_or("", |skill| &skill.name));
                let elsewhere = lang.choose(
                    format!("in a project's skill it is called `{name}__{tool}` instead"),
                    format!("若在项目的技能中，则称为 `{name}__{tool}`"),
                );
                app.screen.line(&format!("{ODD}!{ODD:#} {displayed}; {elsewhere}"));
            }
        }
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

/// The scripts that call tools and are not JavaScript.
async fn syntax_errors(hub: &Hub, validation: &SkillValidation) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let Some(skill) = &validation.skill else { return errors };
    let mut files: Vec<&String> =
        skill.tools.iter().filter(|tool| tool.runner == Runner::Calling).map(|tool| &tool.file).collect();
    files.dedup();
    for file in files {
        let file = skill.folder.join(file);
        let Ok(code) = std::fs::read_to_string(&file) else { continue };
        let Some(failure) = hub.script_syntax_error(&code).await else { continue };
        let why = |lang| failure.message.localize(lang);
        let problem = LocalizedText::new(
            format!("the script cannot be parsed: {}", why(Lang::En)),
            format!("无法解析脚本：{}", why(Lang::Zh)),
        );
        let remedy = failure.hint.clone().unwrap_or_else(|| {
            LocalizedText::new("correct the JavaScript at this place", "请改正此处的 JavaScript")
        });
        let diagnostic = Diagnostic::new(&file, Severity::Error, problem, remedy);
        errors.push(match failure.position {
            Some(place) => diagnostic.at(place.line as usize),
            None => diagnostic,
        });
    }
    errors
}

/// Findings that are not errors but should be reviewed.
struct Warnings {
    suspicious: Vec<Finding>,
    shadows: Vec<String>,
}

impl Warnings {
    fn of(hub: Option<&Hub>, validation: &SkillValidation) -> Self {
        let Some(skill) = &validation.skill else {
            return Self { suspicious: Vec::new(), shadows: Vec::new() };
        };
        let files = SkillRegistry::new(SkillOptions::default()).files_of(skill).unwrap_or_default();
        let names = skill.tools.iter().map(|tool| tool.name.as_str());
        Self {
            suspicious: Hub::suspicious_in_skill(skill, &files),
            shadows: hub.map(|hub| hub.shadowed_by(names)).unwrap_or_default(),
        }
    }
}

/// Resolves a path: relative to the current folder, otherwise to the folder of the config file, where skills are created.
fn place_of(app: &App, path: &Path) -> Option<PathBuf> {
    let expanded_path = expand_home(path);
    if expanded_path.exists() {
        return Some(expanded_path);
    }
    let config = app.paths().ok()?.config;
    let config_folder = config.parent()?;
    [config_folder.join(&expanded_path), config_folder.join("skills").join(&expanded_path)]
        .into_iter()
        .find(|place| place.exists())
}

fn missing(app: &App, path: &Path) -> String {
    let path = path.display();
    app.lang().choose(
        format!("there is nothing at `{path}`: name a skill's folder, its `SKILL.md` or its Python file"),
        format!("`{path}` 不存在：请给出技能目录、其 `SKILL.md` 或 Python 文件"),
    )
}

fn print(app: &App, validation: &SkillValidation) {
    let lang = app.lang();
    if !validation.has_errors() {
        let file = validation.file.display();
        app.screen.line(
            &lang.choose(format!("{GOOD}✓{GOOD:#} {file}: good"), format!("{GOOD}✓{GOOD:#} {file}：正确")),
        );
    }
    for diagnostic in &validation.diagnostics {
        let (sign, style) = match diagnostic.severity {
            Severity::Advice => ("!", ODD),
            Severity::Error | Severity::Fatal => ("✗", BAD),
        };
        app.screen.line(&format!("{style}{sign}{style:#} {}", escape_invisible(&diagnostic.localize(lang))));
    }
}
