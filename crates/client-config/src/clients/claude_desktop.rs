//! Claude Desktop: `mcpServers` in `claude_desktop_config.json`. It starts programs only, and expands no variables.

use std::path::PathBuf;

use serde_json::Value;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::WriteResult;
use crate::environment::{ClientEnvironment, OperatingSystem};
use crate::format::Format;
use crate::members::{self, WriteRules};
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample};
use crate::syntax::{Syntax, object_at};

pub(super) struct ClaudeDesktop;

impl ClientProgram for ClaudeDesktop {
    fn name(&self) -> &'static str {
        "claude-desktop"
    }

    fn title(&self) -> &'static str {
        "Claude Desktop"
    }

    fn format(&self) -> Format {
        Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write }
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        let default_folder = environment.app_config_folder().map(|folder| folder.join("Claude"));
        let folders = packaged(environment).into_iter().chain(default_folder);
        folders.map(|folder| folder.join("claude_desktop_config.json")).collect()
    }

    fn file_name(&self) -> Option<&'static str> {
        Some("claude_desktop_config.json")
    }

    /// Its layout is that of Claude Code, so that only the name of a file points to it.
    fn recognize(&self, _: &Sample<'_>) -> Option<Evidence> {
        None
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        let servers = object_at(document, &["mcpServers"]).into_iter().flatten();
        let entry = |(id, value): (&String, &Value)| {
            context.entry(id, value, |fields| ParsedEntry::common(fields, VariableSyntax::Unsupported))
        };
        servers.map(entry).collect()
    }
}

/// An installation from a Windows package has its own copy of the settings folder.
fn packaged(environment: &ClientEnvironment) -> Vec<PathBuf> {
    if environment.system != OperatingSystem::Windows {
        return Vec::new();
    }
    let packages =
        environment.env_folder_or("LOCALAPPDATA", "AppData/Local").map(|folder| folder.join("Packages"));
    let packages = packages.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let claude = packages.filter(|package| package.file_name().to_string_lossy().starts_with("Claude_"));
    let mut folders: Vec<PathBuf> = claude
        .map(|package| package.path().join("LocalCache/Roaming/Claude"))
        .filter(|folder| folder.is_dir())
        .collect();
    folders.sort();
    folders
}

fn write(server: &ClientServer) -> WriteResult {
    let rules = WriteRules {
        title: "Claude Desktop",
        variable_syntax: VariableSyntax::Unsupported,
        remote: false,
        writes_type: false,
        cwd: false,
        call_timeout: None,
        tools: None,
        login: None,
    };
    members::write(server, &rules)
}
