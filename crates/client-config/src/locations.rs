//! The configuration file locations of each client on each operating system.

use std::path::{Path, PathBuf};

use crate::clients::Client;
use crate::environment::{ClientEnvironment, FileScope, OperatingSystem};

/// A configuration file of a client.
#[derive(Debug, Clone)]
pub struct ConfigLocation {
    /// The client.
    pub client: Client,
    /// The file; it need not exist.
    pub file: PathBuf,
    /// The scope.
    pub scope: FileScope,
}

/// Environment variables that move the configuration files of many programs.
const FOLDER_VARIABLES: [&str; 3] = ["XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA"];

impl ClientEnvironment {
    /// The environment of this process.
    pub fn current() -> Self {
        let folder_in =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let system = if cfg!(windows) {
            OperatingSystem::Windows
        } else if cfg!(target_os = "macos") {
            OperatingSystem::MacOs
        } else {
            OperatingSystem::Linux
        };
        let home = match system {
            OperatingSystem::Windows => folder_in("USERPROFILE").or_else(|| folder_in("HOME")),
            _ => folder_in("HOME"),
        };
        let names =
            FOLDER_VARIABLES.iter().chain(Client::all().flat_map(|client| client.program().variables()));
        let named = names.filter_map(|name| Some(((*name).to_owned(), folder_in(name)?))).collect();
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { system, home, folder, named }
    }
}

/// The files of a client: project files first, since clients prefer them, then the user's, the default one first.
pub fn config_locations(client: Client, environment: &ClientEnvironment) -> Vec<ConfigLocation> {
    let user = client.program().user_files(environment);
    let folder = &environment.folder;
    // In the home folder both may be the same file, which then counts as the user's.
    let project = client.program().project_file().map(|path| folder.join(path));
    let project = project.filter(|file| !user.iter().any(|own| same(own, file)));
    let project =
        project.map(|file| ConfigLocation { client, file, scope: FileScope::Project(folder.clone()) });
    project
        .into_iter()
        .chain(user.into_iter().map(|file| ConfigLocation { client, file, scope: FileScope::User }))
        .collect()
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::named;

    fn environment(system: OperatingSystem, named: &[(&str, &str)]) -> ClientEnvironment {
        let named = named.iter().map(|(name, folder)| ((*name).to_owned(), PathBuf::from(folder))).collect();
        ClientEnvironment { system, home: Some("/h".into()), folder: "/p".into(), named }
    }

    fn check(client: Client, environment: &ClientEnvironment, expect: &[&str]) {
        let found: Vec<String> = config_locations(client, environment)
            .iter()
            .map(|location| location.file.to_string_lossy().replace('\\', "/"))
            .collect();
        assert_eq!(found, expect, "{client:?} {:?}", environment.system);
    }

    #[test]
    fn finds_config_files_on_each_system() {
        let linux = environment(OperatingSystem::Linux, &[]);
        check(named("claude-desktop"), &linux, &["/h/.config/Claude/claude_desktop_config.json"]);
        check(named("claude-code"), &linux, &["/p/.mcp.json", "/h/.claude.json"]);
        check(named("cursor"), &linux, &["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
        check(named("vscode"), &linux, &["/p/.vscode/mcp.json", "/h/.config/Code/User/mcp.json"]);
        check(named("codex"), &linux, &["/p/.codex/config.toml", "/h/.codex/config.toml"]);
        check(named("gemini"), &linux, &["/p/.gemini/settings.json", "/h/.gemini/settings.json"]);
        check(named("goose"), &linux, &["/h/.config/goose/config.yaml"]);
        let mac = environment(OperatingSystem::MacOs, &[]);
        let support = "/h/Library/Application Support";
        check(named("claude-desktop"), &mac, &[&format!("{support}/Claude/claude_desktop_config.json")]);
        check(named("vscode"), &mac, &["/p/.vscode/mcp.json", &format!("{support}/Code/User/mcp.json")]);
        check(named("goose"), &mac, &["/h/.config/goose/config.yaml"]);
        let windows = environment(OperatingSystem::Windows, &[("APPDATA", "/a")]);
        check(named("claude-desktop"), &windows, &["/a/Claude/claude_desktop_config.json"]);
        check(named("vscode"), &windows, &["/p/.vscode/mcp.json", "/a/Code/User/mcp.json"]);
        check(named("goose"), &windows, &["/a/Block/goose/config/config.yaml"]);
        check(named("cursor"), &windows, &["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
    }

    #[test]
    fn environment_variables_move_config_files() {
        let variables = [
            ("XDG_CONFIG_HOME", "/x"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/o"),
            ("GEMINI_CLI_HOME", "/g"),
            ("GOOSE_PATH_ROOT", "/r"),
        ];
        let moved = environment(OperatingSystem::Linux, &variables);
        check(named("claude-desktop"), &moved, &["/x/Claude/claude_desktop_config.json"]);
        check(named("claude-code"), &moved, &["/p/.mcp.json", "/c/.claude.json"]);
        check(named("codex"), &moved, &["/p/.codex/config.toml", "/o/config.toml"]);
        check(named("gemini"), &moved, &["/p/.gemini/settings.json", "/g/.gemini/settings.json"]);
        check(named("goose"), &moved, &["/r/config/config.yaml"]);
        let mut at_home = environment(OperatingSystem::Linux, &[]);
        at_home.folder = "/h".into();
        check(named("cursor"), &at_home, &["/h/.cursor/mcp.json"]);
    }

    #[test]
    fn finds_config_of_packaged_claude() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("Packages/Claude_abc/LocalCache/Roaming/Claude");
        std::fs::create_dir_all(&package).unwrap();
        let local = folder.path().to_str().unwrap();
        let windows = environment(OperatingSystem::Windows, &[("APPDATA", "/a"), ("LOCALAPPDATA", local)]);
        let found = config_locations(named("claude-desktop"), &windows);
        assert_eq!(found[0].file, package.join("claude_desktop_config.json"));
        assert_eq!(found.len(), 2);
    }
}
