//! A cluster for a test: one configuration, and any number of replicas and workers, each with a data folder of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolhub_testkit::nats::NatsServer;
use toolhub_testkit::postgres::PostgresServer;
use toolhub_testkit::{processes, program};

/// The time after which a wait fails the test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const TOOLHUB: &str = env!("CARGO_BIN_EXE_toolhub");

pub(crate) struct TestCluster {
    folder: TempDir,
    pub(crate) nats: NatsServer,
    database: String,
    count: usize,
}

/// A replica or a worker. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    pub(crate) id: String,
    /// The URL of a replica for clients.
    pub(crate) url: String,
    stderr: PathBuf,
}

impl TestCluster {
    /// A cluster without members. `settings` are added to `toolhub.toml`, the first of them to `[cluster]`.
    pub(crate) fn new(settings: &str) -> Self {
        Self::with_servers(settings, |cluster| json!({"journal": cluster.journal_server()}))
    }

    /// A cluster with these servers.
    pub(crate) fn with_servers(settings: &str, servers: impl Fn(&Self) -> Value) -> Self {
        let (nats, database) = (NatsServer::start(), PostgresServer::shared().new_database());
        let url = nats.url();
        let cluster = Self::of_parts(nats, database);
        let servers = json!({"mcpServers": servers(&cluster)});
        fs::write(cluster.path("mcp.json"), servers.to_string()).unwrap();
        cluster.configure(&url, settings);
        cluster
    }

    /// A cluster with this NATS server and this database, without configuration.
    pub(crate) fn of_parts(nats: NatsServer, database: String) -> Self {
        Self { folder: TempDir::with_prefix("toolhub-cluster-").unwrap(), nats, database, count: 0 }
    }

    /// Writes `toolhub.toml`. `settings` begin within `[cluster]`.
    pub(crate) fn configure(&self, nats: &str, settings: &str) {
        let database = &self.database;
        let native = if settings.contains("[native]") { "" } else { "[native]\nenabled = false\n" };
        let toml = format!(
            "[store]\nurl = \"{database}\"\n{native}[cluster]\nnats = \"{nats}\"\nlease = \"6s\"\n{settings}"
        );
        fs::write(self.path("toolhub.toml"), toml).unwrap();
    }

    /// Writes `mcp.json` with the server that keeps a journal.
    pub(crate) fn use_journal(&self) {
        let servers = json!({"mcpServers": {"journal": self.journal_server()}});
        fs::write(self.path("mcp.json"), servers.to_string()).unwrap();
    }

    fn journal_server(&self) -> Value {
        json!({"command": program("journal-server"), "env": {"JOURNAL": self.journal()}})
    }

    /// Executes a statement in the database, and returns its rows.
    pub(crate) fn execute(&self, statement: &str) -> String {
        PostgresServer::shared().execute(&self.database, statement)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    /// The ids of the calls that ran, in order.
    pub(crate) fn ran(&self) -> Vec<String> {
        fs::read_to_string(self.journal()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn replica(&mut self) -> Process {
        self.replica_at(0)
    }

    /// A replica at this port.
    pub(crate) fn replica_at(&mut self, port: u16) -> Process {
        self.start_replica(port, &[])
    }

    /// A replica with these environment variables.
    pub(crate) fn replica_with(&mut self, environment: &[(&str, String)]) -> Process {
        self.start_replica(0, environment)
    }

    fn start_replica(&mut self, port: u16, environment: &[(&str, String)]) -> Process {
        let bind = format!("127.0.0.1:{port}");
        let process = self.start(&["serve", "--json", "--bind", &bind], environment);
        assert!(process.url.starts_with("http"), "{}", process.stderr());
        process
    }

    pub(crate) fn worker(&mut self, arguments: &[&str]) -> Process {
        self.worker_with(arguments, &[])
    }

    /// A worker with these environment variables.
    pub(crate) fn worker_with(&mut self, arguments: &[&str], environment: &[(&str, String)]) -> Process {
        let process = self.start(&[&["work", "--json"], arguments].concat(), environment);
        assert!(process.id.starts_with("worker-"), "{}", process.stderr());
        process
    }

    pub(crate) fn command(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOLHUB);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .arg("--config")
            .arg(self.path("toolhub.toml"))
            .arg("--home")
            .arg(home)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&mut self, arguments: &[&str], environment: &[(&str, String)]) -> Process {
        self.count += 1;
        let home = self.path(&format!("home-{}", self.count));
        let stderr = self.path(&format!("stderr-{}", self.count));
        let mut command = self.command(&home, arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stderr(File::create(&stderr).unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let startup: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "`toolhub {}` does not start: {line}{}",
                arguments.join(" "),
                fs::read_to_string(&stderr).unwrap()
            )
        });
        let text = |key: &str| startup[key].as_str().unwrap_or_default().to_owned();
        Process { child, id: text("worker"), url: text("mcp"), stderr }
    }

    /// `toolhub cluster status --json`.
    pub(crate) fn status(&self) -> Value {
        let output = self.command(&self.path("status"), &["cluster", "status", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// Waits until the status meets the condition.
    pub(crate) fn await_status(&self, what: &str, is_met: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let status = self.status();
            if is_met(&status) {
                return status;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "{what}: {status:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl AsRef<str> for Process {
    fn as_ref(&self) -> &str {
        &self.url
    }
}

impl Process {
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it by SIGTERM, and waits until it has ended.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let since = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < TEST_TIMEOUT, "{}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The processes of servers that it runs.
    pub(crate) fn servers(&self) -> Vec<u32> {
        processes::children_of(self.child.id()).into_iter().filter(|child| processes::alive(*child)).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.stderr.display(), self.stderr());
        }
    }
}

/// A client of the era 2026-07-28, without a session.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    key: Option<&'static str>,
}

impl Client {
    pub(crate) fn of(replica: &impl AsRef<str>) -> Self {
        // The client needs a provider even for plain HTTP; another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(TEST_TIMEOUT).build().unwrap();
        Self { http, url: replica.as_ref().to_owned(), key: None }
    }

    /// The client with this key.
    pub(crate) fn with_key(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Calls a tool, and returns the answer as text.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> String {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.http.post(&self.url);
        let request = match self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(message.to_string());
        match request.send().await {
            Ok(response) => response.text().await.unwrap_or_else(|error| error.to_string()),
            Err(error) => error.to_string(),
        }
    }

    /// Appends an id to the journal, and returns the answer.
    pub(crate) async fn append(&self, id: &str) -> String {
        self.call("append", json!({"id": id})).await
    }

    /// Waits until the tools of the server are listed and a call succeeds. Its id is `ready`.
    pub(crate) async fn await_ready(&self) {
        let since = Instant::now();
        loop {
            let answer = self.append("ready").await;
            if succeeded(&answer) {
                return;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "{answer}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Whether an answer is the result of a call that succeeded.
pub(crate) fn succeeded(answer: &str) -> bool {
    answer.contains("\"result\"") && !answer.contains("\"isError\":true")
}

/// The effect that a failed call reports; `None` for one that succeeded. The text for clients names an effect only if it is unknown.
pub(crate) fn effect(answer: &str) -> Option<&'static str> {
    let failed = answer.contains("\"isError\":true");
    failed.then_some(if answer.contains("whether it took effect is unknown") { "unknown" } else { "none" })
}
