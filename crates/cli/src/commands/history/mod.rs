//! `toolhub history`: recorded calls and their results; filtered, followed, or exported to a file.

pub(crate) mod archive;
pub(crate) mod recommend;
pub(crate) mod result;
pub(crate) mod show;
pub(crate) mod stats;

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use toolhub_core::call_log::{CallQuery, CallRecord, CallStatus, RecordId};
use toolhub_core::millis::duration_millis;
use toolhub_core::text::truncate;
use toolhub_core::{CallId, Localize as _, RawJson, RawObject};
use toolhub_private_files::{FileMode, SyncMode, UserFile};

use crate::app::App;
use crate::args::history::HistoryArgs;
use crate::commands::history::archive::CallArchive;
use crate::exit::Exit;
use crate::render::plural::plural;
use crate::render::screen::{BAD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, table_lines};

/// Polling interval of `--follow`.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// The default number of calls.
const DEFAULT_CALLS: usize = 20;
/// Precedes the tool of a call that another call made.
const NESTED_MARK: &str = "↳ ";
/// Page size while exporting.
const PAGE_SIZE: usize = 500;

pub(crate) async fn run(app: &App, archive: &CallArchive<'_>, args: HistoryArgs) -> anyhow::Result<Exit> {
    if let Some(id) = &args.id {
        return show::run(app, archive, id).await;
    }
    let query = query(&args);
    if let Some(file) = &args.export {
        return export(app, archive, query, file, args.limit).await;
    }
    let limit = args.limit.unwrap_or(DEFAULT_CALLS);
    let found = archive.calls(CallQuery { limit: Some(limit), ..query.clone() }).await?;
    if args.follow {
        return follow(app, archive, query, found).await;
    }
    if app.screen.json {
        let all: Vec<RawObject> = found.iter().map(|call| as_json(app, call)).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    print(app, &found);
    let text = match found.len() {
        0 => app
            .lang()
            .choose("nothing was called yet, or nothing fits", "还没有调用，或没有符合条件的")
            .to_owned(),
        count if count == limit => app.lang().choose(
            format!("the newest {count}; more with `-n`"),
            format!("最近 {count} 次；用 `-n` 查看更多"),
        ),
        _ => return Ok(Exit::Done),
    };
    app.screen.note(&text);
    Ok(Exit::Done)
}

fn query(args: &HistoryArgs) -> CallQuery {
    CallQuery {
        tool: args.tool.clone(),
        source: args.source.clone(),
        status: args.status.as_deref().and_then(CallStatus::from_name),
        conversation: args.conversation.clone(),
        principal: args.by.as_deref().map(principal_id),
        text: args.text.clone(),
        since: args.since.and_then(|span| SystemTime::now().checked_sub(span.0)),
        ..CallQuery::default()
    }
}

/// The id of a principal; a name without a kind means a key.
pub(crate) fn principal_id(name: &str) -> String {
    match name == toolhub_core::principal::LOCAL || name.contains(':') {
        true => name.to_owned(),
        false => format!("key:{name}"),
    }
}

fn print(app: &App, calls: &[CallRecord]) {
    let rows: Vec<Vec<Cell>> = calls.iter().map(|call| row(app, call)).collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
}

pub(crate) fn row(app: &App, call: &CallRecord) -> Vec<Cell> {
    let lang = app.lang();
    let places = answering_sources(call).iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    let summary = match &call.error {
        Some((_, error)) => error.localize(lang).lines().next().unwrap_or_default().to_owned(),
        None => call.start.arguments.get().to_owned(),
    };
    // The local user is the usual case and is not shown.
    let principal = &*call.start.authorization.principal;
    let principal = if principal == toolhub_core::principal::LOCAL { "" } else { principal };
    let tool = &call.start.tool;
    let tool = if call.start.parent.is_some() { format!("{NESTED_MARK}{tool}") } else { tool.to_string() };
    vec![
        Cell::new(local_time(call.start.at), DIM),
        Cell::new(principal, DIM),
        status_cell(app, call.status),
        Cell::new(tool, NAME),
        Cell::from(places),
        Cell::new(milliseconds(call.took), DIM),
        Cell::new(call.start.record.as_str(), DIM),
        Cell::from(truncate(&summary, 120).unwrap_or(summary)),
    ]
}

/// A status for people.
fn status_cell(app: &App, status: CallStatus) -> Cell {
    let lang = app.lang();
    match status {
        CallStatus::Succeeded => Cell::new(lang.choose("ok", "成功"), GOOD),
        CallStatus::Failed => Cell::new(lang.choose("failed", "失败"), BAD),
        CallStatus::Unknown => Cell::new(lang.choose("unknown", "未知"), ODD),
        CallStatus::Running => Cell::new(lang.choose("running", "进行中"), DIM),
    }
}

fn milliseconds(took: Option<Duration>) -> String {
    took.map(|took| format!("{} ms", took.as_millis())).unwrap_or_default()
}

/// The sources that answered a call; for a failed call, the last one that was tried.
fn answering_sources(call: &CallRecord) -> Vec<toolhub_core::Source> {
    let tried = || call.attempts.last().map(|attempt| attempt.source.clone());
    if call.sources.is_empty() { tried().into_iter().collect() } else { call.sources.clone() }
}

pub(crate) fn local_time(at: SystemTime) -> String {
    let zone = TimeZone::system();
    Timestamp::try_from(at)
        .map(|at| at.to_zoned(zone).strftime("%m-%d %H:%M:%S").to_string())
        .unwrap_or_default()
}

/// A call as JSON.
pub(crate) fn as_json(app: &App, call: &CallRecord) -> RawObject {
    let lang = app.lang();
    let start = &call.start;
    let error = call.error.as_ref();
    let attempts: Vec<RawObject> = call
        .attempts
        .iter()
        .map(|attempt| {
            let error = attempt.error.as_ref();
            RawObject::default()
                .with("source", attempt.source.to_string())
                .with("tool", attempt.tool.as_str())
                .with("status", attempt.status.name())
                .with("duration_ms", duration_millis(attempt.took))
                .with("error_kind", RawJson::of(&error.map(|(kind, _)| kind)))
                .with("error", RawJson::of(&error.map(|(_, text)| text.localize(lang))))
        })
        .collect();
    let names = |sources: &[toolhub_core::Source]| {
        RawJson::of(&sources.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let at = Timestamp::try_from(start.at).map(|at| at.to_string()).unwrap_or_default();
    RawObject::default()
        .with("id", start.record.as_str())
        .with("call_id", start.call.as_str())
        .with("tool", start.tool.as_str())
        .with("arguments", start.arguments.clone())
        .with("status", call.status.name())
        .with("source", RawJson::of(&answering_sources(call).first().map(ToString::to_string)))
        .with("sources", names(&call.sources))
        .with("candidates", names(&start.candidates))
        .with("strategy", start.strategy.as_str())
        .with("may_change", start.may_change)
        .with("started_at", at)
        .with("duration_ms", RawJson::of(&call.took.map(duration_millis)))
        .with("error_kind", RawJson::of(&error.map(|(kind, _)| kind)))
        .with("error", RawJson::of(&error.map(|(_, text)| text.localize(lang))))
        .with("attempts", RawJson::of(&attempts))
        .with("conversation", RawJson::of(&start.conversation))
        .with("request", RawJson::of(&start.request))
        .with("parent", RawJson::of(&start.parent.as_ref().map(CallId::as_str)))
        .with("principal", &*start.authorization.principal)
        .with("rule", RawJson::of(&start.authorization.rule.as_deref()))
        .with("approver", RawJson::of(&start.authorization.approver.as_deref()))
}

/// Prints the existing calls, oldest first, and then every call when it ends, until Ctrl-C.
async fn follow(
    app: &App,
    archive: &CallArchive<'_>,
    query: CallQuery,
    first: Vec<CallRecord>,
) -> anyhow::Result<Exit> {
    let began = SystemTime::now();
    let mut printed: HashSet<RecordId> = HashSet::new();
    let mut show = |calls: Vec<CallRecord>| {
        for call in calls.into_iter().rev() {
            if call.status == CallStatus::Running || !printed.insert(call.start.record.clone()) {
                continue;
            }
            if app.screen.json {
                app.screen.json_line(as_json(app, &call).into_raw().get());
            } else {
                print(app, std::slice::from_ref(&call));
            }
        }
    };
    // A call that started earlier may end while the history is followed.
    let oldest =
        first.iter().filter(|call| call.status == CallStatus::Running).map(|call| call.start.at).min();
    let since = Some(oldest.unwrap_or(began).max(query.since.unwrap_or(SystemTime::UNIX_EPOCH)));
    show(first);
    let work = async {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            show(archive.calls(CallQuery { since, ..query.clone() }).await?);
        }
    };
    // Ctrl-C is the normal end, not a failure.
    match app.interruptible(work).await {
        Ok(result) => result,
        Err(_) => Ok(Exit::Done),
    }
}

/// Writes every matching call, newest first, one JSON object per line.
async fn export(
    app: &App,
    archive: &CallArchive<'_>,
    query: CallQuery,
    file: &Path,
    max_records: Option<usize>,
) -> anyhow::Result<Exit> {
    let mut out = match file == Path::new("-") {
        true => None,
        false => {
            Some(UserFile::open(file, FileMode::Private).with_context(|| format!("`{}`", file.display()))?)
        }
    };
    let (mut before, mut count) = (None, 0);
    loop {
        let left =
            max_records.map_or(PAGE_SIZE, |max_records| max_records.saturating_sub(count).min(PAGE_SIZE));
        let page = CallQuery { before: before.clone(), limit: Some(left), ..query.clone() };
        let found = archive.calls(page).await?;
        let Some(last) = found.last() else { break };
        before = Some(last.start.record.clone());
        count += found.len();
        for call in &found {
            let line = as_json(app, call).into_raw();
            match &mut out {
                Some(out) => {
                    writeln!(out, "{}", line.get()).with_context(|| format!("`{}`", file.display()))?;
                }
                None => app.screen.json_line(line.get()),
            }
        }
    }
    if let Some(out) = out {
        out.commit(SyncMode::None).with_context(|| format!("`{}`", file.display()))?;
        let name = file.display();
        app.screen.note(&app.lang().choose(
            format!("{} written to `{name}`", plural(count, "call")),
            format!("已将 {count} 次调用写入 `{name}`"),
        ));
    }
    Ok(Exit::Done)
}
