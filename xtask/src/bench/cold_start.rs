//! The startup time with many configured servers whose tools are cached.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::samples::{Subject, measure};
use crate::{
    run::{self, Profile, build, program},
    workspace::Workspace,
};

const SERVERS: usize = 20;
const TOOLS_PER_SERVER: usize = 10;
const ROUNDS: usize = 50;

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let toolhub = build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?;
    let server = build(workspace, "toolhub-testkit", "scripted-mcp", Profile::Dist)?;
    let setting = TestSetup::create(workspace.target.join("bench/cold-start"), toolhub, &server)?;
    setting.fill_cache()?;

    let journals = setting.journal_sizes();
    ensure!(journals.iter().all(|size| *size > 0), "a server kept no journal, so nothing could be proven");
    let table = measure(setting.subjects(), ROUNDS)?;
    ensure!(
        setting.journal_sizes() == journals,
        "a server was started: the list did not come from the cache"
    );
    println!(
        "{ROUNDS} runs each, {SERVERS} servers with {TOOLS_PER_SERVER} tools, none was started\n{table}"
    );
    Ok(())
}

struct TestSetup {
    folder: PathBuf,
    toolhub: PathBuf,
}

impl TestSetup {
    fn create(folder: PathBuf, toolhub: PathBuf, server: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("home"))?;
        let setting = Self { folder, toolhub };
        let mut servers = serde_json::Map::new();
        for id in server_ids() {
            let script = setting.folder.join(format!("{id}.script.json"));
            fs::write(&script, setting.script(&id).to_string())?;
            servers.insert(id, json!({"command": server, "args": [Path::new("stdio"), &script]}));
        }
        fs::write(setting.folder.join("mcp.json"), json!({"mcpServers": servers}).to_string())?;
        fs::write(setting.config(), "")?;
        Ok(setting)
    }

    fn script(&self, id: &str) -> Value {
        let tools: Vec<Value> = tool_names(id)
            .map(|name| {
                let description = format!("Looks up the record of {id} that is kept under a key.");
                let schema = json!({"type": "object", "properties": {"key": {"type": "string"}}});
                json!({"name": name, "description": description, "inputSchema": schema})
            })
            .collect();
        json!({"era": "legacy", "tools": tools, "journal": self.journal(id)})
    }

    fn fill_cache(&self) -> Result<()> {
        for id in server_ids() {
            run::read(self.toolhub().args(["servers", "test", &id]))?;
        }
        let listed = run::read(self.toolhub().arg("tools"))?;
        for name in server_ids().flat_map(|id| tool_names(&id).collect::<Vec<_>>()) {
            ensure!(listed.contains(&name), "the cache was not filled: `toolhub tools` lists no `{name}`");
        }
        Ok(())
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut version = self.toolhub();
        version.arg("--version");
        let mut tools = self.toolhub();
        tools.args(["tools", "--quiet"]);
        vec![
            Subject::process("true", program("true")),
            Subject::process("toolhub --version", version),
            Subject::process("toolhub tools", tools),
        ]
    }

    fn toolhub(&self) -> Command {
        let mut command = program(&self.toolhub);
        command.arg("--home").arg(self.folder.join("home")).arg("--config").arg(self.config());
        command
    }

    fn config(&self) -> PathBuf {
        self.folder.join("toolhub.toml")
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.journal"))
    }

    /// The size of each server's journal in bytes; 0 for a server that was never started.
    fn journal_sizes(&self) -> Vec<u64> {
        server_ids().map(|id| fs::metadata(self.journal(&id)).map_or(0, |metadata| metadata.len())).collect()
    }
}

fn server_ids() -> impl Iterator<Item = String> {
    (1..=SERVERS).map(|number| format!("s{number:02}"))
}

/// Unique across servers, so that no tool hides another.
fn tool_names(id: &str) -> impl Iterator<Item = String> {
    (1..=TOOLS_PER_SERVER).map(move |number| format!("{id}_lookup_{number:02}"))
}
