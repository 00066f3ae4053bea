//! `call` through a hub. The request is sent once: a call whose answer was lost may have run, and is not repeated.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::Deserialize;
use toolhub::{ToolError, ToolOutput};
use toolhub_core::call_log::RecordId;
use toolhub_core::error::{Effect, UnknownTool};
use toolhub_core::{RawJson, RawObject, ToolName};

use crate::app::App;
use crate::args::CallArgs;
use crate::args::tool_arguments::{self, PairError};
use crate::commands::through_hub::refuse_options;
use crate::commands::through_hub::remote_tool::{chosen_source, find_remote_tool};
use crate::commands::tools::call::{failed_outcome, show_outcome, show_output, time_left};
use crate::exit::{Exit, UsageError};
use crate::hub_api::error::HubError;
use crate::hub_api::{ApiPath, HubApi};

/// Maximum length of an idempotency key.
const MAX_KEY_BYTES: usize = 256;

/// The response to a call.
#[derive(Debug, Deserialize)]
struct CallResponse {
    success: bool,
    /// The result as an MCP client receives it.
    result: Option<RawJson>,
    error: Option<String>,
    /// What `_meta` of `toolhub call --json` contains, and `error`; missing if no tool was called.
    #[serde(default)]
    outcome: Option<RawJson>,
}

pub(crate) async fn run(app: &App, api: &HubApi, args: &CallArgs) -> anyhow::Result<Exit> {
    refuse_options(
        app,
        &[
            ("--capability", args.capability.is_some()),
            ("--brief", args.brief),
            ("--verify", args.verify),
            ("--for", args.request.is_some()),
        ],
    )?;
    let key = idempotency_key(app, args)?;
    let tool = args.tool.as_deref().unwrap_or_default();
    let given = args.args.as_deref().map(|text| tool_arguments::parse_json_arguments(text, app.lang()));
    let given = given.transpose()?;
    let started = Instant::now();
    let work = app.interruptible(call(app, api, args, given.as_ref(), &key));
    let ended = match time_left(app, args) {
        Some(left) => tokio::time::timeout(left, work).await,
        None => Ok(work.await),
    };
    let answer = match ended {
        Ok(Ok(answer)) => answer?,
        // The connection is closed, so that the hub cancels the call.
        Ok(Err(_)) => Err(ToolError::Cancelled),
        Err(_) => {
            app.overdue.store(true, Ordering::Relaxed);
            let after = args.timeout.map(|timeout| timeout.0).unwrap_or_default();
            Err(ToolError::TimedOut { after, effect: Effect::Unknown })
        }
    };
    match answer {
        Ok(response) => Ok(report(app, response)),
        Err(error) => {
            let exit = Exit::from(&error);
            show_outcome(app, &failed_outcome(tool, error, started));
            Ok(exit)
        }
    }
}

/// The key under which the hub recognizes a repetition: the user's own, or a random one, which protects from proxies that repeat
/// requests.
fn idempotency_key(app: &App, args: &CallArgs) -> Result<String, UsageError> {
    let Some(key) = &args.idempotency_key else { return Ok(format!("cli-{}", RecordId::generate())) };
    let is_valid =
        (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match is_valid {
        true => Ok(key.clone()),
        false => Err(UsageError(app.lang().choose(
            format!("`--idempotency-key` has 1 to {MAX_KEY_BYTES} visible ASCII characters, without spaces"),
            format!("`--idempotency-key` 应为 1 到 {MAX_KEY_BYTES} 个可见的 ASCII 字符，不含空格"),
        ))),
    }
}

async fn call(
    app: &App,
    api: &HubApi,
    args: &CallArgs,
    given: Option<&RawJson>,
    key: &str,
) -> anyhow::Result<Result<CallResponse, ToolError>> {
    let name = args.tool.as_deref().unwrap_or_default();
    let unknown = || {
        let unknown = UnknownTool { tool: name.to_owned(), ..UnknownTool::default() };
        Ok(Err(ToolError::UnknownTool(Box::new(unknown))))
    };
    let mut schema = RawJson::empty_object();
    // The type of a value such as `5` depends on the schema.
    if !args.pairs.is_empty() || args.source.is_some() {
        let tool = match find_remote_tool(api, name).await {
            Ok(tool) => tool,
            Err(error) if error.is_not_found() => return unknown(),
            Err(error) => return Err(error.into()),
        };
        chosen_source(app, &tool, args.source.as_deref())?;
        let is_ambiguous = args.source.is_some() && tool.sources.len() > 1;
        refuse_options(app, &[("--source", is_ambiguous)])?;
        let members = tool.definition.object().unwrap_or_default();
        schema = members.get("inputSchema").cloned().unwrap_or(schema);
    }
    let arguments = match tool_arguments::with_pairs(given, &args.pairs, &schema, app.lang()) {
        Ok(arguments) => arguments,
        Err(PairError::Usage(error)) => return Err(error.into()),
        Err(PairError::Unknown(problem)) => {
            let tool = ToolName::new(name);
            return Ok(Err(ToolError::InvalidArguments { tool, problems: vec![problem] }));
        }
    };
    let body = RawObject::default().with("arguments", arguments).with("outcome", true);
    match api.call(&ApiPath::item("tools", name, ":call")?, body, key).await {
        Ok(response) => Ok(Ok(response)),
        Err(error) if error.is_not_found() => unknown(),
        Err(error @ (HubError::Lost { .. } | HubError::Silent { .. })) => {
            app.screen.warn(app.lang().choose(
                "the call may have taken effect: `toolhub --hub URL history` shows it; it is not repeated",
                "调用可能已生效：可用 `toolhub --hub URL history` 查看；不会自动重试",
            ));
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the answer as the local command prints the outcome of a call.
fn report(app: &App, response: CallResponse) -> Exit {
    let CallResponse { success, result, error, outcome } = response;
    let output = result.and_then(ToolOutput::from_raw);
    let mut meta = outcome.as_ref().and_then(RawJson::object).unwrap_or_else(|| refusal(output.as_ref()));
    let text =
        |meta: &RawObject, key: &str| meta.get(key).and_then(RawJson::text).map(|text| text.into_owned());
    let outcome_error = text(&meta, "error");
    meta.remove("error");
    let failure = (!success).then(|| {
        let of_result = || output.as_ref().map(|output| output.texts().0.join("\n"));
        outcome_error.or(error).or_else(of_result).unwrap_or_default()
    });
    let exit = match (success, text(&meta, "error_kind").as_deref()) {
        (true, _) => Exit::Done,
        (false, Some("connection_failed")) => Exit::Unreachable,
        (false, Some("timed_out")) => Exit::TimedOut,
        (false, Some("cancelled")) => Exit::Interrupted,
        (false, _) => Exit::Failed,
    };
    if app.screen.json {
        app.screen.json(&as_json(output.as_ref(), failure.as_deref(), meta));
        return exit;
    }
    warn_of_attempts(app, &meta, success);
    let list =
        |key: &str| meta.get(key).and_then(|value| value.decode::<Vec<String>>().ok()).unwrap_or_default();
    list("repaired").iter().for_each(|note| app.screen.note(note));
    match (&failure, &output) {
        (Some(failure), _) => app.screen.error(failure),
        (None, Some(output)) => show_output(app, output),
        (None, None) => app.screen.line(app.lang().choose("(no output)", "（没有输出）")),
    }
    if let Some(note) = text(&meta, "synthesis") {
        let conflict = meta.get("conflict").and_then(|value| value.decode::<bool>().ok());
        if conflict == Some(true) { app.screen.warn(&note) } else { app.screen.note(&note) }
    }
    exit
}

/// What `_meta` contains if a rule refuses or holds the call.
fn refusal(output: Option<&ToolOutput>) -> RawObject {
    let members = output.and_then(|output| output.raw().object()).unwrap_or_default();
    let meta = members.get("_meta").and_then(RawJson::object).unwrap_or_default();
    let (state, reference) = (meta.get("toolhub/state"), meta.get("toolhub/reference"));
    let kind = if state.is_some() { "held" } else { "refused" };
    RawObject::default()
        .with("state", RawJson::of(&state))
        .with("reference", RawJson::of(&reference))
        .with("error_kind", kind)
        .with("effect", "none")
}

fn as_json(output: Option<&ToolOutput>, failure: Option<&str>, meta: RawObject) -> RawJson {
    let mut json = RawObject::default().with("success", failure.is_none());
    match (failure, output) {
        (None, Some(output)) => {
            json.set("result", output.result());
            json.set("error", RawJson::null());
            if output.texts().0.len() != 1 || !output.texts().1 {
                json.set("content", RawJson::of(&output.blocks()));
            }
            if let Some(structured) = output.structured() {
                json.set("structuredContent", structured.clone());
            }
        }
        _ => {
            json.set("result", RawJson::null());
            json.set("error", RawJson::of(&failure));
        }
    }
    json.with("_meta", meta).into_raw()
}

/// Reports failed attempts before the final one, so that a fallback is visible.
fn warn_of_attempts(app: &App, meta: &RawObject, success: bool) {
    #[derive(Deserialize)]
    struct FailedAttempt {
        source: String,
        error: String,
    }
    let failed = meta.get("failed").and_then(|value| value.decode::<Vec<FailedAttempt>>().ok());
    let failed = failed.unwrap_or_default();
    let shown = failed.len().saturating_sub(usize::from(!success));
    for FailedAttempt { source, error } in &failed[..shown] {
        app.screen.warn(&app.lang().choose(
            format!("retried after {source} failed: {error}"),
            format!("{source} 失败后重试：{error}"),
        ));
    }
}
