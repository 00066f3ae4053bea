//! `toolhub waiting`: the calls that a rule holds until a person decides.

use std::time::{Duration, UNIX_EPOCH};

use toolhub::held_calls::{Decider, HeldCall, HeldCalls, HeldState};
use toolhub::settings::Settings;
use toolhub_core::audit::HeldCallDecision;
use toolhub_core::text::truncate;
use toolhub_core::{Localize as _, Principal, RawJson, RawObject};

use crate::app::App;
use crate::args::access::{HeldCallsArgs, HeldCallsCommand};
use crate::commands::history::local_time;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BAD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, table_lines};

/// The number of characters of the arguments in a list.
const MAX_ARGUMENTS: usize = 200;

pub(crate) async fn run(app: &App, args: &HeldCallsArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => list(app, args.all).await,
        Some(HeldCallsCommand::Approve(call)) => decide(app, &call.id, true).await,
        Some(HeldCallsCommand::Deny(call)) => decide(app, &call.id, false).await,
    }
}

/// The held calls: in the data folder, which needs no hub, or in the store that hubs share.
async fn held_calls(app: &App) -> anyhow::Result<HeldCalls> {
    let paths = app.paths()?;
    match Settings::read(&paths)?.store.is_shared() {
        true => Ok(app.hub().await?.held_calls()),
        false => Ok(HeldCalls::in_folder(&paths.data_dir)),
    }
}

async fn list(app: &App, all: bool) -> anyhow::Result<Exit> {
    let mut calls = held_calls(app).await?.list().await?;
    calls.retain(|call| all || call.state == HeldState::Held);
    print(app, &calls);
    Ok(Exit::Done)
}

/// Prints held calls.
pub(crate) fn print(app: &App, calls: &[HeldCall]) {
    if app.screen.json {
        let calls: Vec<RawObject> = calls.iter().map(as_json).collect();
        app.screen.json(&RawJson::of(&calls));
        return;
    }
    if calls.is_empty() {
        app.screen.note(app.lang().choose("no call waits for approval", "没有等待审批的调用"));
        return;
    }
    let rows: Vec<Vec<Cell>> = calls.iter().map(|call| row(app, call)).collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
    app.screen.note(app.lang().choose(
        "`toolhub waiting approve ID` lets one run, once; `deny ID` refuses it",
        "`toolhub waiting approve ID` 批准执行一次；`deny ID` 拒绝",
    ));
}

async fn decide(app: &App, id: &str, approved: bool) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let settings = Settings::read(&app.paths()?)?;
    let local = Principal::local();
    // The person at this machine is the owner; with keys or identity providers there are others.
    let decider = Decider { principal: &local, is_alone: !settings.auth.is_required() };
    let decided = held_calls(app).await?.decide(id, approved, decider).await;
    let call = decided.map_err(|error| UsageError(error.text(id).localize(lang)))?;
    let decision = if approved { HeldCallDecision::Approved } else { HeldCallDecision::Denied };
    // The decision is in force: a failure of the log is reported and does not undo it.
    if let Err(error) = app.hub().await?.record_held_call(local.id(), &call, decision).await {
        app.screen.warn(&error.localize(lang));
    }
    print_decision(app, &call, approved);
    Ok(Exit::Done)
}

/// Prints a decision about a held call.
pub(crate) fn print_decision(app: &App, call: &HeldCall, approved: bool) {
    let lang = app.lang();
    if app.screen.json {
        app.screen.json(&as_json(call).into_raw());
        return;
    }
    let (tool, principal) = (&call.tool, &call.principal);
    app.screen.line(call.arguments.get());
    app.screen.line(&match approved {
        true => lang.choose(
            format!("approved: `{tool}` of `{principal}` may run once"),
            format!("已批准：`{principal}` 的 `{tool}` 可执行一次"),
        ),
        false => lang.choose(
            format!("denied: `{tool}` of `{principal}` does not run"),
            format!("已拒绝：`{principal}` 的 `{tool}` 不会执行"),
        ),
    });
}

fn row(app: &App, call: &HeldCall) -> Vec<Cell> {
    let style = match &call.state {
        HeldState::Held => ODD,
        HeldState::Approved { .. } => GOOD,
        HeldState::Denied { .. } => BAD,
        HeldState::Expired | HeldState::Used { .. } | HeldState::Withdrawn => DIM,
    };
    let arguments = call.arguments.get();
    vec![
        Cell::new(call.id.as_str(), NAME),
        Cell::new(local_time(UNIX_EPOCH + Duration::from_millis(call.at_ms)), DIM),
        Cell::new(call.state.label().localize(app.lang()), style),
        Cell::from(call.principal.clone()),
        Cell::new(call.tool.as_str(), NAME),
        Cell::from(truncate(arguments, MAX_ARGUMENTS).unwrap_or_else(|| arguments.to_owned())),
    ]
}

fn as_json(call: &HeldCall) -> RawObject {
    RawObject::default()
        .with("id", call.id.as_str())
        .with("state", call.state.name())
        .with("principal", call.principal.as_str())
        .with("profile", call.profile.as_str())
        .with("tool", call.tool.as_str())
        .with("sources", RawJson::of(&call.sources))
        .with("arguments", call.arguments.clone())
        .with("rule", call.rule.as_str())
        .with("script", RawJson::of(&call.script))
        .with("decided_by", RawJson::of(&call.state.decided_by()))
        .with("at_ms", call.at_ms)
        .with("expires_ms", call.expires_ms)
}
