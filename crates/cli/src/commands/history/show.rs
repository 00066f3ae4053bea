//! `toolhub history ID`: one recorded call, with the calls that it made and the call that made it.

use toolhub::script_code;
use toolhub_core::call_log::{CallQuery, CallRecord, RecordId};
use toolhub_core::json::pretty_json;
use toolhub_core::millis::duration_millis;
use toolhub_core::principal::LOCAL;
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::commands::history::archive::{ArchivedCall, CallArchive, NestedCall};
use crate::commands::history::{answering_sources, as_json, local_time, milliseconds, status_cell};
use crate::exit::Exit;
use crate::render::screen::{BAD, BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

/// Indentation of what belongs to a heading.
const INDENT: &str = "  ";

pub(crate) async fn run(app: &App, archive: &CallArchive<'_>, id: &str) -> anyhow::Result<Exit> {
    let record = match id {
        "last" => {
            let newest = archive.calls(CallQuery { limit: Some(1), ..CallQuery::default() }).await?;
            newest.into_iter().next().map(|call| call.start.record)
        }
        id => Some(RecordId::new(id.trim())),
    };
    let found = match &record {
        Some(record) => archive.find(record).await?,
        None => None,
    };
    let Some(found) = found else {
        let text = app.lang().choose(
            format!(
                "there is no call `{id}`, or it is no longer kept; `toolhub history` shows what there is"
            ),
            format!("没有调用 `{id}`，或已不再保留；`toolhub history` 列出现有的"),
        );
        if app.screen.json {
            app.screen
                .json(&RawObject::default().with("success", false).with("error", text.as_str()).into_raw());
        }
        app.screen.error(&text);
        return Ok(Exit::Failed);
    };
    if app.screen.json {
        app.screen.json(&json_of(app, &found).into_raw());
        return Ok(Exit::Done);
    }
    print(app, &found);
    Ok(Exit::Done)
}

/// The call as JSON, with the ids and outcomes of its nested calls.
fn json_of(app: &App, found: &ArchivedCall) -> RawObject {
    let nested = |call: &NestedCall| {
        RawObject::default()
            .with("id", call.record.as_str())
            .with("tool", call.tool.as_str())
            .with("status", call.status.name())
            .with("duration_ms", RawJson::of(&call.took.map(duration_millis)))
            .with("error", RawJson::of(&call.error.as_ref().map(|error| error.localize(app.lang()))))
    };
    as_json(app, &found.call)
        .with("parent_id", RawJson::of(&found.parent.as_ref().map(RecordId::as_str)))
        .with("nested", RawJson::of(&found.nested.iter().map(nested).collect::<Vec<_>>()))
}

fn print(app: &App, found: &ArchivedCall) {
    let (lang, call) = (app.lang(), &found.call);
    table(app, "", &[summary(app, call)]);
    table(app, INDENT, &facts(app, found));
    print_arguments(app, call);
    if !found.nested.is_empty() {
        heading(app, lang.choose("calls that it made", "它发起的调用"));
        let rows: Vec<Vec<Cell>> = found.nested.iter().map(|nested| nested_row(app, nested)).collect();
        table(app, INDENT, &rows);
    }
    let id = &call.start.record;
    app.screen.note(&lang.choose(
        format!("`toolhub result {id}` shows the result"),
        format!("`toolhub result {id}` 显示结果"),
    ));
}

fn table(app: &App, indent: &str, rows: &[Vec<Cell>]) {
    for line in table_lines(rows, indent, app.screen.width()) {
        app.screen.line(&line);
    }
}

fn heading(app: &App, text: &str) {
    table(app, "", &[vec![Cell::new(text, BOLD)]]);
}

fn summary(app: &App, call: &CallRecord) -> Vec<Cell> {
    let places = answering_sources(call).iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    vec![
        Cell::new(call.start.tool.as_str(), NAME),
        status_cell(app, call.status),
        Cell::from(places),
        Cell::new(milliseconds(call.took), DIM),
    ]
}

/// What is known beside arguments and result; empty values are left out.
fn facts(app: &App, found: &ArchivedCall) -> Vec<Vec<Cell>> {
    let (lang, start) = (app.lang(), &found.call.start);
    let principal = Some(&*start.authorization.principal).filter(|principal| *principal != LOCAL);
    // The record of the parent, which this command accepts; the id of its call if the record is deleted.
    let parent = found.parent.as_ref().map(RecordId::as_str).or(start.parent.as_ref().map(|id| id.as_str()));
    let facts = [
        (lang.choose("id", "编号"), Some(start.record.as_str())),
        (lang.choose("made by call", "发起调用"), parent),
        (lang.choose("caller", "调用方"), principal),
        (lang.choose("rule", "规则"), start.authorization.rule.as_deref()),
        (lang.choose("approved by", "审批人"), start.authorization.approver.as_deref()),
        (lang.choose("conversation", "对话"), start.conversation.as_deref()),
        (lang.choose("request", "请求"), start.request.as_deref()),
    ];
    let fact = |name: &str, cell: Cell| vec![Cell::new(name, DIM), cell];
    let mut rows = vec![fact(lang.choose("started", "开始"), Cell::from(local_time(start.at)))];
    rows.extend(facts.into_iter().filter_map(|(name, value)| Some(fact(name, Cell::from(value?)))));
    if let Some((_, error)) = &found.call.error {
        rows.push(fact(lang.choose("error", "错误"), Cell::new(error.localize(lang), BAD)));
    }
    rows
}

/// The arguments; the code of a script as its own lines.
fn print_arguments(app: &App, call: &CallRecord) {
    let (lang, start) = (app.lang(), &call.start);
    let Some(code) = script_code(start.tool.as_str(), &start.arguments) else {
        heading(app, lang.choose("arguments", "参数"));
        return print_block(app, &readable(&start.arguments));
    };
    heading(app, lang.choose("script", "脚本"));
    print_block(app, &code);
    let mut others = start.arguments.object().unwrap_or_default();
    others.remove("code");
    if !others.is_empty() {
        heading(app, lang.choose("other arguments", "其他参数"));
        print_block(app, &readable(&others.into_raw()));
    }
}

/// Indented JSON; very deep values are not indented, since the indentation would be much longer than the value.
fn readable(value: &RawJson) -> String {
    if value.too_deep().is_none() { pretty_json(value.get()) } else { value.get().to_owned() }
}

fn print_block(app: &App, text: &str) {
    let indented: Vec<String> = text
        .lines()
        .map(|line| if line.is_empty() { String::new() } else { format!("{INDENT}{line}") })
        .collect();
    app.screen.verbatim(&indented.join("\n"));
}

fn nested_row(app: &App, call: &NestedCall) -> Vec<Cell> {
    let error = call.error.as_ref().map(|error| error.localize(app.lang())).unwrap_or_default();
    vec![
        status_cell(app, call.status),
        Cell::new(call.tool.as_str(), NAME),
        Cell::new(milliseconds(call.took), DIM),
        Cell::new(call.record.as_str(), DIM),
        Cell::from(error.lines().next().unwrap_or_default()),
    ]
}
