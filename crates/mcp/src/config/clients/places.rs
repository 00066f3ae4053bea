//! The configuration file locations of each client on each operating system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Client;

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and other Unix systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The environment that determines file locations.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The operating system.
    pub system: System,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The current folder.
    pub folder: PathBuf,
    /// Folders from environment variables, such as `XDG_CONFIG_HOME`.
    pub named: BTreeMap<String, PathBuf>,
}

/// The scope of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user.
    User,
    /// The project in this folder.
    Project(PathBuf),
}

/// A configuration file of a client.
#[derive(Debug, Clone)]
pub struct Place {
    /// The client.
    pub client: Client,
    /// The file; it need not exist.
    pub file: PathBuf,
    /// The scope.
    pub scope: Scope,
}

/// Environment variables that move configuration files.
const NAMED: [&str; 7] = [
    "XDG_CONFIG_HOME",
    "APPDATA",
    "LOCALAPPDATA",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
];

impl Surroundings {
    /// The environment of this process.
    pub fn here() -> Self {
        let folder_in =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let system = if cfg!(windows) {
            System::Windows
        } else if cfg!(target_os = "macos") {
            System::MacOs
        } else {
            System::Linux
        };
        let home = match system {
            System::Windows => folder_in("USERPROFILE").or_else(|| folder_in("HOME")),
            _ => folder_in("HOME"),
        };
        let named = NAMED.iter().filter_map(|name| Some(((*name).to_owned(), folder_in(name)?))).collect();
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { system, home, folder, named }
    }

    fn home(&self, path: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(path))
    }

    /// The folder in an environment variable, otherwise `path` in the home folder.
    fn named_or(&self, name: &str, path: &str) -> Option<PathBuf> {
        self.named.get(name).cloned().or_else(|| self.home(path))
    }

    /// The folder for application settings.
    fn applications(&self) -> Option<PathBuf> {
        match self.system {
            System::Linux => self.named_or("XDG_CONFIG_HOME", ".config"),
            System::MacOs => self.home("Library/Application Support"),
            System::Windows => self.named_or("APPDATA", "AppData/Roaming"),
        }
    }
}

/// The files of a client: project files first, since clients prefer them, then the user's, the default one first.
pub fn places(client: Client, around: &Surroundings) -> Vec<Place> {
    let project = match client {
        Client::ClaudeDesktop | Client::Goose => None,
        Client::ClaudeCode => Some(".mcp.json"),
        Client::Cursor => Some(".cursor/mcp.json"),
        Client::VsCode => Some(".vscode/mcp.json"),
        Client::Codex => Some(".codex/config.toml"),
        Client::Gemini => Some(".gemini/settings.json"),
    };
    let user = user_files(client, around);
    let folder = &around.folder;
    // In the home folder both may be the same file, which then counts as the user's.
    let project =
        project.map(|path| folder.join(path)).filter(|file| !user.iter().any(|own| same(own, file)));
    let project = project.map(|file| Place { client, file, scope: Scope::Project(folder.clone()) });
    project
        .into_iter()
        .chain(user.into_iter().map(|file| Place { client, file, scope: Scope::User }))
        .collect()
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn user_files(client: Client, around: &Surroundings) -> Vec<PathBuf> {
    let file = match client {
        Client::ClaudeDesktop => {
            let usual = around.applications().map(|folder| folder.join("Claude"));
            let folders = packaged_claude(around).into_iter().chain(usual);
            return folders.map(|folder| folder.join("claude_desktop_config.json")).collect();
        }
        Client::ClaudeCode => {
            around.named_or("CLAUDE_CONFIG_DIR", "").map(|folder| folder.join(".claude.json"))
        }
        Client::Cursor => around.home(".cursor/mcp.json"),
        Client::VsCode => around.applications().map(|folder| folder.join("Code/User/mcp.json")),
        Client::Codex => around.named_or("CODEX_HOME", ".codex").map(|folder| folder.join("config.toml")),
        Client::Gemini => {
            around.named_or("GEMINI_CLI_HOME", "").map(|folder| folder.join(".gemini/settings.json"))
        }
        Client::Goose => match (around.named.get("GOOSE_PATH_ROOT"), around.system) {
            (Some(root), _) => Some(root.join("config/config.yaml")),
            (None, System::Windows) => {
                around.applications().map(|folder| folder.join("Block/goose/config/config.yaml"))
            }
            // goose uses the XDG folders on macOS too.
            (None, _) => {
                around.named_or("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("goose/config.yaml"))
            }
        },
    };
    file.into_iter().collect()
}

/// Claude Desktop from a Windows package has its own copy of the settings folder.
fn packaged_claude(around: &Surroundings) -> Vec<PathBuf> {
    if around.system != System::Windows {
        return Vec::new();
    }
    let packages = around.named_or("LOCALAPPDATA", "AppData/Local").map(|folder| folder.join("Packages"));
    let packages = packages.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let claude = packages.filter(|package| package.file_name().to_string_lossy().starts_with("Claude_"));
    let mut folders: Vec<PathBuf> = claude
        .map(|package| package.path().join("LocalCache/Roaming/Claude"))
        .filter(|folder| folder.is_dir())
        .collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(system: System, named: &[(&str, &str)]) -> Surroundings {
        let named = named.iter().map(|(name, folder)| ((*name).to_owned(), PathBuf::from(folder))).collect();
        Surroundings { system, home: Some("/h".into()), folder: "/p".into(), named }
    }

    fn check(client: Client, around: &Surroundings, expect: &[&str]) {
        let found: Vec<String> = places(client, around)
            .iter()
            .map(|place| place.file.to_string_lossy().replace('\\', "/"))
            .collect();
        assert_eq!(found, expect, "{client:?} {:?}", around.system);
    }

    #[test]
    fn files_are_where_the_clients_keep_them() {
        let linux = around(System::Linux, &[]);
        check(Client::ClaudeDesktop, &linux, &["/h/.config/Claude/claude_desktop_config.json"]);
        check(Client::ClaudeCode, &linux, &["/p/.mcp.json", "/h/.claude.json"]);
        check(Client::Cursor, &linux, &["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
        check(Client::VsCode, &linux, &["/p/.vscode/mcp.json", "/h/.config/Code/User/mcp.json"]);
        check(Client::Codex, &linux, &["/p/.codex/config.toml", "/h/.codex/config.toml"]);
        check(Client::Gemini, &linux, &["/p/.gemini/settings.json", "/h/.gemini/settings.json"]);
        check(Client::Goose, &linux, &["/h/.config/goose/config.yaml"]);
        let mac = around(System::MacOs, &[]);
        let support = "/h/Library/Application Support";
        check(Client::ClaudeDesktop, &mac, &[&format!("{support}/Claude/claude_desktop_config.json")]);
        check(Client::VsCode, &mac, &["/p/.vscode/mcp.json", &format!("{support}/Code/User/mcp.json")]);
        check(Client::Goose, &mac, &["/h/.config/goose/config.yaml"]);
        let windows = around(System::Windows, &[("APPDATA", "/a")]);
        check(Client::ClaudeDesktop, &windows, &["/a/Claude/claude_desktop_config.json"]);
        check(Client::VsCode, &windows, &["/p/.vscode/mcp.json", "/a/Code/User/mcp.json"]);
        check(Client::Goose, &windows, &["/a/Block/goose/config/config.yaml"]);
        check(Client::Cursor, &windows, &["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]);
    }

    #[test]
    fn variables_move_them() {
        let named = [
            ("XDG_CONFIG_HOME", "/x"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/o"),
            ("GEMINI_CLI_HOME", "/g"),
            ("GOOSE_PATH_ROOT", "/r"),
        ];
        let moved = around(System::Linux, &named);
        check(Client::ClaudeDesktop, &moved, &["/x/Claude/claude_desktop_config.json"]);
        check(Client::ClaudeCode, &moved, &["/p/.mcp.json", "/c/.claude.json"]);
        check(Client::Codex, &moved, &["/p/.codex/config.toml", "/o/config.toml"]);
        check(Client::Gemini, &moved, &["/p/.gemini/settings.json", "/g/.gemini/settings.json"]);
        check(Client::Goose, &moved, &["/r/config/config.yaml"]);
        let mut at_home = around(System::Linux, &[]);
        at_home.folder = "/h".into();
        check(Client::Cursor, &at_home, &["/h/.cursor/mcp.json"]);
    }

    #[test]
    fn a_packaged_claude_has_its_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("Packages/Claude_abc/LocalCache/Roaming/Claude");
        std::fs::create_dir_all(&package).unwrap();
        let local = folder.path().to_str().unwrap();
        let windows = around(System::Windows, &[("APPDATA", "/a"), ("LOCALAPPDATA", local)]);
        let found = places(Client::ClaudeDesktop, &windows);
        assert_eq!(found[0].file, package.join("claude_desktop_config.json"));
        assert_eq!(found.len(), 2);
    }
}
