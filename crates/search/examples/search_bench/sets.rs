//! Reads the benchmark sets of a folder: tools, and requests with their relevant tools.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use toolhub_core::{RawJson, ServerId, Source, Tool, ToolDefinition};

/// A set of tools and requests.
pub(crate) struct Set {
    pub(crate) name: String,
    /// The tools with their ids.
    pub(crate) tools: Vec<(String, Tool)>,
    pub(crate) queries: Vec<Query>,
}

/// A request and the ids of its relevant tools.
#[derive(Deserialize)]
pub(crate) struct Query {
    pub(crate) query: String,
    pub(crate) relevant: Vec<String>,
}

impl Set {
    /// Copies of the tools.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        self.tools.iter().map(|(_, tool)| tool.clone())
    }

    /// The relevant tools of a request.
    pub(crate) fn right_tools<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Tool> {
        self.tools.iter().filter(|(id, _)| query.relevant.contains(id)).map(|(_, tool)| tool)
    }

    /// The id of a tool returned by an index.
    pub(crate) fn id_of(&self, tool: &Tool) -> Option<&str> {
        let same = |(_, own): &&(String, Tool)| std::sync::Arc::ptr_eq(&own.definition, &tool.definition);
        self.tools.iter().find(same).map(|(id, _)| id.as_str())
    }
}

/// All sets of the folder, sorted by name.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Set>> {
    let entries = fs::read_dir(folder).with_context(|| format!("`{}`", folder.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let mut sets = Vec::new();
    for name in names {
        let path = folder.join(&name);
        let Some(tools) = read(&path.join("tools.jsonl"))? else { continue };
        let tools = tools.lines().map(tool).collect::<Result<_>>().with_context(|| name.clone())?;
        let queries = read(&path.join("queries.jsonl"))?.unwrap_or_default();
        let queries = queries
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .with_context(|| name.clone())?;
        sets.push(Set { name, tools, queries });
    }
    Ok(sets)
}

/// The content of a file or of its gzip version `path.gz`; `None` if neither exists.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => return Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("`{}`", path.display())),
    }
    let packed = path.with_added_extension("gz");
    let file = match File::open(&packed) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("`{}`", packed.display())),
    };
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).with_context(|| format!("`{}`", packed.display()))?;
    Ok(Some(text))
}

fn tool(line: &str) -> Result<(String, Tool)> {
    let line: Value = serde_json::from_str(line)?;
    let text = |key: &str| line.get(key).and_then(Value::as_str);
    let id = text("id").context("a tool without id")?.to_owned();
    let mut definition = json!({"name": line.get("name"), "description": line.get("description")});
    if let Some(schema) = line.get("parameters").filter(|schema| schema.is_object()) {
        definition["inputSchema"] = schema.clone();
    }
    let source = text("server").map_or(Source::Native, |server| Source::Server(ServerId::new(server)));
    Ok((id, Tool::new(source, ToolDefinition::parse(RawJson::of(&definition))?)))
}
