//! Detects the client of a file by its name, otherwise by its content.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::places::{Place, Scope, Surroundings};
use super::syntax::object_at;
use super::{Client, json, without_mark};

/// The client and scope of a file, if they can be determined.
pub fn detect(file: &Path, text: &str, around: &Surroundings) -> Option<Place> {
    let whole = around.folder.join(file);
    let name = |path: Option<&Path>| path?.file_name()?.to_str().map(str::to_owned);
    let (own, folder) = (name(Some(&whole)).unwrap_or_default(), name(whole.parent()).unwrap_or_default());
    let project = |depth: usize| -> Scope {
        match whole.ancestors().nth(depth) {
            Some(folder) if Some(folder) != around.home.as_deref() => Scope::Project(clean(folder)),
            _ => Scope::User,
        }
    };
    let (client, scope) = match (folder.as_str(), own.as_str()) {
        (_, "claude_desktop_config.json") => (Client::ClaudeDesktop, Scope::User),
        (_, ".claude.json") => (Client::ClaudeCode, Scope::User),
        (_, ".mcp.json") => (Client::ClaudeCode, project(1)),
        (".cursor", "mcp.json") => (Client::Cursor, project(2)),
        (".vscode", "mcp.json") => (Client::VsCode, project(2)),
        (".gemini", "settings.json") => (Client::Gemini, project(2)),
        (".codex", "config.toml") => (Client::Codex, project(2)),
        (_, other) => (by_ending(other, text)?, Scope::User),
    };
    Some(Place { client, file: file.to_owned(), scope })
}

fn clean(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

fn by_ending(name: &str, text: &str) -> Option<Client> {
    match Path::new(name).extension().and_then(|ending| ending.to_str()) {
        Some("toml") => Some(Client::Codex),
        Some("yaml" | "yml") => Some(Client::Goose),
        Some("json" | "jsonc" | "json5") => by_content(text),
        _ if without_mark(text).trim_start().starts_with(['{', '/']) => by_content(text),
        _ if text.contains("[mcp_servers") => Some(Client::Codex),
        _ if text.lines().any(|line| line.starts_with("extensions:")) => Some(Client::Goose),
        _ => None,
    }
}

fn by_content(text: &str) -> Option<Client> {
    // The following read reports the syntax error.
    let Ok(document) = json::parse(Path::new(""), without_mark(text)) else {
        return Some(Client::ClaudeCode);
    };
    if object_at(&document, &["servers"]).is_some() || object_at(&document, &["mcp", "servers"]).is_some() {
        return Some(Client::VsCode);
    }
    let servers = object_at(&document, &["mcpServers"])?;
    let of_editors = ["${env:", "${workspaceFolder", "${userHome}"];
    Some(match document.get("mcp") {
        _ if servers.values().filter_map(Value::as_object).any(is_gemini) => Client::Gemini,
        Some(lists) if lists.get("allowed").or(lists.get("excluded")).is_some() => Client::Gemini,
        _ if of_editors.iter().any(|form| text.contains(form)) => Client::Cursor,
        _ => Client::ClaudeCode,
    })
}

fn is_gemini(server: &Map<String, Value>) -> bool {
    ["httpUrl", "trust", "includeTools", "excludeTools"].iter().any(|key| server.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::places::System;
    use super::*;

    #[test]
    fn files_are_known_by_name_and_by_content() {
        let around = Surroundings {
            system: System::Linux,
            home: Some("/h".into()),
            folder: "/p".into(),
            named: BTreeMap::new(),
        };
        let check = |file: &str, text: &str, expect: Option<(Client, Option<&str>)>| {
            let found = detect(Path::new(file), text, &around).map(|place| match place.scope {
                Scope::User => (place.client, None),
                Scope::Project(folder) => (place.client, Some(folder)),
            });
            assert_eq!(found, expect.map(|(client, folder)| (client, folder.map(PathBuf::from))), "{file}");
        };
        check("/x/claude_desktop_config.json", "", Some((Client::ClaudeDesktop, None)));
        check(".mcp.json", "{}", Some((Client::ClaudeCode, Some("/p"))));
        check("/q/.vscode/mcp.json", "{}", Some((Client::VsCode, Some("/q"))));
        check("/h/.cursor/mcp.json", "{}", Some((Client::Cursor, None)));
        check("/h/.codex/config.toml", "", Some((Client::Codex, None)));
        check("backup.toml", "", Some((Client::Codex, None)));
        check("backup.yml", "", Some((Client::Goose, None)));
        check("a.json", "{\"servers\": {}}", Some((Client::VsCode, None)));
        check("settings.json", "{\"mcp\": {\"servers\": {}}}", Some((Client::VsCode, None)));
        check("a.json", "{\"mcpServers\": {\"a\": {\"httpUrl\": \"u\"}}}", Some((Client::Gemini, None)));
        check("a.json", "{\"mcpServers\": {\"a\": {\"url\": \"${env:U}\"}}}", Some((Client::Cursor, None)));
        check("a.json", "// x\n{\"mcpServers\": {}}", Some((Client::ClaudeCode, None)));
        check("a.json", "{ broken", Some((Client::ClaudeCode, None)));
        check("a.json", "{\"name\": \"x\"}", None);
        check("notes", "[mcp_servers.a]\n", Some((Client::Codex, None)));
        check("notes", "a: 1\nextensions:\n", Some((Client::Goose, None)));
        check("notes", "hello", None);
    }
}
