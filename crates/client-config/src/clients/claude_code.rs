//! Claude Code: `mcpServers`, and the servers per project in `~/.claude.json`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::WriteResult;
use crate::environment::ClientEnvironment;
use crate::format::Format;
use crate::login::{self, OAuthFieldNames, ScopeFormat};
use crate::members::{self, WriteRules};
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};

/// The minimum timeout that Claude Code accepts in its file.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

const LOGIN: OAuthFieldNames = OAuthFieldNames {
    holder: "oauth",
    client_id: "clientId",
    client_secret: None,
    port: Some("callbackPort"),
    scopes: ScopeFormat::Joined,
};

pub(super) struct ClaudeCode;

impl ClientProgram for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn format(&self) -> Format {
        Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write }
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CLAUDE_CONFIG_DIR"]
    }

    fn project_file(&self) -> Option<&'static str> {
        Some(".mcp.json")
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        let folder = environment.env_folder_or("CLAUDE_CONFIG_DIR", "");
        folder.map(|folder| folder.join(".claude.json")).into_iter().collect()
    }

    fn file_name(&self) -> Option<&'static str> {
        Some(".claude.json")
    }

    /// The default file is in the home folder itself.
    fn folder(&self, file: &Path, environment: &ClientEnvironment) -> Option<PathBuf> {
        match &environment.home {
            Some(home) if file.parent() == Some(home) => Some(home.join(".claude")),
            _ => file.parent().map(Path::to_path_buf),
        }
    }

    /// Other clients use the same layout, so that this is the weakest evidence.
    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        match &sample.content {
            // The following read reports the syntax error.
            SampleSyntax::InvalidJson => Some(Evidence::CommonLayout),
            SampleSyntax::Json(document) => {
                object_at(document, &["mcpServers"]).map(|_| Evidence::CommonLayout)
            }
            _ => None,
        }
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        read(document, context)
    }
}

/// The servers of the project in the current folder come first, since Claude Code prefers them.
fn read(document: &Value, context: &ReadContext) -> Vec<ReadResult> {
    let mut found = Vec::new();
    let projects = object_at(document, &["projects"]).into_iter().flatten();
    let mut disabled = Vec::new();
    for (folder, project) in projects.filter(|(folder, _)| is_same(folder, &context.folder)) {
        let project_context = ReadContext { workspace: Some(folder.into()), ..context.clone() };
        disabled.extend(project.get("disabledMcpServers").and_then(Value::as_array).into_iter().flatten());
        found.extend(code_servers(object_at(project, &["mcpServers"]), &project_context));
    }
    found.extend(code_servers(object_at(document, &["mcpServers"]), context));
    for server in found.iter_mut().flatten() {
        server.enabled &= !disabled.iter().any(|name| name.as_str() == Some(&server.id));
    }
    found
}

fn is_same(folder: &str, current: &Path) -> bool {
    let folder = Path::new(folder);
    folder == current
        || matches!((folder.canonicalize(), current.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn code_servers(servers: Option<&Map<String, Value>>, context: &ReadContext) -> Vec<ReadResult> {
    let entry = |(id, value): (&String, &Value)| {
        context.entry(id, value, |fields| {
            let mut read = ParsedEntry::common(fields, VariableSyntax::Toolhub)?;
            let millisecond = Duration::from_millis(1);
            let time = fields.time("timeout", millisecond).filter(|time| *time >= MIN_TIMEOUT);
            read.extras.call_timeout = fields.time("request_timeout_ms", millisecond).or(time);
            read.extras.oauth = login::read(fields, &LOGIN);
            Ok(read)
        })
    };
    servers.into_iter().flatten().map(entry).collect()
}

fn write(server: &ClientServer) -> WriteResult {
    if server.id == "workspace" {
        return Err(LocalizedText::new(
            "Claude Code keeps this name for itself",
            "Claude Code 保留了这个名称",
        ));
    }
    let long_enough = server.extras.call_timeout.is_some_and(|time| time >= MIN_TIMEOUT);
    let rules = WriteRules {
        title: "Claude Code",
        variable_syntax: VariableSyntax::Toolhub,
        remote: true,
        writes_type: true,
        cwd: false,
        call_timeout: long_enough.then_some("timeout"),
        tools: None,
        login: Some(&LOGIN),
    };
    members::write(server, &rules)
}
