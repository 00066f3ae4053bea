//! A hub and the command line in a temporary folder, with checks that nothing is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub::settings::Paths;
use toolhub::trust::Workspace;
use toolhub::{ClientHandler, EventSink, Hub, RejectingHandler};

use crate::fake::Recorder;
use crate::scripted::{self, Script};

/// The environment variable that identifies the servers of a test, to find leftover processes.
const MARKER: &str = "TOOLHUB_TEST_MARKER";

/// A folder with config and data, whose servers have the marker.
#[derive(Debug)]
struct TestHome {
    folder: TempDir,
    marker: String,
    servers: Value,
}

impl TestHome {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("toolhub.toml"), "").expect("a config file");
        Self { folder, marker: format!("{}-{count}", std::process::id()), servers: json!({}) }
    }

    fn add(&mut self, id: &str, mut server: Value) {
        if server.get("command").is_some() {
            server["env"][MARKER] = json!(self.marker);
        }
        self.servers[id] = server;
        let text = json!({"mcpServers": self.servers}).to_string();
        fs::write(self.folder.path().join("mcp.json"), text).expect("mcp.json");
    }

    fn scripted(&mut self, id: &str, script: &Script) {
        let file = script.write(self.folder.path());
        self.add(id, json!({"command": scripted::binary(), "args": ["stdio", file]}));
    }

    fn assert_nothing_left(&self) {
        #[cfg(target_os = "linux")]
        {
            let leftover = crate::processes::with_marker(MARKER, &self.marker);
            assert!(leftover.is_empty(), "processes were left behind: {leftover:?}");
        }
    }
}

/// Builds a [`TestHub`].
#[derive(Debug)]
pub struct TestHubBuilder {
    test_home: TestHome,
    handler: Handler,
}

#[derive(Clone)]
struct Handler(Arc<dyn ClientHandler>);

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}

/// A hub for tests. It must be closed: dropping it unclosed, or with leftover tasks or children, fails the test.
#[derive(Debug)]
pub struct TestHub {
    hub: Hub,
    test_home: TestHome,
    handler: Handler,
    /// The recorded events.
    pub events: Arc<Recorder>,
    closed: bool,
}

impl TestHubBuilder {
    /// Adds a scripted server over stdio.
    #[must_use]
    pub fn server(mut self, id: &str, script: &Script) -> Self {
        self.test_home.scripted(id, script);
        self
    }

    /// Adds a server in the format of `mcp.json`.
    #[must_use]
    pub fn entry(mut self, id: &str, server: Value) -> Self {
        self.test_home.add(id, server);
        self
    }

    /// Sets the handler of server requests.
    #[must_use]
    pub fn handler(mut self, handler: Arc<dyn ClientHandler>) -> Self {
        self.handler = Handler(handler);
        self
    }

    /// Writes `toolhub.toml`.
    #[must_use]
    pub fn settings(self, text: &str) -> Self {
        fs::write(self.test_home.folder.path().join("toolhub.toml"), text).expect("a config file");
        self
    }

    /// Builds the hub.
    pub async fn build(self) -> TestHub {
        let events = Arc::new(Recorder::default());
        let hub = open(&self.test_home, &self.handler, Arc::clone(&events)).await;
        TestHub { hub, test_home: self.test_home, handler: self.handler, events, closed: false }
    }
}

async fn open(test_home: &TestHome, handler: &Handler, events: Arc<Recorder>) -> Hub {
    let folder = test_home.folder.path();
    let paths = Paths {
        config: folder.join("toolhub.toml"),
        servers: folder.join("mcp.json"),
        data_dir: folder.join("home"),
        workspace: Workspace::default(),
        home_dir: None,
    };
    let builder = Hub::builder().paths(paths).listen(events as Arc<dyn EventSink>);
    builder.handler(Arc::clone(&handler.0)).build().await.expect("the hub builds")
}

impl TestHub {
    /// Starts building a hub.
    pub fn builder() -> TestHubBuilder {
        TestHubBuilder { test_home: TestHome::new(), handler: Handler(Arc::new(RejectingHandler)) }
    }

    /// The folder of the config.
    pub fn folder(&self) -> &Path {
        self.test_home.folder.path()
    }

    /// Shuts the hub down, and starts another with the same config and data.
    pub async fn restart(&mut self) {
        self.hub.shutdown().await;
        self.hub = open(&self.test_home, &self.handler, Arc::clone(&self.events)).await;
    }

    /// Shuts the hub down, and checks that nothing is left.
    pub async fn close(mut self) {
        self.hub.shutdown().await;
        self.closed = true;
    }
}

impl std::ops::Deref for TestHub {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.hub
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.closed, "a TestHub must be closed: `hub.close().await`");
            assert_eq!(self.hub.tasks_left(), 0, "tasks were left behind");
            self.test_home.assert_nothing_left();
        }
    }
}

/// The toolhub binary, run in a temporary folder.
#[derive(Debug)]
pub struct CommandLine {
    program: PathBuf,
    test_home: TestHome,
}

/// The result of a run.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// The standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl CommandLine {
    /// Uses the binary at `program` (`env!("CARGO_BIN_EXE_toolhub")`).
    pub fn new(program: &str) -> Self {
        Self { program: program.into(), test_home: TestHome::new() }
    }

    /// The folder of the config, which is the working directory.
    pub fn folder(&self) -> &Path {
        self.test_home.folder.path()
    }

    /// Adds a scripted server over stdio.
    pub fn server(&mut self, id: &str, script: &Script) {
        self.test_home.scripted(id, script);
    }

    /// Adds a server in the format of `mcp.json`.
    pub fn entry(&mut self, id: &str, server: Value) {
        self.test_home.add(id, server);
    }

    /// A command that is not started yet: English, no colours, a clean environment in which only its folder is trusted.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let folder = self.folder();
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .env("TOOLHUB_HOME", folder.join("home"))
            .env("TOOLHUB_TRUST", folder)
            .env("LANG", "C.UTF-8")
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        let output = self.command(args).output().expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Drop for CommandLine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.test_home.assert_nothing_left();
        }
    }
}
