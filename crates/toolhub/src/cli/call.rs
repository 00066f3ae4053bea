//! `toolhub call`: one call through the router.

use std::time::Instant;

use toolhub::{Hub, Outcome, Request, ToolCall, ToolError, ToolOutput};
use toolhub_core::{CallId, RawJson, Say as _, ToolName, json};

use super::app::App;
use super::arguments::{self, PairError};
use super::exit::Exit;
use super::options::CallArgs;

pub(crate) async fn run(app: &App, args: CallArgs) -> anyhow::Result<Exit> {
    let given = args.args.as_deref().map(|text| arguments::given(text, app.lang())).transpose()?;
    let hub = app.hub().await?;
    let started = Instant::now();
    let work = app.interruptible(call(app, hub, &args, given)).await;
    let outcome = match work {
        Ok(outcome) => outcome?,
        Err(_) => failed(&args.tool, ToolError::Cancelled, started),
    };
    show(app, &outcome);
    Ok(outcome.result.as_ref().err().map_or(Exit::Done, Exit::from))
}

async fn call(app: &App, hub: &Hub, args: &CallArgs, given: Option<RawJson>) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let source = args.source.as_deref();
    if let Some(source) = source.filter(|source| !hub.knows_source(source)) {
        app.screen.warn(&app.lang().pick(
            format!("there is no source `{source}`, so it is taken as absent"),
            format!("没有来源 `{source}`，按未指定处理"),
        ));
    }
    // Only the schema knows what `5` means, so the tool is looked up before the pairs are read.
    let schema = if args.pairs.is_empty() {
        RawJson::empty_object()
    } else {
        let request = Request { tool: &args.tool, source, arguments: None };
        match hub.explain_within(request, args.timeout.map(|span| span.0)).await {
            Ok(route) => {
                let first = route.candidates.first();
                first.map_or_else(RawJson::empty_object, |found| {
                    found.entry.tool.definition.input_schema().clone()
                })
            }
            Err(error) => return Ok(failed(&args.tool, error, started)),
        }
    };
    let arguments = match arguments::with_pairs(given.as_ref(), &args.pairs, &schema, app.lang()) {
        Ok(arguments) => arguments,
        Err(PairError::Usage(error)) => return Err(error.into()),
        Err(PairError::Unknown(problem)) => {
            let tool = ToolName::new(args.tool.as_str());
            let error = ToolError::InvalidArguments { tool, problems: vec![problem] };
            return Ok(failed(&args.tool, error, started));
        }
    };
    let mut call = ToolCall::new(args.tool.as_str(), arguments);
    call.source = args.source.clone();
    call.timeout = args.timeout.map(|span| span.0);
    Ok(hub.call(call).await)
}

/// The outcome of a call that never got as far as a tool.
fn failed(tool: &str, error: ToolError, started: Instant) -> Outcome {
    Outcome {
        call_id: CallId::fresh(),
        tool: ToolName::new(tool),
        result: Err(error),
        source: None,
        attempts: Vec::new(),
        took: started.elapsed(),
    }
}

fn show(app: &App, outcome: &Outcome) {
    let lang = app.lang();
    if app.screen.json {
        app.screen.json(&outcome.to_json(lang).into_raw());
        return;
    }
    // What was tried before the last word is worth knowing: a fallback should not go unseen.
    let last = outcome.attempts.len().saturating_sub(usize::from(outcome.result.is_err()));
    for attempt in &outcome.attempts[..last] {
        if let Some(error) = &attempt.error {
            app.screen.warn(&format!("{}: {}", attempt.source, error.say(lang)));
        }
    }
    match &outcome.result {
        Ok(output) => app.screen.verbatim(&text_of(app, output)),
        Err(error) => app.screen.error(&error.say(lang)),
    }
}

/// The output for people: texts as they are, other blocks named, structured content where there is nothing else.
fn text_of(app: &App, output: &ToolOutput) -> String {
    let blocks = output.blocks();
    if blocks.is_empty() {
        let structured = output.structured().map(|value| json::pretty(value.get()));
        return structured.unwrap_or_else(|| app.lang().pick("(no output)", "（没有输出）").to_owned());
    }
    let shown: Vec<String> = blocks.iter().map(block).collect();
    shown.join("\n")
}

fn block(raw: &RawJson) -> String {
    let Some(members) = raw.object() else { return raw.get().to_owned() };
    let text = |key: &str| members.get(key).and_then(|value| value.decode::<String>().ok());
    let kind = text("type").unwrap_or_default();
    match (kind.as_str(), text("text")) {
        ("text", Some(text)) => text,
        ("image" | "audio", _) => {
            let size = text("data").map_or(0, |data| data.len() / 4 * 3);
            let mime = text("mimeType").unwrap_or_default();
            format!("[{kind} {mime}, {size} bytes: see --json]")
        }
        ("resource_link", _) => {
            format!("[{}]", text("uri").unwrap_or_default())
        }
        _ => json::pretty(raw.get()),
    }
}
