//! Cursor and VS Code: their variable syntax, and the input prompts of VS Code.

use serde_json::Value;
use toolhub_core::lang::Text;

use super::Format;
use super::claude::plain;
use super::entry::{ClientServer, Found, Unusable};
use super::fields::{Fields, unknown_type};
use super::login;
use super::members::{self, Rules, Written};
use super::reading::{Context, Forms, Read};
use super::syntax::{Syntax, object_at};
use crate::config::spec::TransportSpec;

pub(super) const CURSOR: Format =
    Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write: write_cursor };
pub(super) const VS_CODE: Format =
    Format { disables: false, syntax: Syntax::Json, path: &["servers"], write: write_vs_code };

pub(super) fn read_cursor(document: &Value, context: &Context) -> Vec<Found> {
    let servers = object_at(document, &["mcpServers"]).into_iter().flatten();
    servers.map(|(id, value)| context.entry(id, value, |fields| editor(fields, &login::CURSOR))).collect()
}

fn editor(fields: &mut Fields<'_>, names: &login::Names) -> Result<Read, Text> {
    let mut read = plain(fields, Forms::Editor)?;
    read.extras.oauth = login::read(fields, names);
    Ok(read)
}

/// Reads the servers of an `mcp.json`, or those in `settings.json` of older versions.
pub(super) fn read_vs_code(document: &Value, context: &Context) -> Vec<Found> {
    let (servers, inputs) = match object_at(document, &["servers"]) {
        Some(servers) => (Some(servers), document.get("inputs")),
        None => {
            let settings = document.get("mcp");
            (
                settings.and_then(|settings| object_at(settings, &["servers"])),
                settings.and_then(|settings| settings.get("inputs")),
            )
        }
    };
    let context = Context { inputs: inputs.map(read_inputs).unwrap_or_default(), ..context.clone() };
    let entry = |(id, value): (&String, &Value)| {
        let found = context.entry(id, value, |fields| {
            fields.ignore(&["gallery", "version"]);
            editor(fields, &login::VS_CODE)
        })?;
        match &found.transport {
            TransportSpec::Http(spec) | TransportSpec::Sse(spec)
                if spec.url.starts_with("unix:") || spec.url.starts_with("pipe:") =>
            {
                let kind = spec.url.split(':').next().unwrap_or_default();
                Err(Unusable { id: id.clone(), why: unknown_type(kind) })
            }
            _ => Ok(found),
        }
    };
    servers.into_iter().flatten().map(entry).collect()
}

fn read_inputs(inputs: &Value) -> Vec<(String, Option<String>)> {
    let text = |input: &Value, key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    let inputs = inputs.as_array().into_iter().flatten();
    inputs.filter_map(|input| Some((text(input, "id")?, text(input, "default")))).collect()
}

const EDITOR: Rules = Rules {
    title: "Cursor",
    forms: Forms::Editor,
    remote: true,
    typed: true,
    cwd: false,
    call_timeout: None,
    tools: None,
    login: Some(&login::CURSOR),
};

fn write_cursor(server: &ClientServer) -> Written {
    members::write(server, &EDITOR)
}

fn write_vs_code(server: &ClientServer) -> Written {
    members::write(server, &Rules { title: "VS Code", cwd: true, login: Some(&login::VS_CODE), ..EDITOR })
}
