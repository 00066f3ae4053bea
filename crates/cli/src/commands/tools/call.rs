//! `toolhub call`: one call through the router, by a tool's name or by a capability.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolhub::{Hub, Outcome, Route, RouteRequest, ToolCall, ToolError, ToolOutput};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::shell;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{CallBy, CallId, Localize as _, RawJson, Source, ToolName, json};
use toolhub_engine::definition_scan::escape_invisible;

use crate::app::App;
use crate::args::CallArgs;
use crate::args::tool_arguments::{self, PairError};
use crate::exit::{Exit, UsageError};
use crate::render::record_table::record_table;

/// The tool or capability to call, and its `key=value` pairs.
struct CallTarget<'a> {
    by: CallBy,
    tool: &'a str,
    pairs: Vec<String>,
}

impl<'a> CallTarget<'a> {
    /// With a capability there is no tool name, so the first positional argument is a pair.
    fn of(args: &'a CallArgs) -> Self {
        match &args.capability {
            None => {
                let tool = args.tool.as_deref().unwrap_or_default();
                Self { by: CallBy::Name, tool, pairs: args.pairs.clone() }
            }
            Some(capability) => {
                let pairs = args.tool.iter().chain(&args.pairs).cloned().collect();
                Self { by: CallBy::Capability, tool: capability, pairs }
            }
        }
    }
}

pub(crate) async fn run(app: &App, args: CallArgs) -> anyhow::Result<Exit> {
    if args.idempotency_key.is_some() {
        let why = app.lang().choose(
            "`--idempotency-key` works with `--hub` only: the hub keeps the first result",
            "`--idempotency-key` 只能与 `--hub` 合用：由 hub 保存首次的结果",
        );
        return Err(UsageError(why.to_owned()).into());
    }
    let target = CallTarget::of(&args);
    if let (CallBy::Capability, Some(first)) = (target.by, target.pairs.first())
        && !first.contains('=')
    {
        return Err(UsageError(app.lang().choose(
            format!("`{first}` is not `key=value`: with `--capability` no tool is named"),
            format!("`{first}` 不是 `key=value`：使用 `--capability` 时不写工具名"),
        ))
        .into());
    }
    let given = args
        .args
        .as_deref()
        .map(|text| tool_arguments::parse_json_arguments(text, app.lang()))
        .transpose()?;
    let hub = app.hub().await?;
    let started = Instant::now();
    let work = app.interruptible(call(app, hub, &args, &target, given)).await;
    let outcome = match work {
        Ok(outcome) => outcome?,
        Err(_) => failed_outcome(target.tool, ToolError::Cancelled, started),
    };
    if matches!(outcome.result, Err(ToolError::TimedOut { .. })) && args.timeout.is_some() {
        app.overdue.store(true, Ordering::Relaxed);
    }
    warn_of_changes(app, hub, &outcome);
    show_outcome(app, &outcome);
    Ok(outcome.result.as_ref().err().map_or(Exit::Done, Exit::from))
}

/// The source that a call names, and the sources that may serve it. A model that writes `native` often guesses, so the hub does not
/// take it literally; a person who names a native tool means it.
pub(crate) fn source_filter<'a>(
    hub: &Hub,
    tool: &str,
    source: Option<&'a str>,
) -> (Option<&'a str>, Option<&'static [Source]>) {
    let is_native = || hub.catalog().named(tool).any(|entry| entry.tool.source == Source::Native);
    match source {
        Some("native") if is_native() => (None, Some(&[Source::Native])),
        source => (source, None),
    }
}

async fn call(
    app: &App,
    hub: &Hub,
    args: &CallArgs,
    target: &CallTarget<'_>,
    given: Option<RawJson>,
) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let (source, sources) = source_filter(hub, target.tool, args.source.as_deref());
    // The type of a value such as `5` depends on the schema, so the tool is resolved before the pairs are parsed.
    let schema = if target.pairs.is_empty() {
        RawJson::empty_object()
    } else {
        let request = RouteRequest { by: target.by, source, sources, ..RouteRequest::named(target.tool) };
        match hub.explain_within(request, time_left(app, args)).await {
            Ok(route) => schema_for(&route, &target.pairs),
            Err(error) => return Ok(failed_outcome(target.tool, error, started)),
        }
    };
    let arguments = match tool_arguments::with_pairs(given.as_ref(), &target.pairs, &schema, app.lang()) {
        Ok(arguments) => arguments,
        Err(PairError::Usage(error)) => return Err(error.into()),
        Err(PairError::Unknown(problem)) => {
            let tool = ToolName::new(target.tool);
            let error = ToolError::InvalidArguments { tool, problems: vec![problem] };
            return Ok(failed_outcome(target.tool, error, started));
        }
    };
    let mut call = ToolCall::new(target.tool, arguments).with_coercion();
    call.by = target.by;
    (call.source, call.sources) = (source.map(str::to_owned), sources.map(Into::into));
    call.timeout = time_left(app, args);
    call.request.clone_from(&args.request);
    let mut outcome = hub.call(call.clone()).await;
    if let (Err(ToolError::TimedOut { after, .. }), Some(span)) = (&mut outcome.result, &args.timeout) {
        *after = span.0;
    }
    if args.verify {
        outcome.verification = hub.verify(&call, &outcome).await;
    }
    if args.brief {
        outcome = hub.shorten(outcome);
    }
    Ok(outcome)
}

/// The remainder of `--timeout`, which counts from the start of the command.
pub(crate) fn time_left(app: &App, args: &CallArgs) -> Option<Duration> {
    let timeout = args.timeout.as_ref()?.0;
    Some(timeout.saturating_sub(app.started.elapsed()).max(Duration::from_millis(1)))
}

/// The schema that types the pairs: of the first candidate that defines all names, otherwise of the first candidate.
fn schema_for(route: &Route, pairs: &[String]) -> RawJson {
    let names: Vec<&str> = pairs.iter().filter_map(|pair| pair.split([':', '=']).next()).collect();
    let knows = |schema: &RawJson| {
        let properties = schema.object().and_then(|schema| schema.get("properties")?.object());
        properties.is_some_and(|properties| names.iter().all(|name| properties.contains(name)))
    };
    let schemas = route.candidates.iter().map(|candidate| candidate.entry.tool.definition.input_schema());
    let mut schemas = schemas.peekable();
    let first = schemas.peek().map(|schema| (*schema).clone());
    schemas.find(|schema| knows(schema)).cloned().or(first).unwrap_or_else(RawJson::empty_object)
}

/// Warns if a tool was used that changed since it was approved.
fn warn_of_changes(app: &App, hub: &Hub, outcome: &Outcome) {
    let catalog = hub.catalog();
    for attempt in &outcome.attempts {
        let (name, source) = (&attempt.tool, &attempt.source);
        let mut named = catalog.named(name.as_str());
        if named.any(|entry| entry.tool.source == *source && entry.tool.approval == ApprovalStatus::Changed) {
            let name = escape_invisible(name.as_str());
            app.screen.warn(&app.lang().choose(
                format!("`{name}` of {source} changed since it was approved; see `toolhub tools diff {0} --source {1}`", shell::shell_quote(&name), shell::shell_quote(&source.to_string())),
                format!("{source} 的 `{name}` 在批准后有改动；见 `toolhub tools diff {0} --source {1}`", shell::shell_quote(&name), shell::shell_quote(&source.to_string())),
            ));
        }
    }
}

/// The outcome of a call that failed before a tool was called.
pub(crate) fn failed_outcome(tool: &str, error: ToolError, started: Instant) -> Outcome {
    let refused = Outcome::refused(CallId::generate(), ToolName::new(tool), error);
    Outcome { took: started.elapsed(), ..refused }
}

pub(crate) fn show_outcome(app: &App, outcome: &Outcome) {
    let lang = app.lang();
    if app.screen.json {
        app.screen.json(&outcome.to_json(lang).into_raw());
        return;
    }
    // Reports failed attempts before the final one, so that a fallback is visible.
    let last = outcome.attempts.len().saturating_sub(usize::from(outcome.result.is_err()));
    warn_of_attempts(app, &outcome.attempts[..last]);
    for repair in &outcome.repaired {
        app.screen.note(&repair.localize(lang));
    }
    match &outcome.result {
        Ok(output) => show_output(app, output),
        Err(error) => app.screen.error(&error.localize(lang)),
    }
    if let Some(synthesis) = &outcome.synthesis {
        let note = synthesis.note.localize(lang);
        if synthesis.conflict { app.screen.warn(&note) } else { app.screen.note(&note) }
    }
    if let (true, Some(handle)) = (outcome.truncated, &outcome.handle) {
        app.screen.note(&lang.choose(
            format!("cut; all of it: `toolhub result {handle}`"),
            format!("已截断；完整结果：`toolhub result {handle}`"),
        ));
    }
    if let Some(found) = &outcome.verification {
        for issue in &found.issues {
            app.screen.warn(&issue.localize(lang));
        }
        let confidence = (found.confidence * 100.0).round() / 100.0;
        let verdict = if found.verified {
            lang.choose("no problems found", "未发现问题")
        } else {
            lang.choose("not verified", "未通过检查")
        };
        app.screen.note(&lang.choose(
            format!("{verdict} (confidence {confidence})"),
            format!("{verdict}（置信度 {confidence}）"),
        ));
    }
}

/// Prints the output of a tool.
pub(crate) fn show_output(app: &App, output: &ToolOutput) {
    let text = text_of(app, output);
    match app.screen.width().and_then(|width| record_table(&text, width)) {
        Some(table) => table.iter().for_each(|line| app.screen.line(line)),
        None => app.screen.verbatim(&text),
    }
}

/// Prints one warning per failed source, with the number of attempts.
fn warn_of_attempts(app: &App, attempts: &[AttemptRecord]) {
    let lang = app.lang();
    let mut rest = attempts;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|attempt| attempt.source == first.source).count();
        let (group, others) = rest.split_at(same);
        rest = others;
        let failures: Vec<_> = group.iter().filter_map(AttemptRecord::error).collect();
        let Some(error) = failures.last() else { continue };
        let (source, error) = (&first.source, error.brief(lang));
        app.screen.warn(&match failures.len() {
            1 => lang.choose(
                format!("retried after {source} failed: {error}"),
                format!("{source} 失败后重试：{error}"),
            ),
            times => lang.choose(
                format!("retried after {source} failed {times} times, last with: {error}"),
                format!("{source} 失败 {times} 次后重试，最近一次：{error}"),
            ),
        });
    }
}

/// The output for display: texts unchanged, other blocks by name, structured content if there are no blocks.
pub(crate) fn text_of(app: &App, output: &ToolOutput) -> String {
    let blocks = output.blocks();
    if blocks.is_empty() {
        let structured = output.structured().map(|value| json::pretty_json(value.get()));
        return structured.unwrap_or_else(|| app.lang().choose("(no output)", "（没有输出）").to_owned());
    }
    let blocks_text: Vec<String> = blocks.iter().map(block).collect();
    blocks_text.join("\n")
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
        _ => json::pretty_json(raw.get()),
    }
}
