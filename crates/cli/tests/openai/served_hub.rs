//! `toolhub serve` with the server `sheets`, an agent, a key and a model, for the duration of a test.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::model::ModelServer;
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, processes};

use crate::scripted_model;

/// The time after which a wait fails the test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

const AGENT: &str = "[agents.abacus]\ntools = [\"calc*\"]\n";

/// A running hub. Dropping it requires that it ends as it should.
pub(crate) struct ServedHub {
    child: Child,
    root: String,
    /// A key of the hub.
    pub(crate) key: String,
    cli: CommandLine,
    model: Option<ModelServer>,
}

impl ServedHub {
    /// Starts a hub with the scripted model.
    pub(crate) fn with_model() -> Self {
        Self::with_model_and("")
    }

    /// Like `with_model`, with further settings.
    pub(crate) fn with_model_and(more: &str) -> Self {
        let model = scripted_model::start();
        let settings = format!("[llm]\nurl = \"{}/v1\"\nmodel = \"scripted\"\n{AGENT}{more}", model.url);
        Self::start(&settings, Some(model))
    }

    /// Starts a hub without a model: requests are planned by rules.
    pub(crate) fn without_model() -> Self {
        Self::start(&format!("[llm]\nenabled = false\n{AGENT}"), None)
    }

    fn start(settings: &str, model: Option<ModelServer>) -> Self {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
        cli.server("sheets", &sheets(&journal(cli.folder())));
        let made = cli.run(&["keys", "new", "ann", "--json"]);
        let key = made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
        let mut command = cli.command(&["serve", "--json", "--bind", "127.0.0.1:0"]);
        let mut child = command.stderr(File::create(stderr(cli.folder())).unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let startup: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "`toolhub serve` does not serve: {line}{}",
                fs::read_to_string(stderr(cli.folder())).unwrap()
            )
        });
        let root = startup["mcp"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, root, key, cli, model }
    }

    /// The base URL that clients are configured with.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.root)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.cli.folder()
    }

    /// The tools of `sheets` that were called, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        let path = journal(self.folder());
        if !path.exists() {
            return Vec::new();
        }
        let journal = Journal::read(&path);
        let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
        calls.map(|call| call["params"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The bodies of the requests to the model.
    pub(crate) fn model_requests(&self) -> Vec<Value> {
        self.model.as_ref().map(ModelServer::bodies).unwrap_or_default()
    }

    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(stderr(self.folder())).unwrap()
    }
}

impl Drop for ServedHub {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < TEST_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let code = self.child.wait().unwrap().code();
        if !std::thread::panicking() {
            assert_eq!(code, Some(0), "{}", self.stderr());
        }
    }
}

fn stderr(folder: &Path) -> PathBuf {
    folder.join("stderr")
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// A server with a tool that reads, and one that changes something. Both return their arguments.
fn sheets(journal: &Path) -> Script {
    let tool = |name: &str, is_reading: bool| {
        json!({
            "name": name, "description": format!("{name} of a table"),
            "inputSchema": {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]},
            "annotations": {"readOnlyHint": is_reading, "destructiveHint": !is_reading}
        })
    };
    Script::both().tool(tool("read_sheet", true)).tool(tool("write_sheet", false)).journal(journal)
}
