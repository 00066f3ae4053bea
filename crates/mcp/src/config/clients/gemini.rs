//! Gemini CLI: `mcpServers` in `settings.json`, with lists of allowed and excluded servers.

use std::time::Duration;

use serde_json::Value;
use toolhub_core::lang::Text;

use super::super::spec::{HttpSpec, TransportSpec};
use super::Format;
use super::claude::plain;
use super::entry::{ClientServer, Found};
use super::fields::{Fields, unknown_type};
use super::login;
use super::members::{self, Rules, Written};
use super::reading::{Context, Forms, Read};
use super::syntax::{Syntax, object_at};

pub(super) const FORMAT: Format =
    Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write };

pub(super) fn read(document: &Value, context: &Context) -> Vec<Found> {
    let names = |key: &str| document.get("mcp").and_then(|mcp| mcp.get(key)).and_then(Value::as_array);
    let (allowed, excluded) = (names("allowed"), names("excluded"));
    // Gemini CLI compares these names without regard to case.
    let lists = |list: &Vec<Value>, id: &str| {
        let same =
            |name: &Value| name.as_str().is_some_and(|name| name.trim().to_lowercase() == id.to_lowercase());
        list.iter().any(same)
    };
    let entry = |(id, value): (&String, &Value)| {
        let mut found = context.entry(id, value, server)?;
        found.enabled &= allowed.is_none_or(|list| list.is_empty() || lists(list, id));
        found.enabled &= !excluded.is_some_and(|list| lists(list, id));
        Ok(found)
    };
    object_at(document, &["mcpServers"]).into_iter().flatten().map(entry).collect()
}

fn server(fields: &mut Fields<'_>) -> Result<Read, Text> {
    if fields.text("tcp")?.is_some() {
        return Err(unknown_type("tcp"));
    }
    // Takes precedence over `url` and `command` in Gemini CLI too.
    let mut read = match fields.text("httpUrl")? {
        Some(url) => {
            fields.ignore(&["type", "url"]);
            let spec = HttpSpec { url, headers: fields.pairs("headers")? };
            Read::new(TransportSpec::Http(spec), Forms::Shell)
        }
        None => plain(fields, Forms::Shell)?,
    };
    read.extras.oauth = login::read(fields, &login::GEMINI);
    read.extras.call_timeout = fields.time("timeout", Duration::from_millis(1));
    // `tool(argument)` allows the tool as well.
    let name = |tool: String| tool.split('(').next().unwrap_or_default().to_owned();
    let tools: Vec<String> = fields.texts("includeTools")?.into_iter().map(name).collect();
    read.extras.tools = (!tools.is_empty()).then_some(tools);
    Ok(read)
}

fn write(server: &ClientServer) -> Written {
    let rules = Rules {
        title: "Gemini CLI",
        forms: Forms::Shell,
        remote: true,
        typed: false,
        cwd: true,
        call_timeout: Some("timeout"),
        tools: Some("includeTools"),
        login: Some(&login::GEMINI),
    };
    members::write(server, &rules)
}
