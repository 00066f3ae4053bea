//! Input files of `eval` (JSON lines of tools and requests), and formatting of progress and percentages.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use toolhub_core::{Lang, RawJson, Source, Tool, ToolDefinition};

use crate::exit::UsageError;

/// A progress bar.
pub(crate) fn progress_bar(done: usize, all: usize) -> String {
    let full = done * 30 / all.max(1);
    format!("{}{} {done}/{all}", "█".repeat(full), "░".repeat(30 - full))
}

/// Formats a fraction as percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// The non-empty lines of a file with their line numbers. `shape` describes a request, for error messages.
pub(crate) fn read_lines(file: &Path, shape: &str, lang: Lang) -> Result<Vec<(usize, RawJson)>, UsageError> {
    let name = file.display();
    let unread = |error: std::io::Error| {
        UsageError(
            lang.choose(format!("`{name}` cannot be read: {error}"), format!("无法读取 `{name}`：{error}")),
        )
    };
    let mut found = Vec::new();
    for (index, line) in BufReader::new(std::fs::File::open(file).map_err(unread)?).lines().enumerate() {
        let line = line.map_err(unread)?;
        if !line.trim().is_empty() {
            let parsed = RawJson::parse(line).map_err(|_| wrong_line(file, index + 1, shape, lang))?;
            found.push((index + 1, parsed));
        }
    }
    Ok(found)
}

/// The error for a line that is neither a tool nor of the form `shape`.
pub(crate) fn wrong_line(file: &Path, line: usize, shape: &str, lang: Lang) -> UsageError {
    let name = file.display();
    UsageError(lang.choose(
        format!("line {line} of `{name}` is not what it should be: a tool is `{{\"name\", \"description\", \"inputSchema\"}}`, a query `{shape}`"),
        format!("`{name}` 第 {line} 行格式不对：工具应为 `{{\"name\", \"description\", \"inputSchema\"}}`，请求应为 `{shape}`"),
    ))
}

/// Parses a tool with its schema in `inputSchema` or `parameters`. Returns its id, or its name if it has no id.
pub(crate) fn read_tool(line: &RawJson) -> Option<(String, Tool)> {
    let mut members = line.object()?;
    if !members.contains("inputSchema")
        && let Some(schema) = members.get("parameters").filter(|schema| schema.is_object()).cloned()
    {
        members.set("inputSchema", schema);
    }
    let text = |key: &str| members.get(key).and_then(|value| value.decode::<String>().ok());
    let source = text("server").map_or(Source::Native, |server| Source::from_name(&server));
    let id = text("id").or_else(|| text("name"))?;
    let definition = ToolDefinition::parse(members.into_raw()).ok()?;
    Some((id, Tool::new(source, definition)))
}
