//! Claude Desktop and Claude Code: `mcpServers`, and the servers per project in `~/.claude.json`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use toolhub_core::lang::Text;

use super::Format;
use super::entry::{ClientServer, Found};
use super::fields::Fields;
use super::login;
use super::members::{self, Rules, Written};
use super::reading::{Context, Forms, Read};
use super::syntax::{Syntax, object_at};

pub(super) const DESKTOP: Format =
    Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write: write_desktop };
pub(super) const CODE: Format =
    Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write: write_code };

/// The minimum timeout that Claude Code accepts in its file.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) fn read_desktop(document: &Value, context: &Context) -> Vec<Found> {
    let servers = object_at(document, &["mcpServers"]).into_iter().flatten();
    servers.map(|(id, value)| context.entry(id, value, |fields| plain(fields, Forms::Nothing))).collect()
}

/// Reads `type`, `command`, `url` and their related fields, and the common `enabled` and `disabled` flags.
pub(super) fn plain(fields: &mut Fields<'_>, forms: Forms) -> Result<Read, Text> {
    let mut read = Read::new(fields.transport()?, forms);
    read.enabled = fields.flag("enabled").unwrap_or(true) && !fields.flag("disabled").unwrap_or(false);
    Ok(read)
}

/// The servers of the project in the current folder come first, since Claude Code prefers them.
pub(super) fn read_code(document: &Value, context: &Context) -> Vec<Found> {
    let mut found = Vec::new();
    let projects = object_at(document, &["projects"]).into_iter().flatten();
    let mut switched_off = Vec::new();
    for (folder, project) in projects.filter(|(folder, _)| is_same(folder, &context.folder)) {
        let here = Context { workspace: Some(folder.into()), ..context.clone() };
        switched_off
            .extend(project.get("disabledMcpServers").and_then(Value::as_array).into_iter().flatten());
        found.extend(code_servers(object_at(project, &["mcpServers"]), &here));
    }
    found.extend(code_servers(object_at(document, &["mcpServers"]), context));
    for server in found.iter_mut().flatten() {
        server.enabled &= !switched_off.iter().any(|name| name.as_str() == Some(&server.id));
    }
    found
}

fn is_same(folder: &str, current: &Path) -> bool {
    let folder = Path::new(folder);
    folder == current
        || matches!((folder.canonicalize(), current.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn code_servers(servers: Option<&Map<String, Value>>, context: &Context) -> Vec<Found> {
    let entry = |(id, value): (&String, &Value)| {
        context.entry(id, value, |fields| {
            let mut read = plain(fields, Forms::Ours)?;
            let millisecond = Duration::from_millis(1);
            let time = fields.time("timeout", millisecond).filter(|time| *time >= SHORTEST);
            read.extras.call_timeout = fields.time("request_timeout_ms", millisecond).or(time);
            read.extras.oauth = login::read(fields, &login::CLAUDE_CODE);
            Ok(read)
        })
    };
    servers.into_iter().flatten().map(entry).collect()
}

fn write_desktop(server: &ClientServer) -> Written {
    let rules = Rules {
        title: "Claude Desktop",
        forms: Forms::Nothing,
        remote: false,
        typed: false,
        cwd: false,
        call_timeout: None,
        tools: None,
        login: None,
    };
    members::write(server, &rules)
}

fn write_code(server: &ClientServer) -> Written {
    if server.id == "workspace" {
        return Err(Text::new("Claude Code keeps this name for itself", "Claude Code 保留了这个名称"));
    }
    let long_enough = server.extras.call_timeout.is_some_and(|time| time >= SHORTEST);
    let rules = Rules {
        title: "Claude Code",
        forms: Forms::Ours,
        remote: true,
        typed: true,
        cwd: false,
        call_timeout: long_enough.then_some("timeout"),
        tools: None,
        login: Some(&login::CLAUDE_CODE),
    };
    members::write(server, &rules)
}
