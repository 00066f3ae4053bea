//! `toolhub script`: a JavaScript program that calls tools.

use std::io::Read as _;
use std::time::Instant;

use toolhub::{DryRun, Hub, Outcome, ResumeError, ToolCall, ToolError, declaration_of, script_failure};
use toolhub_core::call_log::RecordId;
use toolhub_core::suggest::similar_names;
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::args::script::{ScriptArgs, ScriptCommand};
use crate::commands::tools::call::{failed_outcome, show_outcome};
use crate::exit::{Exit, UsageError};

/// The subcommands, for a misspelled one: it looks like a file.
const SUBCOMMANDS: [&str; 2] = ["types", "resume"];

pub(crate) async fn run(app: &App, args: ScriptArgs) -> anyhow::Result<Exit> {
    match &args.command {
        Some(ScriptCommand::Types(types)) => print_types(app, &types.servers).await,
        Some(ScriptCommand::Resume(resume)) => {
            let hub = app.hub().await?;
            let call = hub.resumed_script(&RecordId::new(resume.id.as_str())).await?;
            let call = call.map_err(|why| resume_error(app, &resume.id, why))?;
            run_call(app, hub, call).await
        }
        None => {
            let arguments = script_arguments(app, &args)?;
            let hub = app.hub().await?;
            match args.dry_run {
                true => dry_run(app, hub, &arguments).await,
                false => run_call(app, hub, Hub::script_call(arguments)).await,
            }
        }
    }
}

async fn run_call(app: &App, hub: &Hub, call: ToolCall) -> anyhow::Result<Exit> {
    let (started, id, tool) = (Instant::now(), call.id.clone(), call.tool.clone());
    let Ok(outcome) = app.interruptible(hub.call(call)).await else {
        let outcome = failed_outcome(tool.as_str(), ToolError::Cancelled, started);
        match hub.interrupted_script(&id) {
            Some(calls) => show_interruption(app, &outcome, &calls.localize(app.lang())),
            None => show_outcome(app, &outcome),
        }
        return Ok(Exit::Interrupted);
    };
    show_outcome(app, &outcome);
    Ok(outcome.result.as_ref().err().map_or(Exit::Done, exit_of))
}

/// Prints what an interrupted script had called.
fn show_interruption(app: &App, outcome: &Outcome, calls: &str) {
    match app.screen.json {
        true => app.screen.json(&outcome.to_json(app.lang()).with("error", calls).into_raw()),
        false => app.screen.error(calls),
    }
}

/// The exit code of a script that failed. Its limits of time are reported like the timeout of a call.
fn exit_of(error: &ToolError) -> Exit {
    match script_failure(error) {
        Some(kind) if is_time_limit(&kind) => Exit::TimedOut,
        _ => Exit::from(error),
    }
}

fn is_time_limit(failure: &str) -> bool {
    ["wall_limit", "cpu_limit"].contains(&failure)
}

async fn dry_run(app: &App, hub: &Hub, arguments: &RawJson) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let Some(DryRun { calls, report }) = app.interruptible(hub.dry_run_script(arguments)).await? else {
        return Err(unavailable(app).into());
    };
    let exit = match report.failure() {
        Some(failure) if is_time_limit(failure.kind.name()) => Exit::TimedOut,
        Some(_) => Exit::Failed,
        None => Exit::Done,
    };
    if app.screen.json {
        let calls: Vec<RawObject> = calls
            .iter()
            .map(|call| {
                RawObject::default()
                    .with("tool", call.tool.as_str())
                    .with("arguments", call.arguments.clone())
                    .with("made", call.is_made)
            })
            .collect();
        let value = report.value().cloned().unwrap_or_else(RawJson::null);
        let error =
            report.failure().map_or_else(RawJson::null, |failure| RawJson::of(&failure.localize(lang)));
        let shown =
            RawObject::default().with("calls", RawJson::of(&calls)).with("value", value).with("error", error);
        app.screen.json(&shown.into_raw());
        return Ok(exit);
    }
    for call in &calls {
        let mark = match call.is_made {
            true => lang.choose("read", "读取"),
            false => lang.choose("not made", "未执行"),
        };
        app.screen.line(&format!("{mark}  {} {}", call.tool, call.arguments.get()));
    }
    let left = calls.iter().filter(|call| !call.is_made).count();
    app.screen.note(&lang.choose(
        format!("calls: {}; not made because they may change something: {left}", calls.len()),
        format!("共 {} 次调用，其中 {left} 次可能改动数据，未执行", calls.len()),
    ));
    if let Some(failure) = report.failure() {
        app.screen.error(&failure.localize(lang));
        if left > 0 {
            app.screen.note(lang.choose(
                "the script may have needed the result of a call that was not made",
                "脚本可能需要未执行的调用的结果",
            ));
        }
    }
    Ok(exit)
}

async fn print_types(app: &App, servers: &[String]) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    hub.list_missing().await;
    let mut tools = hub.script_tools();
    if !servers.is_empty() {
        let unknown =
            servers.iter().find(|id| !hub.servers().iter().any(|view| view.spec.id.as_str() == **id));
        if let Some(id) = unknown {
            return Err(UsageError(app.lang().choose(
                format!("there is no server `{id}`; `toolhub servers` lists them"),
                format!("没有服务器 `{id}`；`toolhub servers` 列出现有的"),
            ))
            .into());
        }
        tools.retain(|tool| tool.member.as_ref().is_some_and(|(server, _)| servers.contains(server)));
    }
    app.screen.verbatim(&declaration_of(&tools));
    Ok(Exit::Done)
}

/// The arguments of `run_script`.
fn script_arguments(app: &App, args: &ScriptArgs) -> Result<RawJson, UsageError> {
    let lang = app.lang();
    let file = args.file.as_deref().unwrap_or("-");
    if file == "-" && args.input.as_deref() == Some("-") {
        return Err(UsageError(lang.choose(
            "standard input cannot be both the program and its input: give one of them as a file".to_owned(),
            "标准输入不能同时作为程序和输入：请将其中之一写成文件".to_owned(),
        )));
    }
    let code = read_text(file).map_err(|error| {
        let meant = similar_names(file, SUBCOMMANDS, 1);
        let hint = |ask: &str| {
            meant.iter().map(|name| format!("{ask} `toolhub script {name}`?")).collect::<String>()
        };
        UsageError(lang.choose(
            format!("the program in `{file}` could not be read: {error}{}", hint("; did you mean")),
            format!("无法读取 `{file}` 中的程序：{error}{}", hint("；是否想用")),
        ))
    })?;
    let mut arguments = RawObject::default().with("code", code);
    if let Some(input) = &args.input {
        let text = match input.strip_prefix('@') {
            Some(file) => read_text(file),
            None if input == "-" => read_text("-"),
            None => Ok(input.clone()),
        };
        let text = text.map_err(|error| {
            UsageError(lang.choose(
                format!("the file of `--input` cannot be read: {error}"),
                format!("无法读取 `--input` 的文件：{error}"),
            ))
        })?;
        let value = RawJson::parse(text.trim().to_owned()).map_err(|error| {
            UsageError(lang.choose(
                format!("`--input` is not valid JSON: {error}"),
                format!("`--input` 不是有效的 JSON：{error}"),
            ))
        })?;
        arguments = arguments.with("input", value);
    }
    if let Some(timeout) = args.timeout {
        arguments = arguments.with("timeout", RawJson::of(&timeout.0.as_secs_f64()));
    }
    Ok(arguments.into_raw())
}

fn read_text(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    Ok(std::fs::read_to_string(file)?.trim_start_matches('\u{feff}').to_owned())
}

fn unavailable(app: &App) -> UsageError {
    UsageError(app.lang().choose(
        "scripts are switched off: set `enabled = true` in `[script]`".to_owned(),
        "脚本已停用：请在 `[script]` 中设置 `enabled = true`".to_owned(),
    ))
}

fn resume_error(app: &App, id: &str, why: ResumeError) -> UsageError {
    let lang = app.lang();
    UsageError(match why {
        ResumeError::UnknownCall => lang.choose(
            format!("`{id}` is not a script in the history: `toolhub history --tool run_script` lists them"),
            format!("`{id}` 不是历史中的脚本：`toolhub history --tool run_script` 列出脚本"),
        ),
        ResumeError::NothingLeft => lang.choose(
            format!("the script `{id}` has ended, or is too old: nothing is left to resume"),
            format!("脚本 `{id}` 已结束或过旧：没有可继续的内容"),
        ),
        ResumeError::OfAgent => lang.choose(
            format!(
                "the script `{id}` was written by an agent, which asks before changes: repeat the request"
            ),
            format!("脚本 `{id}` 由智能体编写，更改前需要询问：请重新提出请求"),
        ),
        ResumeError::OfScript => lang.choose(
            format!("the script `{id}` was called by another script: resume that one"),
            format!("脚本 `{id}` 由另一个脚本调用：请继续那个脚本"),
        ),
        ResumeError::OtherPrincipal => lang.choose(
            format!("the script `{id}` was run for a client, which repeats its request instead"),
            format!("脚本 `{id}` 是为客户端运行的：请由客户端重新发出请求"),
        ),
        ResumeError::StillRuns => lang.choose(
            format!("the script `{id}` still runs, or is being resumed by another program: `toolhub history {id}` shows its state"),
            format!("脚本 `{id}` 仍在运行，或正由另一个程序继续：`toolhub history {id}` 显示其状态"),
        ),
        ResumeError::DamagedJournal => lang.choose(
            format!("the journal of the script `{id}` is damaged or lacks calls that were made, and nothing was called: `toolhub history {id}` lists its calls"),
            format!("脚本 `{id}` 的日志已损坏或缺少已执行的调用，因此没有调用任何工具：`toolhub history {id}` 列出其调用"),
        ),
    })
}
