//! How a permitted program is started: its environment, its file, and the error if that fails.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use toolhub_client_config::StdioSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_core::path_outside;

use super::permitted::PermittedSpec;
use super::program::find_executable;

/// Variables that a child inherits by default: those that programs need to run, without likely secrets.
const INHERITED_VARIABLES: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "TEMP",
    "TMP",
    "PATHEXT",
];
/// The same, on Windows only.
const INHERITED_ON_WINDOWS: [&str; 9] = [
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "USERNAME",
    "WINDIR",
];
/// The same, by prefix.
const INHERITED_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

impl PermittedSpec<StdioSpec> {
    /// The complete environment of the child.
    pub(crate) fn environment(&self) -> BTreeMap<String, OsString> {
        let is_inherited = |name: &str| {
            INHERITED_VARIABLES.contains(&name)
                || cfg!(windows) && is_inherited_on_windows(name)
                || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || self.env_pass.iter().any(|passed| passed == name)
        };
        let inherited = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| is_inherited(name));
        let configured = self.env.iter().map(|(name, value)| (name.clone(), value.into()));
        let mut variables: BTreeMap<String, OsString> = inherited.chain(configured).collect();
        if let Some(project) = self.excluded() {
            let is_path = |name: &str| name == "PATH" || (cfg!(windows) && name.eq_ignore_ascii_case("PATH"));
            for (_, value) in variables.iter_mut().filter(|(name, _)| is_path(name)) {
                *value = path_outside(value, project);
            }
        }
        variables
    }

    /// The program to start: on Windows, the file that the child's `PATH` resolves the command to.
    pub(crate) fn program(&self) -> OsString {
        let path = || {
            let variables = self.environment();
            variables.into_iter().find_map(|(name, value)| name.eq_ignore_ascii_case("PATH").then_some(value))
        };
        let file =
            cfg!(windows).then(|| find_executable(&self.command, &path().unwrap_or_default())).flatten();
        file.map_or_else(|| self.command.clone().into(), Into::into)
    }

    /// The error text if no folder to start in could be created.
    pub(crate) fn folder_error(&self, error: &std::io::Error) -> LocalizedText {
        let folder = self.known_folder().unwrap_or(Path::new(".")).display();
        LocalizedText::new(
            format!("no empty folder to start it in could be created in `{folder}`: {error}"),
            format!("无法在 `{folder}` 中创建用于启动的空目录：{error}"),
        )
    }

    /// The error text for a program that could not be started.
    pub(crate) fn spawn_error(&self, error: &std::io::Error) -> LocalizedText {
        let command = &self.command;
        match (&self.cwd, error.kind()) {
            (Some(folder), std::io::ErrorKind::NotFound) if !folder.is_dir() => {
                let folder = folder.display();
                LocalizedText::new(
                    format!("its `cwd` `{folder}` does not exist"),
                    format!("它的 `cwd` `{folder}` 不存在"),
                )
            }
            (_, std::io::ErrorKind::NotFound) => LocalizedText::new(
                format!("program `{command}` was not found: install it, or give its full path"),
                format!("找不到程序 `{command}`：请安装它，或给出完整路径"),
            ),
            _ => LocalizedText::new(
                format!("program `{command}` could not be started: {error}"),
                format!("无法启动程序 `{command}`：{error}"),
            ),
        }
    }
}

/// Variable names on Windows are case-insensitive: `PATH` is mostly written `Path`.
fn is_inherited_on_windows(name: &str) -> bool {
    INHERITED_VARIABLES
        .iter()
        .chain(&INHERITED_ON_WINDOWS)
        .any(|variable| variable.eq_ignore_ascii_case(name))
}
