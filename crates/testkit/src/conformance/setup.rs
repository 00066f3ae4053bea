//! A scenario of the suite, and the configuration that a user of toolhub would write for it.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub::settings::Paths;
use toolhub::trust::Workspace;

use super::SERVER;

/// The client metadata document known to the suite's authorization servers.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// A scenario.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    /// Further information from the suite; null if there is none.
    pub(super) context: Value,
    url: String,
}

impl Scenario {
    /// Reads the scenario from the suite's environment variables.
    pub(super) fn of_environment(url: String) -> Result<Self> {
        let name =
            std::env::var("MCP_CONFORMANCE_SCENARIO").context("`MCP_CONFORMANCE_SCENARIO` is not set")?;
        let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text).context("`MCP_CONFORMANCE_CONTEXT` is no JSON")?,
            Err(_) => Value::Null,
        };
        Ok(Self { name, context, url })
    }

    /// The login settings of the config.
    fn oauth(&self) -> Vec<(&'static str, &str)> {
        let credential = |key: &'static str| self.context[key].as_str().map(|value| (key, value));
        let known = [credential("client_id"), credential("client_secret")].into_iter().flatten();
        let by_itself = self.name.starts_with("auth/client-credentials");
        let grant = by_itself.then_some(("grant", "client_credentials"));
        known.chain(grant).chain([("client_metadata_url", CLIENT_METADATA)]).collect()
    }
}

/// The files of a hub with one server.
pub(super) struct Setup {
    folder: TempDir,
}

impl Setup {
    pub(super) fn write(scenario: &Scenario) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let servers = json!({"mcpServers": {SERVER: {"url": scenario.url}}});
        fs::write(folder.path().join("mcp.json"), servers.to_string())?;
        // JSON strings are valid TOML strings.
        let login: Vec<String> =
            scenario.oauth().iter().map(|(key, value)| format!("{key} = {}", json!(value))).collect();
        let settings = format!(
            "[native]\nenabled = false\n[[servers]]\nid = \"{SERVER}\"\noauth = {{ {} }}\n",
            login.join(", ")
        );
        fs::write(folder.path().join("toolhub.toml"), settings)?;
        Ok(Self { folder })
    }

    pub(super) fn paths(&self) -> Paths {
        let folder = self.folder.path();
        Paths {
            config: folder.join("toolhub.toml"),
            servers: folder.join("mcp.json"),
            data_dir: folder.join("home"),
            workspace: Workspace::default(),
            home_dir: None,
        }
    }
}
