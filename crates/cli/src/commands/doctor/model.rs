//! The checks of `toolhub doctor` for the language model: which one is chosen, why, and whether it responds.

use std::time::{Duration, Instant};

use toolhub::{ChosenModel, Hub, NoModel};
use toolhub_core::model::{ChatRequest, ModelError};
use toolhub_core::{Lang, Localize as _};

use crate::app::App;
use crate::args::DoctorArgs;
use crate::commands::doctor::{CheckResult, DoctorReport};
use crate::exit::Exit;

/// Timeout for listing the models of an endpoint.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for a one-word response; a local model may have to be loaded first.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of models that are named.
const MAX_LISTED_MODELS: usize = 5;
const CHECK: &str = "model";

/// Checks the model. A failure of a configured model is a problem; one of a model detected from the environment is a warning.
pub(crate) async fn check(
    app: &App,
    hub: &Hub,
    args: &DoctorArgs,
    report: &mut DoctorReport<'_>,
) -> anyhow::Result<()> {
    let lang = app.lang();
    let chosen = match app.interruptible(hub.chosen_model()).await? {
        Ok(chosen) => chosen,
        Err(NoModel::NotSetUp { why }) => {
            let why = why.localize(lang);
            let text = lang.choose(format!("model: none: {why}"), format!("模型：无：{why}"));
            report.add(CHECK, CheckResult::Pass, &text);
            return Ok(());
        }
        Err(NoModel::Wrong { why } | NoModel::Unreachable { why }) => {
            let why = why.localize(lang);
            report.problem(CHECK, &lang.choose(format!("model: {why}"), format!("模型：{why}")), Exit::Usage);
            return Ok(());
        }
    };
    let (name, why) = (chosen.model.name(), chosen.why.localize(lang));
    let text = lang.choose(format!("model: {name} ({why})"), format!("模型：{name}（{why}）"));
    let answer = if args.ask_model {
        app.interruptible(ask(chosen, lang)).await?
    } else {
        app.interruptible(listed(chosen, lang)).await?
    };
    match answer {
        Ok((finding, more)) => report.add(CHECK, finding, &format!("{text}{more}")),
        Err(error) => {
            let text = format!("{text}{}{}", lang.choose(": ", "："), error.localize(lang));
            match hub.settings().llm {
                Some(_) => report.problem(CHECK, &text, exit_of(&error)),
                None => report.add(CHECK, CheckResult::Warning, &text),
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

/// Sends a short prompt to the model, which may incur a small cost.
async fn ask(chosen: &ChosenModel, lang: Lang) -> Result<(CheckResult, String), ModelError> {
    let request = ChatRequest {
        max_tokens: Some(16),
        timeout: Some(REQUEST_TIMEOUT),
        ..ChatRequest::new("Answer with one word.").user("Say yes.")
    };
    let started = Instant::now();
    chosen.model.chat(&request, &|_| {}).await?;
    let took = started.elapsed().as_secs_f32();
    let text = lang.choose(format!(": it answered in {took:.1} s"), format!("：{took:.1} 秒内回答"));
    Ok((CheckResult::Pass, text))
}

/// Lists the models of the endpoint, which is free and checks the connection and the key.
async fn listed(chosen: &ChosenModel, lang: Lang) -> Result<(CheckResult, String), ModelError> {
    let unknown =
        lang.choose(": `--ask-model` tries whether it answers", "：用 `--ask-model` 可试试它是否回答");
    let (Some(answer), Some(model)) = (chosen.listed(LIST_TIMEOUT).await, chosen.wire_name()) else {
        return Ok((CheckResult::Pass, unknown.to_owned()));
    };
    let names = match answer {
        Ok(names) => names,
        // Not every endpoint can list its models.
        Err(ModelError::Refused { status: 404 | 405, .. } | ModelError::Unreadable { .. }) => {
            return Ok((CheckResult::Pass, unknown.to_owned()));
        }
        Err(error) => return Err(error),
    };
    // `qwen3` matches `qwen3:latest`, and names with a version suffix match, too.
    if names.iter().any(|name| name.starts_with(model)) {
        return Ok((CheckResult::Pass, lang.choose(": it is there", "：可用").to_owned()));
    }
    let some =
        names.iter().take(MAX_LISTED_MODELS).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let text = lang.choose(
        format!(": it is not listed there; there is {some}: write one in `[llm] model`"),
        format!("：那里没有列出它；有 {some}：请在 `[llm] model` 中选一个"),
    );
    Ok((CheckResult::Warning, text))
}
