//! `toolhub parse`: extracts tool calls from one or more texts. Runs no tool and connects to no server.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use serde::Deserialize;
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::ModelCall;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_engine::coerce::coerce;
use toolhub_llm::formats::{KnownTool, KnownTools, ParsedOutput, parse_output};

use crate::app::App;
use crate::args::text::ParseArgs;
use crate::commands::text::run::{known_tools, read_calls};
use crate::exit::Exit;
use crate::render::sanitize::sanitized_json;

pub(crate) async fn run(app: &App, args: &ParseArgs) -> anyhow::Result<Exit> {
    if args.jsonl {
        return parse_lines(app.lang());
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The same tools as in `run`. Connects to no server: only cached lists are used.
    let known = match app.hub().await {
        Ok(hub) => known_tools(hub),
        Err(error) => {
            app.screen.warn(&error.localize(app.lang()));
            KnownTools::default()
        }
    };
    let reading = read_calls(&text, &known);
    if app.screen.json {
        let output_json = output_json(&text, &reading, &known, app.lang());
        app.screen.json(&output_json.into_raw());
    } else {
        show(app, &text, &reading);
    }
    Ok(if reading.unreadable.is_empty() { Exit::Done } else { Exit::Failed })
}

fn show(app: &App, text: &str, reading: &ParsedOutput) {
    let lang = app.lang();
    for call in &reading.calls {
        app.screen.verbatim(call_shown(text, call, call.arguments.clone()).into_raw().get());
        for note in &call.repaired {
            app.screen.note(&note.localize(lang));
        }
    }
    for unreadable in &reading.unreadable {
        app.screen.error(&unreadable.localize(lang));
    }
    if reading.calls.is_empty() && reading.unreadable.is_empty() {
        app.screen.note(lang.choose("no tool call in it", "其中没有工具调用"));
    }
}

/// One line of `--jsonl`.
#[derive(Deserialize)]
struct Line {
    #[serde(default = "RawJson::null")]
    id: RawJson,
    text: String,
    #[serde(default)]
    tools: Option<Vec<RawJson>>,
}

fn parse_lines(lang: Lang) -> anyhow::Result<Exit> {
    let on_terminal = std::io::stdout().is_terminal();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut exit = Exit::Done;
    let mut input = std::io::stdin().lock();
    let (mut line, mut number) = (Vec::new(), 0_usize);
    loop {
        line.clear();
        number += 1;
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str::<Line>(&text) {
            Ok(line) => {
                let tools = line.tools.unwrap_or_default();
                let known = KnownTools::new(tools.iter().filter_map(known_tool));
                let reading = parse_output(&line.text, &known);
                let members = output_json(&line.text, &reading, &known, lang);
                let start = RawObject::default().with("id", line.id);
                members.iter().fold(start, |object, (key, value)| object.with(key.to_owned(), value.clone()))
            }
            Err(error) => {
                exit = Exit::Failed;
                unreadable_line(number, &text, &error, lang)
            }
        };
        let answer = answer.into_raw();
        let output_json = if on_terminal { sanitized_json(answer.get()) } else { answer.get().into() };
        match writeln!(out, "{output_json}") {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(exit),
            written => written?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(exit),
    }
}

fn unreadable_line(number: usize, line: &str, error: &serde_json::Error, lang: Lang) -> RawObject {
    let id = RawJson::parse(line).ok().and_then(|line| line.object()?.get("id").cloned());
    let message = lang.choose(
        format!("line {number} is not `{{\"id\", \"text\"}}`: {error}"),
        format!("第 {number} 行不是 `{{\"id\", \"text\"}}`：{error}"),
    );
    let none: [&str; 0] = [];
    RawObject::default()
        .with("id", id.unwrap_or_else(RawJson::null))
        .with("calls", RawJson::of(&none))
        .with("repaired", RawJson::of(&none))
        .with("error", message)
}

/// Parses a tool given by its name, or by a definition in the format of any common API.
fn known_tool(value: &RawJson) -> Option<KnownTool> {
    if let Ok(name) = value.decode::<String>() {
        return Some(KnownTool::new(name, None));
    }
    let outer = value.object()?;
    let inner = outer.get("function").and_then(RawJson::object);
    let definition = inner.as_ref().unwrap_or(&outer);
    let name: String = definition.get("name")?.decode().ok()?;
    let schema = ["parameters", "inputSchema", "input_schema", "schema"]
        .iter()
        .find_map(|key| definition.get(key))
        .filter(|schema| schema.is_object());
    Some(KnownTool::new(name, schema.cloned()))
}

/// The extracted calls, with arguments coerced by the available schemas.
fn output_json(text: &str, reading: &ParsedOutput, known: &KnownTools, lang: Lang) -> RawObject {
    let mut repaired: Vec<LocalizedText> = Vec::new();
    let mut note = |notes: &[LocalizedText]| {
        for text in notes {
            if !repaired.contains(text) {
                repaired.push(text.clone());
            }
        }
    };
    let mut calls = Vec::with_capacity(reading.calls.len());
    for call in &reading.calls {
        note(&call.repaired);
        let schema = known.named(call.tool.as_str()).and_then(KnownTool::schema);
        let arguments = match schema.and_then(|schema| coerce(schema, &call.arguments)) {
            Some(coerced) => {
                note(&coerced.notes);
                coerced.arguments
            }
            None => call.arguments.clone(),
        };
        calls.push(call_shown(text, call, arguments));
    }
    let localize = |texts: &[LocalizedText]| texts.iter().map(|text| text.localize(lang)).collect::<Vec<_>>();
    let error = (!reading.unreadable.is_empty()).then(|| localize(&reading.unreadable).join("\n"));
    RawObject::default()
        .with("calls", RawJson::of(&calls))
        .with("repaired", RawJson::of(&localize(&repaired)))
        .with("error", RawJson::of(&error))
}

/// A call as JSON; with its id only if the text contains it.
fn call_shown(text: &str, call: &ModelCall, arguments: RawJson) -> RawObject {
    let mut output_json = RawObject::default();
    if text.contains(call.id.as_str()) {
        output_json.set("id", call.id.as_str());
    }
    output_json.set("name", call.tool.as_str());
    output_json.set("arguments", arguments);
    if let Some(source) = &call.source {
        output_json.set("source", source.as_str());
    }
    output_json
}
