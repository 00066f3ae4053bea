//! The cost of two bad servers among ten for the other eight: one hangs in its handshake, one crashes on every request.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::samples::{Subject, measure, time};
use crate::{
    run::{self, Profile, build, program},
    workspace::Workspace,
};

const GOOD_SERVERS: usize = 8;
const CONNECTION_ROUNDS: usize = 20;
const CALLS: usize = 30;
/// Fewer runs, because a first call waits several seconds for servers that were never connected.
const FIRST_CALLS: usize = 3;

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let programs = Programs {
        toolhub: build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?,
        connector: build(workspace, "toolhub-testkit", "meet-servers", Profile::Dist)?,
        server: build(workspace, "toolhub-testkit", "scripted-mcp", Profile::Dist)?,
    };
    let folder = workspace.target.join("bench/servers");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let eight = TestSetup::create(folder.join("eight"), &programs, &[])?;
    let ten = TestSetup::create(folder.join("ten"), &programs, &["hangs", "crashes"])?;

    let table = measure(
        vec![eight.connect_subject("eight servers"), ten.connect_subject("and two bad ones")],
        CONNECTION_ROUNDS,
    )?;
    println!(
        "one program that meets all at once: until eight are listed and have answered, {CONNECTION_ROUNDS} runs"
    );
    println!("{table}");

    eight.cache_good_servers()?;
    ten.cache_good_servers()?;
    let calls = vec![
        eight.call("eight servers", "known", &[]),
        ten.call("and two never met, --source", "known", &["--source", "good_1"]),
        ten.call_after_failure("and two that failed"),
    ];
    println!("`toolhub call` at one of the eight, its tools known, {CALLS} runs\n{}", measure(calls, CALLS)?);

    let first = vec![eight.first_call("eight servers"), ten.first_call("and two never met")];
    println!("the same, the first call after the two were added, {FIRST_CALLS} runs");
    println!("{}", measure(first, FIRST_CALLS)?);
    Ok(())
}

#[derive(Clone)]
struct Programs {
    toolhub: PathBuf,
    connector: PathBuf,
    server: PathBuf,
}

/// A folder with a config and the home folders of the programs that use it.
#[derive(Clone)]
struct TestSetup {
    folder: PathBuf,
    programs: Programs,
}

impl TestSetup {
    /// Lists the bad servers before the good ones, so that waiting for servers one after another would be visible.
    fn create(folder: PathBuf, programs: &Programs, bad: &[&str]) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let setting = Self { folder, programs: programs.clone() };
        let mut servers = serde_json::Map::new();
        for id in bad.iter().map(|id| (*id).to_owned()).chain(good_ids()) {
            let file = setting.folder.join(format!("{id}.json"));
            fs::write(&file, script(&id).to_string())?;
            servers.insert(id, json!({"command": programs.server, "args": [Path::new("stdio"), &file]}));
        }
        fs::write(setting.folder.join("mcp.json"), json!({"mcpServers": servers}).to_string())?;
        fs::write(setting.config(), "")?;
        Ok(setting)
    }

    fn config(&self) -> PathBuf {
        self.folder.join("toolhub.toml")
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.join("homes").join(name)
    }

    fn toolhub(&self, home: &str) -> Command {
        let mut command = program(&self.programs.toolhub);
        command.arg("--home").arg(self.home(home)).arg("--config").arg(self.config()).arg("--quiet");
        command.current_dir(&self.folder);
        command
    }

    /// Connects to the good servers only, so that nothing is stored about the bad ones.
    fn cache_good_servers(&self) -> Result<()> {
        let mut command = self.toolhub("known");
        command.args(["servers", "test"]).args(good_ids());
        run::read(&mut command).map(drop)
    }

    /// Connects to all servers with an empty home folder; `connector-servers` prints the duration.
    fn connect_subject(&self, label: &'static str) -> Subject {
        let setting = self.clone();
        Subject::new(label, move || {
            let home = setting.home("nobody");
            clear_failures(&home)?;
            let mut command = program(&setting.programs.connector);
            let output = run::read(command.arg(setting.config()).arg(home).current_dir(&setting.folder))?;
            let millis: f64 = output.trim().parse().with_context(|| format!("no number: {output}"))?;
            Ok(Duration::from_secs_f64(millis / 1000.0))
        })
    }

    fn call(&self, label: &'static str, home: &str, more: &[&str]) -> Subject {
        let mut command = self.toolhub(home);
        command.args(["call", &tool_of("good_1"), "n=1"]).args(more);
        Subject::process(label, command)
    }

    /// A call while the failures of the bad servers are stored. They are valid for a minute; the warm-up run detects them.
    fn call_after_failure(&self, label: &'static str) -> Subject {
        let setting = self.clone();
        let mut command = self.toolhub("failed");
        command.args(["call", &tool_of("good_1"), "n=1"]);
        let mut ready = false;
        Subject::new(label, move || {
            if !ready {
                setting.copy_cache("failed")?;
                ready = true;
            }
            time(&mut command)
        })
    }

    /// A call with stored tool lists of the good servers, while the bad ones were never contacted.
    fn first_call(&self, label: &'static str) -> Subject {
        let setting = self.clone();
        let mut command = self.toolhub("first");
        command.args(["call", &tool_of("good_1"), "n=1"]);
        Subject::new(label, move || {
            setting.copy_cache("first")?;
            time(&mut command)
        })
    }

    fn copy_cache(&self, home: &str) -> Result<()> {
        let home = self.home(home);
        clear_failures(&home)?;
        fs::create_dir_all(&home)?;
        let mut copied = 0;
        for entry in fs::read_dir(self.home("known"))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), home.join(entry.file_name()))?;
                copied += 1;
            }
        }
        ensure!(copied > 0, "nothing was learned of the good servers");
        Ok(())
    }
}

fn clear_failures(home: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home)?;
    }
    Ok(())
}

fn good_ids() -> impl Iterator<Item = String> {
    (1..=GOOD_SERVERS).map(|number| format!("good_{number}"))
}

fn tool_of(id: &str) -> String {
    format!("{id}_echo")
}

fn script(id: &str) -> Value {
    match id {
        "hangs" => json!({"on": {"*": [{"ignore": true}]}}),
        "crashes" => json!({"on": {"*": [{"exit": 1}]}}),
        good => {
            let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
            let tool =
                json!({"name": tool_of(good), "description": "Says what it hears.", "inputSchema": schema});
            json!({"era": "both", "tools": [tool]})
        }
    }
}
