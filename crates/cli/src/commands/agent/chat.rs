//! `toolhub chat`: a stored conversation that can be resumed.

use std::io::IsTerminal as _;
use std::time::SystemTime;

use toolhub::Hub;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::args::ask::ChatArgs;
use crate::commands::agent::ask::{answer_request, ask_options, show_answer};
use crate::exit::{Exit, Interrupted, UsageError};
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};
use crate::terminal::input::read_line;
use crate::terminal::line_editor::LineEditor;

/// The maximum number of listed conversations.
const MAX_LISTED_CONVERSATIONS: usize = 30;
/// Line width of the list without a terminal.
const MAX_LINE_WIDTH: usize = 100;

pub(crate) async fn run(app: &App, args: ChatArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    if args.list {
        return list(app, hub).await;
    }
    let conversation = match args.resume.as_deref() {
        None => Hub::new_conversation(),
        Some(id) => resumed(app, hub, id).await?,
    };
    let options = ask_options(app, &args.agent, &conversation);
    let talks = std::io::stdin().is_terminal() && !app.screen.json;
    if talks {
        let lang = app.lang();
        app.screen.note(&lang.choose(
            format!("{DIM}conversation {conversation}; `/quit` or Ctrl-D ends it{DIM:#}"),
            format!("{DIM}对话 {conversation}；`/quit` 或 Ctrl-D 结束{DIM:#}"),
        ));
    }
    let mut last = Exit::Done;
    let mut editor = if talks { LineEditor::open(&hub.paths().data_dir) } else { None };
    loop {
        let line = match &mut editor {
            Some(editor) => editor.read(app).await?,
            None => {
                if talks {
                    app.screen.prompt(&format!("{BOLD}>{BOLD:#} "));
                }
                app.interruptible(read_line()).await?
            }
        };
        let Some(line) = line else { break };
        let request = line.trim();
        match request {
            "" => continue,
            "/quit" | "/exit" | "exit" | "quit" | "退出" => break,
            "/help" | "/帮助" | "help" | "帮助" | "?" | "？" => {
                app.screen.note(app.lang().choose(
                    "say what you want in your own words; `/quit` or Ctrl-D ends the conversation",
                    "用自己的话说明想做什么；`/quit` 或 Ctrl-D 结束对话",
                ));
                continue;
            }
            _ => {}
        }
        match answer_request(app, request, &args.agent, &options).await {
            Ok(outcome) => last = show_answer(app, &outcome, &conversation),
            // Ctrl-C cancels the current answer; at the prompt it ends the conversation.
            Err(error) if error.is::<Interrupted>() && talks => {
                app.screen.warn(app.lang().choose("interrupted", "已中断"));
            }
            Err(error) => return Err(error),
        }
    }
    if talks {
        app.screen.note(&app.lang().choose(
            format!("{DIM}go on with it: toolhub chat --resume {conversation}{DIM:#}"),
            format!("{DIM}继续该对话：toolhub chat --resume {conversation}{DIM:#}"),
        ));
    }
    Ok(last)
}

async fn resumed(app: &App, hub: &Hub, id: &str) -> anyhow::Result<String> {
    let known = hub.conversations(Some(1_000)).await?;
    let found = match id {
        "last" => known.first(),
        id => known.iter().find(|one| one.id == id),
    };
    match found {
        Some(one) => Ok(one.id.clone()),
        None => Err(UsageError(app.lang().choose(
            format!("there is no conversation `{id}`: `toolhub chat --list` shows those there are"),
            format!("没有对话 `{id}`：`toolhub chat --list` 列出已有的对话"),
        ))
        .into()),
    }
}

async fn list(app: &App, hub: &Hub) -> anyhow::Result<Exit> {
    let known = hub.conversations(Some(MAX_LISTED_CONVERSATIONS)).await?;
    if app.screen.json {
        let json: Vec<RawObject> = known
            .iter()
            .map(|one| {
                RawObject::default()
                    .with("id", one.id.as_str())
                    .with("opening", one.opening.as_str())
                    .with("turns", RawJson::of(&one.turns))
                    .with("first", utc(one.first))
                    .with("last", utc(one.last))
            })
            .collect();
        app.screen.json(&RawJson::of(&json));
        return Ok(Exit::Done);
    }
    let row = |one: &toolhub_core::conversation::ConversationSummary| {
        let opening = one.opening.split_whitespace().collect::<Vec<_>>().join(" ");
        vec![
            Cell::new(one.id.as_str(), NAME),
            Cell::new(day(one.last), DIM),
            Cell::from(one.turns.to_string()),
            Cell::from(opening),
        ]
    };
    let rows: Vec<Vec<Cell>> = known.iter().map(row).collect();
    for line in table_lines(&rows, "  ", Some(app.screen.width().unwrap_or(MAX_LINE_WIDTH))) {
        app.screen.line(&line);
    }
    if known.is_empty() {
        app.screen.note(app.lang().choose("no conversation yet", "还没有对话"));
    }
    Ok(Exit::Done)
}

/// A local date and time.
fn day(at: SystemTime) -> String {
    let zone = jiff::tz::TimeZone::system();
    let at = jiff::Timestamp::try_from(at);
    at.map(|at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

/// A UTC timestamp in RFC 3339 format for JSON; null if it is out of range.
fn utc(at: SystemTime) -> RawJson {
    let at = jiff::Timestamp::try_from(at).ok();
    at.map_or_else(RawJson::null, |at| RawJson::from(at.to_string()))
}
