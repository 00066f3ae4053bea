//! How a server is started: program, arguments, environment and working directory, for the hub's `mcp.json` and for a
//! direct start.
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::left_over::MARKER;
use crate::run::program;

#[derive(Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// The working directory, which is also `HOME`.
    pub(super) folder: PathBuf,
}

impl Launch {
    /// The command that starts the server without the hub, in a clean environment.
    pub(super) fn command(&self, mark: &str) -> Command {
        let mut command = program(&self.program);
        command.args(&self.args).current_dir(&self.folder);
        command.env_clear().envs(&self.environment).env(MARKER, mark);
        command
    }

    /// The same server as an entry of `mcp.json`.
    pub(super) fn entry(&self, mark: &str) -> Value {
        let mut environment = self.environment.clone();
        environment.insert(MARKER.to_owned(), mark.to_owned());
        json!({"command": self.program, "args": self.args, "env": environment, "cwd": self.folder})
    }
}

/// A loopback port on which no process listens.
const UNREACHABLE: &str = "http://127.0.0.1:1";

/// The environment variables of every server and client: an empty home, the required Node, and a proxy that refuses
/// every connection, so that network requests fail immediately and deterministically.
pub(super) fn environment(home: &Path, node: Option<&Path>) -> BTreeMap<String, String> {
    let inherited = std::env::var("PATH").unwrap_or_default();
    let path = match node {
        Some(folder) => format!("{}:{inherited}", folder.display()),
        None => inherited,
    };
    let home = home.display().to_string();
    let plain = [
        ("PATH", path.as_str()),
        ("HOME", &home),
        ("PYTHONUTF8", "1"),
        ("LANG", "C.UTF-8"),
        // Some definitions are generated from Python sets, whose order depends on the hash seed.
        ("PYTHONHASHSEED", "0"),
    ];
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let proxies = proxies.map(|name| (name, UNREACHABLE));
    let variables = plain.into_iter().chain(proxies).chain([("NODE_USE_ENV_PROXY", "1")]);
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
