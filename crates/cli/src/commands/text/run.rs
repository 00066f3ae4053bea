//! `toolhub run`: runs every tool call in the text of a model, in order; prints the results in a form for models.

use std::io::Read as _;

use toolhub::{Hub, Outcome, ToolCall, ToolError};
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::ModelCall;
use toolhub_core::{CallId, Localize as _, RawJson, RawObject, ToolName};
use toolhub_llm::formats::{KnownTool, KnownTools, ParsedOutput, parse_output};
use toolhub_llm::text_model::result_block;

use crate::app::App;
use crate::args::text::RunArgs;
use crate::exit::{Exit, UsageError};

/// The maximum input size. Responses of models are shorter.
const MAX_INPUT_BYTES: u64 = 16 << 20;

pub(crate) async fn run(app: &App, args: &RunArgs) -> anyhow::Result<Exit> {
    let text = input(app)?;
    let hub = app.hub().await?;
    let reading = read_calls(&text, &known_tools(hub));
    let mut outcomes = Vec::new();
    let work = app.interruptible(run_all(app, hub, args, &reading, &mut outcomes)).await;
    if work.is_err() {
        let left = reading.calls.get(outcomes.len());
        outcomes.extend(left.map(|call| refused(call, ToolError::Cancelled)));
        if !app.screen.json
            && let Some(outcome) = outcomes.last()
        {
            show(app, outcome);
        }
    }
    if app.screen.json {
        // Calls come first and in order; unreadable calls follow, without arguments.
        let json: Vec<RawObject> = outcomes
            .iter()
            .enumerate()
            .map(|(index, outcome)| {
                let call = reading.calls.get(index);
                let arguments = call.map_or_else(RawJson::null, |call| call.arguments.clone());
                let named =
                    RawObject::default().with("tool", outcome.tool.as_str()).with("arguments", arguments);
                let content = outcome.to_json(app.lang());
                content.iter().fold(named, |json, (name, value)| json.with(name.to_owned(), value.clone()))
            })
            .collect();
        app.screen.json(&RawJson::of(&json));
    } else if outcomes.is_empty() {
        app.screen.note(app.lang().choose("no tool call in it", "其中没有工具调用"));
    }
    let failed = outcomes.iter().find_map(|outcome| outcome.result.as_ref().err());
    Ok(failed.map_or(Exit::Done, Exit::from))
}

fn input(app: &App) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(UsageError(app.lang().choose(
            format!("the text has more than {} MiB", MAX_INPUT_BYTES >> 20),
            format!("文本超过 {} MiB", MAX_INPUT_BYTES >> 20),
        ))
        .into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The calls in a text. If there are none, the text is parsed again without the list of tools, so that the call of an unknown
/// tool is reported as such.
pub(crate) fn read_calls(text: &str, known: &KnownTools) -> ParsedOutput {
    let reading = parse_output(text, known);
    if !reading.calls.is_empty() || !reading.unreadable.is_empty() || reading.holds_result {
        return reading;
    }
    parse_output(text, &KnownTools::default())
}

/// The tools of the catalog, for parsing calls.
pub(crate) fn known_tools(hub: &Hub) -> KnownTools {
    let catalog = hub.catalog();
    KnownTools::new(catalog.iter().map(|entry| {
        let definition = &entry.tool.definition;
        KnownTool::new(definition.name().as_str(), Some(definition.input_schema().clone()))
    }))
}

async fn run_all(app: &App, hub: &Hub, args: &RunArgs, reading: &ParsedOutput, outcomes: &mut Vec<Outcome>) {
    for (index, call) in reading.calls.iter().enumerate() {
        let outcome = if reading.cut == Some(index) {
            refused(call, ToolError::UnreadableCall { detail: truncation_detail(call) })
        } else {
            run_call(hub, args, call).await
        };
        if !app.screen.json {
            show(app, &outcome);
        }
        outcomes.push(outcome);
    }
    for detail in &reading.unreadable {
        let error = ToolError::UnreadableCall { detail: detail.clone() };
        let outcome = Outcome::refused(CallId::generate(), ToolName::new("?"), error);
        if !app.screen.json {
            show(app, &outcome);
        }
        outcomes.push(outcome);
    }
}

async fn run_call(hub: &Hub, args: &RunArgs, call: &ModelCall) -> Outcome {
    let mut tool_call = ToolCall::new(call.tool.as_str(), call.arguments.clone()).with_coercion();
    tool_call.id = call.id.clone();
    tool_call.source.clone_from(&call.source);
    tool_call.timeout = args.timeout.map(|span| span.0);
    let mut outcome = hub.call(tool_call).await;
    if args.brief {
        outcome = hub.shorten(outcome);
    }
    outcome.repaired.splice(0..0, call.repaired.iter().cloned());
    outcome
}

fn refused(call: &ModelCall, error: ToolError) -> Outcome {
    let outcome = Outcome::refused(call.id.clone(), call.tool.clone(), error);
    Outcome { repaired: call.repaired.clone(), ..outcome }
}

/// The error for a model whose text ends inside a call: running it with truncated values could do harm.
fn truncation_detail(call: &ModelCall) -> LocalizedText {
    let tool = &call.tool;
    LocalizedText::new(
        format!(
            "the text broke off inside the call of `{tool}`, so it was not run; write the whole call again"
        ),
        format!("文本在 `{tool}` 的调用中间中断，因此没有运行；请重新写出完整的调用"),
    )
}

fn show(app: &App, outcome: &Outcome) {
    let lang = app.lang();
    let content = match &outcome.result {
        Ok(output) => output.result(),
        Err(error) => RawJson::from(error.localize(lang)),
    };
    let key = if outcome.success() { "result" } else { "error" };
    let mut json = RawObject::default()
        .with("id", outcome.call_id.as_str())
        .with("tool_name", outcome.tool.as_str())
        .with("success", outcome.success())
        .with(key, content);
    let repaired: Vec<String> = outcome.repaired.iter().map(|repair| repair.localize(lang)).collect();
    if !repaired.is_empty() {
        json.set("repaired", RawJson::of(&repaired));
    }
    if let (true, Some(handle)) = (outcome.truncated, &outcome.handle) {
        json.set("handle", handle.as_str());
    }
    app.screen.verbatim(&result_block(&json.into_raw()));
}
