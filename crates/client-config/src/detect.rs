//! Detects the client of a file by its name, otherwise by its content.

use std::path::{Path, PathBuf};

use crate::clients::Client;
use crate::environment::{ClientEnvironment, FileScope};
use crate::format::strip_bom;
use crate::json;
use crate::locations::ConfigLocation;
use crate::sample::{Evidence, Sample, SampleSyntax};

/// The client and scope of a file, if they can be determined.
pub fn detect_client(file: &Path, text: &str, environment: &ClientEnvironment) -> Option<ConfigLocation> {
    let full_path = environment.folder.join(file);
    let by_name =
        Client::all().find_map(|client| Some((client, scope_by_name(client, &full_path, environment)?)));
    let (client, scope) = match by_name {
        Some(found) => found,
        None => (by_content(&full_path, text)?, FileScope::User),
    };
    Some(ConfigLocation { client, file: file.to_owned(), scope })
}

/// The scope of a file whose name is one that the client uses.
fn scope_by_name(client: Client, full_path: &Path, environment: &ClientEnvironment) -> Option<FileScope> {
    let program = client.program();
    if program.file_name().is_some_and(|name| full_path.file_name() == Some(name.as_ref())) {
        return Some(FileScope::User);
    }
    let path = Path::new(program.project_file()?);
    if !full_path.ends_with(path) {
        return None;
    }
    Some(match full_path.ancestors().nth(path.components().count()) {
        Some(folder) if Some(folder) != environment.home.as_deref() => FileScope::Project(clean(folder)),
        _ => FileScope::User,
    })
}

fn clean(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The client with the strongest evidence; the first one of several.
fn by_content(file: &Path, text: &str) -> Option<Client> {
    let sample = Sample { content: content(file, text), text };
    let mut best: Option<(Evidence, Client)> = None;
    for client in Client::all() {
        let Some(evidence) = client.program().recognize(&sample) else { continue };
        if best.is_none_or(|(known, _)| evidence > known) {
            best = Some((evidence, client));
        }
    }
    best.map(|(_, client)| client)
}

fn content(file: &Path, text: &str) -> SampleSyntax {
    let text = strip_bom(text);
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("toml") => SampleSyntax::Toml,
        Some("yaml" | "yml") => SampleSyntax::Yaml,
        Some("json" | "jsonc" | "json5") => json_content(text),
        _ if text.trim_start().starts_with(['{', '/']) => json_content(text),
        _ => SampleSyntax::Unknown,
    }
}

fn json_content(text: &str) -> SampleSyntax {
    json::parse(Path::new(""), text).map_or(SampleSyntax::InvalidJson, SampleSyntax::Json)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::environment::OperatingSystem;
    use crate::tests::named;

    #[test]
    fn detects_client_by_name_and_content() {
        let environment = ClientEnvironment {
            system: OperatingSystem::Linux,
            home: Some("/h".into()),
            folder: "/p".into(),
            named: BTreeMap::new(),
        };
        let check = |file: &str, text: &str, expect: Option<(Client, Option<&str>)>| {
            let found =
                detect_client(Path::new(file), text, &environment).map(|location| match location.scope {
                    FileScope::User => (location.client, None),
                    FileScope::Project(folder) => (location.client, Some(folder)),
                });
            assert_eq!(found, expect.map(|(client, folder)| (client, folder.map(PathBuf::from))), "{file}");
        };
        check("/x/claude_desktop_config.json", "", Some((named("claude-desktop"), None)));
        check(".mcp.json", "{}", Some((named("claude-code"), Some("/p"))));
        check("/q/.vscode/mcp.json", "{}", Some((named("vscode"), Some("/q"))));
        check("/h/.cursor/mcp.json", "{}", Some((named("cursor"), None)));
        check("/h/.codex/config.toml", "", Some((named("codex"), None)));
        check("backup.toml", "", Some((named("codex"), None)));
        check("backup.yml", "", Some((named("goose"), None)));
        check("a.json", "{\"servers\": {}}", Some((named("vscode"), None)));
        check("settings.json", "{\"mcp\": {\"servers\": {}}}", Some((named("vscode"), None)));
        check("a.json", "{\"mcpServers\": {\"a\": {\"httpUrl\": \"u\"}}}", Some((named("gemini"), None)));
        check("a.json", "{\"mcpServers\": {\"a\": {\"url\": \"${env:U}\"}}}", Some((named("cursor"), None)));
        check("a.json", "// x\n{\"mcpServers\": {}}", Some((named("claude-code"), None)));
        check("a.json", "{ broken", Some((named("claude-code"), None)));
        check("a.json", "{\"name\": \"x\"}", None);
        check("notes", "[mcp_servers.a]\n", Some((named("codex"), None)));
        check("notes", "a: 1\nextensions:\n", Some((named("goose"), None)));
        check("notes", "hello", None);
    }
}
