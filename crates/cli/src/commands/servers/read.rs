//! `toolhub servers read` and `servers prompt`: one resource or prompt; images and other binary data are written to files.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use toolhub::ToolError;
use toolhub_core::{Localize as _, RawJson, RawObject, json};

use crate::app::App;
use crate::args::{PromptGetArgs, ReadArgs};
use crate::commands::servers::unknown_server;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BOLD, DIM};

pub(crate) async fn read(app: &App, args: &ReadArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let result = app.interruptible(hub.read_resource(&args.id, &args.uri)).await?;
    let result = result.ok_or_else(|| unknown_server(app, hub, &args.id))?;
    show(app, result, "contents", args.output.as_deref())
}

pub(crate) async fn prompt(app: &App, args: &PromptGetArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let mut arguments = RawObject::default();
    for pair in &args.pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            UsageError(app.lang().choose(
                format!("`{pair}` is not an argument: write it as key=value"),
                format!("`{pair}` 不是参数：请写成 key=value"),
            ))
        })?;
        arguments.set(key.to_owned(), value);
    }
    let result = app.interruptible(hub.get_prompt(&args.id, &args.name, arguments)).await?;
    let result = result.ok_or_else(|| unknown_server(app, hub, &args.id))?;
    show(app, result, "messages", args.output.as_deref())
}

/// Prints a result; `key` is the member that contains its items.
fn show(
    app: &App,
    result: Result<RawJson, ToolError>,
    key: &str,
    output: Option<&Path>,
) -> anyhow::Result<Exit> {
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            app.screen.error(&error.localize(app.lang()));
            return Ok(Exit::from(&error));
        }
    };
    let items: Vec<ResultItem> = items(&result, key);
    if let Some(output) = output {
        save(app, &items, output)?;
        if !app.screen.json {
            return Ok(Exit::Done);
        }
    }
    if app.screen.json {
        app.screen.json(&result);
        return Ok(Exit::Done);
    }
    for item in &items {
        if let Some(role) = &item.role {
            app.screen.line(&format!("{BOLD}{role}{BOLD:#}"));
        }
        match &item.content {
            Content::Text(text) => app.screen.verbatim(text),
            Content::Data(data) => {
                let (kind, size) = (&item.kind, data.len());
                app.screen.line(&app.lang().choose(
                    format!("{DIM}[{kind}, {size} bytes: save it with `--output FILE`]{DIM:#}"),
                    format!("{DIM}[{kind}，{size} 字节：用 `--output 文件` 保存]{DIM:#}"),
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// One item of a result.
struct ResultItem {
    role: Option<String>,
    kind: String,
    content: Content,
}

enum Content {
    Text(String),
    Data(Vec<u8>),
}

fn items(result: &RawJson, key: &str) -> Vec<ResultItem> {
    let members = result.object().unwrap_or_default();
    let list: Vec<RawJson> = members.get(key).and_then(|list| list.decode().ok()).unwrap_or_default();
    list.iter().map(item).collect()
}

/// Parses the contents of a resource, or a message of a prompt.
fn item(raw: &RawJson) -> ResultItem {
    let outer = raw.object().unwrap_or_default();
    let role = text_of(&outer, "role");
    let content = outer.get("content").and_then(RawJson::object).unwrap_or(outer);
    let inner = content.get("resource").and_then(RawJson::object).unwrap_or(content);
    let kind = text_of(&inner, "mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
    let data = ["blob", "data"].iter().find_map(|key| text_of(&inner, key));
    let decoded = data.and_then(|data| base64::engine::general_purpose::STANDARD.decode(data).ok());
    let content = match (decoded, text_of(&inner, "text")) {
        (Some(data), _) => Content::Data(data),
        (None, Some(text)) => Content::Text(text),
        (None, None) => Content::Text(json::pretty_json(raw.get())),
    };
    ResultItem { role, kind, content }
}

fn text_of(members: &RawObject, key: &str) -> Option<String> {
    members.get(key).and_then(|value| value.decode().ok())
}

/// Writes one item to `output`, or several to `output` with a number before the extension. Existing files are not overwritten.
fn save(app: &App, items: &[ResultItem], output: &Path) -> anyhow::Result<()> {
    for (index, item) in items.iter().enumerate() {
        let file = if items.len() == 1 { output.to_owned() } else { numbered(output, index + 1) };
        let bytes = match &item.content {
            Content::Text(text) => text.as_bytes(),
            Content::Data(data) => data,
        };
        let path = file.display().to_string();
        let written = std::fs::File::create_new(&file)
            .and_then(|mut created| std::io::Write::write_all(&mut created, bytes));
        written.map_err(|error| {
            UsageError(app.lang().choose(
                format!("`{path}` cannot be written: {error}"),
                format!("无法写入 `{path}`：{error}"),
            ))
        })?;
        let size = bytes.len();
        app.screen.note(&app.lang().choose(
            format!("saved `{path}` ({}, {size} bytes)", item.kind),
            format!("已保存 `{path}`（{}，{size} 字节）", item.kind),
        ));
    }
    Ok(())
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    match file.extension() {
        Some(extension) => file.with_file_name(format!("{stem}-{number}.{}", extension.to_string_lossy())),
        None => file.with_file_name(format!("{stem}-{number}")),
    }
}
