//! `toolhub serve` in a folder of its own, over HTTP, for as long as a test needs it; and what tests put behind it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};
use toolhub_testkit::{CommandLine, processes, program};

use crate::raw_client::http;

/// How the program is told to serve.
const SERVE: [&str; 4] = ["serve", "--json", "--bind", "127.0.0.1:0"];
/// How long anything that is awaited may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program, not yet started.
pub(crate) fn hub(settings: &str) -> CommandLine {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    cli
}

/// The fixture server of the conformance suites over stdio, as `mcp.json` describes it.
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

/// The program while it serves. When this goes it is told to end, and must.
pub(crate) struct Serving {
    child: Child,
    /// Where clients go, without a path.
    pub(crate) root: String,
    cli: Option<CommandLine>,
    killed: bool,
}

impl Serving {
    /// Starts to serve on a free port.
    pub(crate) fn start(cli: CommandLine) -> Self {
        let command = cli.command(&SERVE);
        Self::run(cli, command)
    }

    /// The same, with everything told that happens.
    pub(crate) fn start_telling(cli: CommandLine) -> Self {
        let command = cli.command(&[&["--trace"], &SERVE[..]].concat());
        Self::run(cli, command)
    }

    /// The same, through a shell that first does what it is told to.
    pub(crate) fn start_after(cli: CommandLine, preparation: &str) -> Self {
        let own = cli.command(&SERVE);
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{preparation}; exec \"$@\""), "bash"]).arg(own.get_program()).args(SERVE);
        shell.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(cli.folder()).stdout(Stdio::piped());
        Self::run(cli, shell)
    }

    /// Starts this command, which serves.
    pub(crate) fn run(cli: CommandLine, mut command: Command) -> Self {
        let stderr = File::create(cli.folder().join("stderr")).unwrap();
        let mut child = command.stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            let words = fs::read_to_string(cli.folder().join("stderr")).unwrap();
            panic!("`toolhub serve` does not serve: {line}{words}");
        };
        let root = said["mcp"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, root, cli: Some(cli), killed: false }
    }

    /// Kills it and starts it again, at the same address and with the same files.
    pub(crate) fn restart(self) -> Self {
        let address = self.root.strip_prefix("http://").unwrap().to_owned();
        let cli = self.kill();
        let command = cli.command(&["serve", "--json", "--bind", &address]);
        Self::run(cli, command)
    }

    /// The same; the connections of this test notice that theirs are closed.
    pub(crate) async fn restarted(self) -> Self {
        let serving = self.restart();
        tokio::time::sleep(Duration::from_millis(50)).await;
        serving
    }

    /// Kills it, as the system would; what it had in its folder is left.
    pub(crate) fn kill(mut self) -> CommandLine {
        self.killed = true;
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.cli.take().unwrap()
    }

    /// Waits until it has died by itself; what it wrote, and what it had in its folder.
    pub(crate) fn died(mut self) -> (String, CommandLine) {
        assert!(!self.outlives(PATIENCE), "it is still there: {}", self.words());
        let code = self.wait();
        assert_eq!(code, None, "it has ended as if all were well: {}", self.words());
        self.killed = true;
        (self.words(), self.cli.take().unwrap())
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.cli().folder()
    }

    /// The program with the same files.
    pub(crate) fn cli(&self) -> &CommandLine {
        self.cli.as_ref().unwrap()
    }

    /// What a path answers, as text.
    pub(crate) async fn get(&self, path: &str) -> String {
        let answer = http().get(format!("{}{path}", self.root)).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// With one scripted server named `s`.
    pub(crate) fn before(script: &Script, settings: &str) -> Self {
        let mut cli = hub(settings);
        cli.server("s", script);
        Self::start(cli)
    }

    /// The endpoint of the default profile.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.root)
    }

    /// What it wrote beside its answers.
    pub(crate) fn words(&self) -> String {
        fs::read_to_string(self.folder().join("stderr")).unwrap()
    }

    /// Tells it to end.
    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // It may be gone already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    /// Its exit code, once it has ended. Meanwhile the connections of this test are served.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        if self.outlives(PATIENCE) {
            let _ = self.child.kill();
        }
        self.child.wait().unwrap().code()
    }

    /// Whether it is still there after that time. It is looked at rather than waited for, so that one that hangs fails
    /// the test.
    fn outlives(&self, patience: Duration) -> bool {
        let since = Instant::now();
        while processes::alive(self.child.id()) && since.elapsed() < patience {
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
            assert_eq!(code, Some(0), "{}", self.words());
        }
    }
}

/// A scripted server with a tool `hold` that tells its progress and then never answers, and the journal of what
/// reached it.
pub(crate) fn holding(journal: &Path) -> Script {
    let held = json!([{"progress": {"progress": 1}}, {"ignore": true}]);
    Script::both().plain_tool("hold").on("tools/call:hold", held).journal(journal)
}

/// How many calls that reached a server over stdio have been cancelled; a subscription is none.
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

/// Waits until so many calls that reached a server over stdio have been cancelled.
pub(crate) async fn await_cancelled(journal: &Path, count: usize) {
    let cancelled = |journal: &Journal| cancelled_calls(journal) >= count;
    Journal::read(journal).wait_for_async(cancelled, PATIENCE).await;
}
