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

/// The file of the standard error of a hub.
const STDERR: &str = "stderr";
const AGENT: &str = "[agents.abacus]\ntools = [\"calc*\"]\n";

/// A running hub. Dropping it requires that it ends as it should.
pub(crate) struct ServedHub {
    child: Child,
    root: String,
    /// A key of the hub.
    pub(crate) key: String,
    /// A key of another principal.
    pub(crate) other_key: String,
    /// A client for requests to it.
    pub(crate) client: reqwest::Client,
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

    /// Starts a hub with these settings.
    pub(crate) fn start(settings: &str, model: Option<ModelServer>) -> Self {
        Self::start_at(settings, model, 0)
    }

    /// Starts a hub at a port. `$KEY` in the settings is its key.
    pub(crate) fn start_at(settings: &str, model: Option<ModelServer>, port: u16) -> Self {
        Self::start_with(settings, model, port, &[])
    }

    /// Starts a hub at a port, with further servers that offer the tools of `sheets` under the same names.
    pub(crate) fn start_with(
        settings: &str,
        model: Option<ModelServer>,
        port: u16,
        further: &[&str],
    ) -> Self {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
        cli.server("sheets", &sheets(&journal(cli.folder())));
        for server in further {
            cli.server(server, &sheets(&cli.folder().join(format!("journal-{server}"))));
        }
        let [key, other_key] = ["ann", "ben"].map(|name| {
            let made = cli.run(&["keys", "new", name, "--json"]);
            made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
        });
        // The command has written its keys into the settings.
        let config = cli.folder().join("toolhub.toml");
        let with_keys = fs::read_to_string(&config).unwrap().replace("$KEY", &key);
        fs::write(config, with_keys).unwrap();
        let (child, root) = serve(&cli, port, STDERR);
        // The client needs a provider even for plain HTTP; another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(TEST_TIMEOUT).build().unwrap();
        Self { child, root, key, other_key, client, cli, model }
    }

    /// Kills the hub, and starts it again with the same data.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills the hub.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts a hub that was killed again, with the same data.
    pub(crate) fn restart(&mut self) {
        (self.child, self.root) = serve(&self.cli, 0, STDERR);
    }

    /// Sends a signal to the hub.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Starts a second hub with the same data.
    pub(crate) fn second(&self) -> SecondHub {
        let (child, root) = serve(&self.cli, 0, "stderr-2");
        SecondHub { child, root }
    }

    /// Replaces the server `sheets` by another program with the same tools.
    pub(crate) fn replace_server(&mut self) {
        let script = sheets(&journal(self.cli.folder()));
        self.cli.server("sheets", &script);
    }

    /// Replaces a text in its settings.
    pub(crate) fn edit_settings(&self, from: &str, to: &str) {
        let file = self.folder().join("toolhub.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    }

    /// Runs a command beside the hub.
    pub(crate) fn run(&self, arguments: &[&str]) -> toolhub_testkit::CommandOutput {
        self.cli.run(arguments)
    }

    /// Waits until a tool of `sheets` was called this many times.
    pub(crate) async fn await_called(&self, tool: &str, count: usize) {
        let since = Instant::now();
        while self.called().iter().filter(|called| *called == tool).count() < count {
            assert!(since.elapsed() < TEST_TIMEOUT, "{:?} {}", self.called(), self.stderr());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The messages that `sheets` received, by their methods.
    pub(crate) fn received(&self) -> Vec<String> {
        let journal = Journal::read(journal(self.folder()));
        journal.methods().into_iter().map(str::to_owned).collect()
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
        Self::calls_in(&journal(self.folder()))
    }

    /// The tools of a further server that were called, in order.
    pub(crate) fn called_at(&self, server: &str) -> Vec<String> {
        Self::calls_in(&self.folder().join(format!("journal-{server}")))
    }

    fn calls_in(path: &Path) -> Vec<String> {
        if !path.exists() {
            return Vec::new();
        }
        let journal = Journal::read(path);
        let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
        calls.map(|call| call["params"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The arguments of the calls of `sheets`, in order.
    pub(crate) fn called_arguments(&self) -> Vec<Value> {
        let journal = Journal::read(journal(self.folder()));
        let calls = journal.messages().into_iter().filter(|message| message["method"] == "tools/call");
        calls.map(|call| call["params"]["arguments"].clone()).collect()
    }

    /// The address, such as `127.0.0.1:4711`.
    pub(crate) fn address(&self) -> &str {
        self.root.strip_prefix("http://").unwrap()
    }

    /// The resident memory of its process, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
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

/// A second hub with the data of another one.
pub(crate) struct SecondHub {
    child: Child,
    root: String,
}

impl SecondHub {
    /// The base URL that clients are configured with.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.root)
    }
}

impl Drop for SecondHub {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < TEST_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program, and returns its process and its address. `log` is the file of its standard error.
fn serve(cli: &CommandLine, port: u16, log: &str) -> (Child, String) {
    let mut command = cli.command(&["serve", "--json", "--bind", &format!("127.0.0.1:{port}")]);
    let mut child = command.stderr(File::create(cli.folder().join(log)).unwrap()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let startup: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
        panic!(
            "`toolhub serve` does not serve: {line}{}",
            fs::read_to_string(cli.folder().join(log)).unwrap()
        )
    });
    let root = startup["mcp"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
    (child, root)
}

fn stderr(folder: &Path) -> PathBuf {
    folder.join(STDERR)
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// A server with a tool that reads and one that changes something, which return their arguments, and two that never answer.
fn sheets(journal: &Path) -> Script {
    let tool = |name: &str, is_reading: bool| {
        json!({
            "name": name, "description": format!("{name} of a table"),
            "inputSchema": {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]},
            "annotations": {"readOnlyHint": is_reading, "destructiveHint": !is_reading}
        })
    };
    // It may change something, and needs no approval.
    let mut hold_write = tool("hold_write", false);
    hold_write["annotations"]["destructiveHint"] = false.into();
    let silence = json!([{"ignore": true}]);
    Script::both()
        .tool(tool("read_sheet", true))
        .tool(tool("write_sheet", false))
        .tool(tool("hold_read", true))
        .tool(hold_write)
        .on("tools/call:hold_read", &silence)
        .on("tools/call:hold_write", &silence)
        .journal(journal)
}
