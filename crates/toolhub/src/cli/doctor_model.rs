//! The part of `toolhub doctor` about the language model: which one, why, and whether it answers.

use std::time::{Duration, Instant};

use toolhub::{ChosenModel, Hub, NoModel};
use toolhub_core::model::{ChatRequest, ModelError};
use toolhub_core::{Lang, Say as _};

use super::app::App;
use super::doctor::{Finding, Report};
use super::exit::Exit;
use super::options::DoctorArgs;

/// How long an endpoint may take to list its models.
const LISTING: Duration = Duration::from_secs(5);
/// How long a model may take for a word; a local one may have to be loaded first.
const ASKING: Duration = Duration::from_secs(120);
/// How many of an endpoint's models are named.
const NAMED: usize = 5;
const CHECK: &str = "model";

/// Looks at the model. What the owner configured must work; what merely lies around in the environment need not.
pub(super) async fn look(
    app: &App,
    hub: &Hub,
    args: &DoctorArgs,
    report: &mut Report<'_>,
) -> anyhow::Result<()> {
    let lang = app.lang();
    let chosen = match app.interruptible(hub.chosen_model()).await? {
        Ok(chosen) => chosen,
        Err(NoModel::NotSetUp { why }) => {
            let why = why.say(lang);
            let text = lang.pick(format!("model: none: {why}"), format!("模型：无：{why}"));
            report.add(CHECK, Finding::Good, &text);
            return Ok(());
        }
        Err(NoModel::Wrong { why } | NoModel::Unreachable { why }) => {
            let why = why.say(lang);
            report.problem(CHECK, &lang.pick(format!("model: {why}"), format!("模型：{why}")), Exit::Usage);
            return Ok(());
        }
    };
    let (name, why) = (chosen.model.name(), chosen.why.say(lang));
    let text = lang.pick(format!("model: {name} ({why})"), format!("模型：{name}（{why}）"));
    let answer = if args.ask_model {
        app.interruptible(ask(chosen, lang)).await?
    } else {
        app.interruptible(listed(chosen, lang)).await?
    };
    match answer {
        Ok((finding, more)) => report.add(CHECK, finding, &format!("{text}{more}")),
        Err(error) => {
            let text = format!("{text}{}{}", lang.pick(": ", "："), error.say(lang));
            match hub.settings().llm {
                Some(_) => report.problem(CHECK, &text, exit_of(&error)),
                None => report.add(CHECK, Finding::Odd, &text),
            }
        }
    }
    Ok(())
}

fn exit_of(error: &ModelError) -> Exit {
    match error {
        ModelError::Unreachable { .. } => Exit::Unreachable,
        ModelError::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Failed,
    }
}

/// Says a word to it, which may cost a little.
async fn ask(chosen: &ChosenModel, lang: Lang) -> Result<(Finding, String), ModelError> {
    let request = ChatRequest {
        max_tokens: Some(16),
        timeout: Some(ASKING),
        ..ChatRequest::new("Answer with one word.").user("Say yes.")
    };
    let begun = Instant::now();
    chosen.model.chat(&request, &|_| {}).await?;
    let took = begun.elapsed().as_secs_f32();
    let text = lang.pick(format!(": it answered in {took:.1} s"), format!("：{took:.1} 秒内回答"));
    Ok((Finding::Good, text))
}

/// Asks the endpoint for its models, which costs nothing and shows that it is there and takes the key.
async fn listed(chosen: &ChosenModel, lang: Lang) -> Result<(Finding, String), ModelError> {
    let unknown =
        lang.pick(": `--ask-model` tries whether it answers", "：用 `--ask-model` 可试试它是否回答");
    let (Some(answer), Some(model)) = (chosen.listed(LISTING).await, chosen.wire_name()) else {
        return Ok((Finding::Good, unknown.to_owned()));
    };
    let names = match answer {
        Ok(names) => names,
        // Not every endpoint lists its models.
        Err(ModelError::Refused { status: 404 | 405, .. } | ModelError::Unreadable { .. }) => {
            return Ok((Finding::Good, unknown.to_owned()));
        }
        Err(error) => return Err(error),
    };
    // `qwen3` is `qwen3:latest`, and names of versions have their date behind them.
    if names.iter().any(|name| name.starts_with(model)) {
        return Ok((Finding::Good, lang.pick(": it is there", "：可用").to_owned()));
    }
    let some = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let text = lang.pick(
        format!(": it is not listed there; there is {some}: write one in `[llm] model`"),
        format!("：那里没有列出它；有 {some}：请在 `[llm] model` 中选一个"),
    );
    Ok((Finding::Odd, text))
}
