//! `toolhub skills run`: runs a tool of one skill, regardless of other tools with the same name.

use toolhub::{Coercion, Source, ToolCall, ToolError};
use toolhub_core::shell;
use toolhub_core::{Localize as _, RawJson};
use toolhub_skills::{RegisteredSkill, Severity};

use crate::app::App;
use crate::args::skills::SkillRunArgs;
use crate::args::tool_arguments::{self, PairError};
use crate::commands::skills::find_skill;
use crate::commands::tools::call;
use crate::exit::{Exit, UsageError};

pub(crate) async fn run(app: &App, args: &SkillRunArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let given =
        args.args.as_deref().map(|text| tool_arguments::parse_json_arguments(text, lang)).transpose()?;
    let hub = app.hub().await?;
    let snapshot = hub.skills();
    let known = find_skill(app, &snapshot, &args.name)?;
    // For a skill with one tool the name may be omitted; then the first positional argument is a pair.
    let mut pairs = args.pairs.clone();
    let mut tool = args.tool.clone();
    if let Some(first) = tool.as_ref().filter(|word| word.contains('=')).cloned() {
        pairs.insert(0, first);
        tool = None;
    }
    let (name, schema) = chosen(app, known, tool.as_deref())?;
    let arguments = match tool_arguments::with_pairs(given.as_ref(), &pairs, &schema, lang) {
        Ok(arguments) => arguments,
        Err(PairError::Usage(error)) => return Err(error.into()),
        Err(PairError::Unknown(problem)) => {
            let error = ToolError::InvalidArguments { tool: name.as_str().into(), problems: vec![problem] };
            app.screen.error(&error.localize(lang));
            return Ok(Exit::from(&error));
        }
    };
    let mut requested = ToolCall::new(name.as_str(), arguments);
    requested.coercion = Coercion::On;
    requested.sources = Some([Source::Skill].into());
    requested.timeout = args.timeout.map(|span| span.0);
    let outcome = app.interruptible(hub.call(requested)).await?;
    call::show_outcome(app, &outcome);
    Ok(outcome.result.as_ref().err().map_or(Exit::Done, Exit::from))
}

/// The selected tool's catalog name and schema.
fn chosen(
    app: &App,
    known: &RegisteredSkill,
    requested: Option<&str>,
) -> Result<(String, RawJson), UsageError> {
    let lang = app.lang();
    let skill = &known.skill;
    let name = &skill.name;
    let all: Vec<(&str, &String, &RawJson)> = skill
        .tools
        .iter()
        .zip(&known.tool_names)
        .map(|(tool, display_name)| (tool.name.as_str(), display_name, &tool.schema))
        .collect();
    let list = all.iter().map(|(own, ..)| format!("`{own}`")).collect::<Vec<_>>().join(", ");
    let found = match (requested, &all[..]) {
        (Some(requested), _) => {
            all.iter().find(|(own, display_name, _)| *own == requested || display_name.as_str() == requested)
        }
        (None, [one]) => Some(one),
        (None, _) => None,
    };
    if let Some((_, display_name, schema)) = found {
        return Ok(((*display_name).clone(), (*schema).clone()));
    }
    // A declared tool that is invalid.
    let broken =
        skill.diagnostics.iter().find(|diagnostic| all.is_empty() && diagnostic.severity > Severity::Advice);
    if let Some(diagnostic) = broken {
        let diagnostic = diagnostic.localize(lang);
        return Err(UsageError(lang.choose(
            format!("the skill `{name}` has no tool that can be run: {diagnostic}"),
            format!("技能 `{name}` 没有可运行的工具：{diagnostic}"),
        )));
    }
    Err(UsageError(match (all.is_empty(), requested) {
        (true, _) => lang.choose(
            format!(
                "the skill `{name}` has no tools, only instructions: read them with `toolhub skills show {}`",
                shell::shell_quote(name)
            ),
            format!(
                "技能 `{name}` 没有工具，只有说明：用 `toolhub skills show {}` 查看",
                shell::shell_quote(name)
            ),
        ),
        (false, Some(requested)) => lang.choose(
            format!("the skill `{name}` has no tool `{requested}`: it has {list}"),
            format!("技能 `{name}` 没有工具 `{requested}`：它有 {list}"),
        ),
        (false, None) => lang.choose(
            format!("say which tool of `{name}`: {list}"),
            format!("请指明 `{name}` 的哪个工具：{list}"),
        ),
    }))
}
