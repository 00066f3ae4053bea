//! Runs `toolhub serve` over HTTP in a temporary folder for the duration of a test, and provides the servers behind it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, processes, program};

use crate::raw_client::http;

/// The arguments that start the gateway.
const SERVE: [&str; 4] = ["serve", "--json", "--bind", "127.0.0.1:0"];
/// The time after which a wait fails the test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The program with these settings, not yet started.
pub(crate) fn hub(settings: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    cli
}

/// The fixture server of the conformance suites over stdio, as an entry of `mcp.json`.
pub(crate) fn fixture() -> Value {
    json!({"command": program("conformance-server"), "args": ["stdio"]})
}

/// The fixture server over HTTP.
pub(crate) struct HttpFixture {
    child: Child,
    pub(crate) url: String,
}

impl HttpFixture {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(program("conformance-server"));
        let mut child = command.args(["http", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim_end().to_owned() }
    }
}

impl Drop for HttpFixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running gateway. Dropping it sends SIGTERM and requires that the process ends.
pub(crate) struct Serving {
    child: Child,
    /// The URL without a path.
    pub(crate) root: String,
    cli: Option<CommandLine>,
    killed: bool,
}

impl Serving {
    /// Starts the gateway on a free port.
    pub(crate) fn start(cli: CommandLine) -> Self {
        let command = cli.command(&SERVE);
        Self::run(cli, command)
    }

    /// Like `start`, with `--trace`.
    pub(crate) fn start_with_stderr(cli: CommandLine) -> Self {
        let command = cli.command(&[&["--trace"], &SERVE[..]].concat());
        Self::run(cli, command)
    }

    /// Like `start`, through a shell that runs `preparation` first.
    pub(crate) fn start_after_shell(cli: CommandLine, preparation: &str) -> Self {
        let own = cli.command(&SERVE);
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{preparation}; exec \"$@\""), "bash"]).arg(own.get_program()).args(SERVE);
        shell.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(cli.folder()).stdout(Stdio::piped());
        Self::run(cli, shell)
    }

    /// Starts this command, which must run the gateway.
    pub(crate) fn run(cli: CommandLine, mut command: Command) -> Self {
        let stderr = File::create(cli.folder().join("stderr")).unwrap();
        let mut child = command.stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(startup) = serde_json::from_str::<Value>(&line) else {
            let stderr = fs::read_to_string(cli.folder().join("stderr")).unwrap();
            panic!("`toolhub serve` does not serve: {line}{stderr}");
        };
        let root = startup["mcp"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, root, cli: Some(cli), killed: false }
    }

    /// Kills the gateway and starts it again at the same address and with the same files.
    pub(crate) fn restart(self) -> Self {
        let address = self.root.strip_prefix("http://").unwrap().to_owned();
        let cli = self.kill();
        let command = cli.command(&["serve", "--json", "--bind", &address]);
        Self::run(cli, command)
    }

    /// Like `restart`, then waits until the connection pool of the test has noticed the closed connections.
    pub(crate) async fn restarted(self) -> Self {
        let serving = self.restart();
        tokio::time::sleep(Duration::from_millis(50)).await;
        serving
    }

    /// Stops the gateway with SIGTERM and waits for its end; the files are kept.
    pub(crate) fn stop(mut self) -> CommandLine {
        self.terminate();
        let code = self.wait();
        assert_eq!(code, Some(0), "{}", self.stderr());
        self.killed = true;
        self.cli.take().unwrap()
    }

    /// Sends SIGKILL; the files are kept.
    pub(crate) fn kill(mut self) -> CommandLine {
        self.killed = true;
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.cli.take().unwrap()
    }

    /// Waits until the process has ended by itself. Returns its standard error and its files.
    pub(crate) fn wait_for_death(mut self) -> (String, CommandLine) {
        assert!(!self.outlives(TEST_TIMEOUT), "it is still there: {}", self.stderr());
        let code = self.wait();
        assert_eq!(code, None, "it has ended as if all were well: {}", self.stderr());
        self.killed = true;
        (self.stderr(), self.cli.take().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder with its files.
    pub(crate) fn folder(&self) -> &Path {
        self.cli().folder()
    }

    /// The program with the same files.
    pub(crate) fn cli(&self) -> &CommandLine {
        self.cli.as_ref().unwrap()
    }

    /// The response body of a GET, as text.
    pub(crate) async fn get(&self, path: &str) -> String {
        let answer = http().get(format!("{}{path}", self.root)).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// Starts the gateway with one scripted server named `s`.
    pub(crate) fn before(script: &Script, settings: &str) -> Self {
        let mut cli = hub(settings);
        cli.server("s", script);
        Self::start(cli)
    }

    /// The endpoint of the default profile.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.root)
    }

    /// The standard error written so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder().join("stderr")).unwrap()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    /// Waits for the process to end and returns its exit code. Does not block the runtime, so that connections of the test are
    /// driven.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < TEST_TIMEOUT {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        if self.outlives(TEST_TIMEOUT) {
            let _ = self.child.kill();
        }
        self.child.wait().unwrap().code()
    }

    /// Whether the process is still running after this time. Polls instead of waiting, so that a hang fails the test.
    fn outlives(&self, timeout: Duration) -> bool {
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(5));
        }
        processes::alive(self.child.id())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.killed {
            return;
        }
        self.terminate();
        let code = self.wait();
        if !std::thread::panicking() {
            assert_eq!(code, Some(0), "{}", self.stderr());
        }
    }
}

/// A scripted server with a tool `hold` that sends progress and then never answers, and writes received messages to `journal`.
pub(crate) fn holding(journal: &Path) -> Script {
    let held = json!([{"progress": {"progress": 1}}, {"ignore": true}]);
    Script::both().plain_tool("hold").on("tools/call:hold", held).journal(journal)
}

/// The number of cancelled calls in the journal of a stdio server; subscriptions are not counted.
pub(crate) fn cancelled_calls(journal: &Journal) -> usize {
    let messages = journal.messages();
    let calls = messages.iter().filter(|message| message["method"] == "tools/call");
    let is_cancelled = |call: &&&Value| {
        let cancels = |message: &&Value| {
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == call["id"]
        };
        messages.iter().any(cancels)
    };
    calls.filter(is_cancelled).count()
}

/// Waits until this many calls to a stdio server have been cancelled.
pub(crate) async fn await_cancelled(journal: &Path, count: usize) {
    let cancelled = |journal: &Journal| cancelled_calls(journal) >= count;
    Journal::read(journal).wait_for_async(cancelled, TEST_TIMEOUT).await;
}
