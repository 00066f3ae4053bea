//! Runs `toolhub serve` in a temporary folder, and scenarios in a browser with it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{self, Journal, Script};
use toolhub_testkit::{CommandLine, browser, processes};

/// How long the hub may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The program with these settings, not yet started.
pub(crate) fn command_line(settings: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    cli
}

/// A server whose script can be replaced while the hub runs. It records what it receives.
pub(crate) struct ChangingServer {
    script: PathBuf,
    journal: PathBuf,
}

impl ChangingServer {
    /// Adds the server to the configuration.
    pub(crate) fn add(cli: &mut CommandLine, id: &str, script: Script) -> Self {
        let file = |kind: &str| cli.folder().join(format!("{id}.{kind}"));
        let server = Self { script: file("json"), journal: file("journal") };
        server.replace(script);
        cli.entry(id, json!({"command": scripted::binary(), "args": ["stdio", server.script]}));
        server
    }

    /// Replaces the script; the next process of the server follows it.
    pub(crate) fn replace(&self, script: Script) {
        fs::write(&self.script, script.journal(&self.journal).json()).unwrap();
    }

    pub(crate) fn starts(&self) -> usize {
        Journal::read(&self.journal).events("start").len()
    }

    pub(crate) fn calls(&self) -> usize {
        Journal::read(&self.journal).count_method("tools/call")
    }
}

/// A hub with a console. Dropping it ends it.
pub(crate) struct ConsoleHub {
    /// `None` while it is stopped.
    child: Option<Child>,
    /// The URL without a path.
    pub(crate) root: String,
    cli: CommandLine,
}

impl ConsoleHub {
    /// Starts the hub on a free port.
    pub(crate) fn start(cli: CommandLine) -> Self {
        let mut hub = Self { child: None, root: "http://127.0.0.1:0".to_owned(), cli };
        hub.start_again();
        hub
    }

    /// Starts the hub at its address.
    pub(crate) fn start_again(&mut self) {
        let address = self.root.strip_prefix("http://").unwrap();
        let mut command = self.cli.command(&["serve", "--json", "--bind", address]);
        let stderr = File::create(self.folder().join("stderr")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.child = Some(child);
        let startup: Value = serde_json::from_str(&line).unwrap_or_default();
        let Some(url) = startup["mcp"].as_str() else {
            let stderr = fs::read_to_string(self.folder().join("stderr")).unwrap();
            panic!("`toolhub serve` does not serve: {line}{stderr}");
        };
        url.strip_suffix("/mcp").unwrap().clone_into(&mut self.root);
    }

    /// Stops the hub with SIGTERM.
    pub(crate) fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let since = Instant::now();
        while processes::alive(child.id()) && since.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let code = child.wait().unwrap().code();
        if !std::thread::panicking() {
            assert_eq!(code, Some(0), "{}", fs::read_to_string(self.folder().join("stderr")).unwrap());
        }
    }

    /// Kills the hub.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn folder(&self) -> &Path {
        self.cli.folder()
    }

    pub(crate) fn cli(&self) -> &CommandLine {
        &self.cli
    }

    /// A one-time link into the console.
    pub(crate) fn link(&self) -> String {
        let ran = self.cli.run(&["console", "--no-browser", "--json"]);
        ran.json()["url"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
    }

    /// Runs a scenario in a browser and fails with its findings. `respond` handles requests of the scenario other than
    /// `link`. The scenario gets `root`, the origin of the console, and `gateway`, that of `/mcp`.
    pub(crate) fn run_scenario(
        &mut self,
        scenario: &str,
        details: Value,
        mut respond: impl FnMut(&mut Self, &str) -> Value,
    ) {
        self.run_scenario_with_values(scenario, details, |hub, request, _| respond(hub, request));
    }

    /// The same, for requests that have a value.
    pub(crate) fn run_scenario_with_values(
        &mut self,
        scenario: &str,
        mut details: Value,
        mut respond: impl FnMut(&mut Self, &str, &Value) -> Value,
    ) {
        // Sessions are accepted at the host name of the console only.
        let link = self.link();
        details["root"] = json!(link.split("/console/").next().unwrap());
        details["gateway"] = json!(self.root);
        let findings = browser::run_scenario(scenario, &details, |request, value| match request {
            "link" => json!(self.link()),
            other => respond(self, other, value),
        });
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }
}

impl Drop for ConsoleHub {
    fn drop(&mut self) {
        self.stop();
    }
}

/// For scenarios without requests of their own.
pub(crate) fn no_requests(_: &mut ConsoleHub, request: &str) -> Value {
    panic!("unexpected request `{request}`")
}

/// A tool with a union, nested arrays and references.
pub(crate) fn draw() -> Value {
    let circle = json!({"title": "Circle", "type": "object", "required": ["kind", "radius"], "properties": {
        "kind": {"const": "circle"}, "radius": {"type": "number", "exclusiveMinimum": 0}
    }});
    let rings = json!({"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/point"}}});
    let polygon = json!({"title": "Polygon", "type": "object", "required": ["kind", "rings"], "properties": {
        "kind": {"const": "polygon"}, "rings": rings
    }});
    let point = json!({"type": "object", "required": ["x", "y"], "properties": {
        "x": {"type": "number"}, "y": {"type": "number", "description": "upwards"}
    }});
    json!({"name": "draw", "title": "Draw a shape", "description": "Draws a shape on a layer.", "inputSchema": {
        "type": "object",
        "required": ["shape"],
        "properties": {
            "shape": {"oneOf": [circle, polygon]},
            "layer": {"type": "integer", "minimum": 1, "maximum": 9, "description": "higher layers cover lower ones"},
            "color": {"enum": ["red", "green", "blue"], "default": "red"},
            "note": {"type": ["string", "null"], "maxLength": 500}
        },
        "$defs": {"point": point}
    }})
}

/// A tool named `sheet` with this description.
pub(crate) fn sheet(description: &str) -> Value {
    json!({"name": "sheet", "description": description, "inputSchema": {"type": "object"}})
}
