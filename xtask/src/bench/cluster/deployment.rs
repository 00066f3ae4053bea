//! Replicas and workers with one configuration and one database, in a folder of the run.
use std::{
    cell::Cell,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    Environment,
    client::{Client, Outcome},
    scratch::Process,
    services::Nats,
};
use crate::run::{self, program};

/// Timeout until a member serves, or has ended after SIGTERM.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(120);
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time for freed memory to be given back, and for records to be written, before memory is measured.
pub(super) const REST: Duration = Duration::from_secs(5);
/// How long the number of known tools stays the same if servers fail.
const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Configuration<'a> {
    /// Name of the folder, of the database and of the subjects in NATS.
    pub(super) name: &'a str,
    /// Without it, each replica runs the servers itself.
    pub(super) nats: Option<&'a Nats>,
    /// The entries of `mcp.json`.
    pub(super) servers: Value,
    /// Further tables of `toolhub.toml`.
    pub(super) settings: &'a str,
}

pub(super) struct Deployment {
    folder: PathBuf,
    toolhub: PathBuf,
    started: Cell<usize>,
}

/// A replica or a worker. Dropping it kills it.
pub(super) struct Member {
    process: Process,
    /// The id of a worker.
    pub(super) id: String,
    /// The address of a replica for clients.
    pub(super) url: String,
    stderr: PathBuf,
}

impl Deployment {
    pub(super) fn new(environment: &Environment<'_>, configuration: &Configuration<'_>) -> Result<Self> {
        let folder = environment.scratch.folder(configuration.name)?;
        let database = environment.postgres.database(configuration.name)?;
        fs::write(folder.join("toolhub.toml"), settings(configuration, &database))?;
        fs::write(folder.join("mcp.json"), json!({"mcpServers": configuration.servers}).to_string())?;
        Ok(Self { folder, toolhub: environment.programs.toolhub.clone(), started: Cell::new(0) })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn replica(&self) -> Result<Member> {
        self.start(&["serve", "--json", "--bind", "127.0.0.1:0"])
    }

    pub(super) fn replicas(&self, count: usize) -> Result<Vec<Member>> {
        (0..count).map(|_| self.replica()).collect()
    }

    /// A worker that runs servers and no scripts.
    pub(super) fn worker(&self) -> Result<Member> {
        self.start(&["work", "--json", "--scripts", "0"])
    }

    pub(super) fn workers(&self, count: usize) -> Result<Vec<Member>> {
        (0..count).map(|_| self.worker()).collect()
    }

    /// `toolhub cluster status --json`.
    pub(super) fn status(&self) -> Result<Value> {
        let output =
            run::read(self.command(&self.folder.join("status")).args(["cluster", "status", "--json"]))?;
        serde_json::from_str(&output).with_context(|| format!("no status: {output}"))
    }

    /// The worker that runs the first server.
    pub(super) fn placed_at(&self) -> Result<String> {
        let status = self.status()?;
        let worker = status["placements"][0]["worker"].as_str();
        Ok(worker.with_context(|| format!("no server runs: {status}"))?.to_owned())
    }

    fn command(&self, home: &Path) -> Command {
        let mut command = program(&self.toolhub);
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .arg("--config")
            .arg(self.folder.join("toolhub.toml"))
            .arg("--home")
            .arg(home)
            .stdin(Stdio::null());
        command
    }

    fn start(&self, arguments: &[&str]) -> Result<Member> {
        let number = self.started.get() + 1;
        self.started.set(number);
        let stderr = self.folder.join(format!("stderr-{number}"));
        let mut command = self.command(&self.folder.join(format!("home-{number}")));
        command.args(arguments).stdout(Stdio::piped()).stderr(File::create(&stderr)?);
        let mut process = Process::spawn(&mut command)?;
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().context("no stdout")?).read_line(&mut line)?;
        let Ok(startup) = serde_json::from_str::<Value>(&line) else {
            let output = fs::read_to_string(&stderr).unwrap_or_default();
            bail!("`toolhub {}` does not start: {line}{output}", arguments.join(" "));
        };
        let text = |key: &str| startup[key].as_str().unwrap_or_default().to_owned();
        Ok(Member { id: text("worker"), url: text("mcp"), process, stderr })
    }
}

fn settings(configuration: &Configuration<'_>, database: &str) -> String {
    let Configuration { name, nats, settings, .. } = configuration;
    let cluster = nats.map_or_else(String::new, |nats| {
        format!("[cluster]\nnats = \"{}\"\nprefix = \"{name}\"\n", nats.url())
    });
    format!(
        "[store]\nurl = \"{database}\"\n[native]\nenabled = false\n[profiles.default]\nexpose = \"all\"\n{cluster}{settings}"
    )
}

impl Member {
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends it by SIGTERM, and waits for its end.
    pub(super) fn terminate(&mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).context("no process")?;
        kill_process(pid, Signal::TERM)?;
        let since = Instant::now();
        while self.process.0.try_wait()?.is_none() {
            if since.elapsed() > MEMBER_TIMEOUT {
                bail!("it does not end: {}", self.stderr());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until a call succeeds at this replica.
    pub(super) fn await_ready(&self, tool: &str, arguments: &Value) -> Result<()> {
        let mut client = Client::new(&self.url)?;
        let since = Instant::now();
        loop {
            match client.call(tool, arguments) {
                Outcome::Succeeded => return Ok(()),
                Outcome::Failed { text, .. } if since.elapsed() > MEMBER_TIMEOUT => {
                    bail!("`{tool}` cannot be called: {text}\n{}", self.stderr())
                }
                Outcome::Failed { .. } => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Waits until the number of tools in the catalog reaches `expected`, or has not changed for some time. Returns it.
    pub(super) fn await_tools(&self, expected: usize) -> Result<usize> {
        let mut client = Client::new(&self.url)?;
        let (mut known, mut since) = (0, Instant::now());
        while known < expected && since.elapsed() < LISTING_TIMEOUT {
            thread::sleep(POLL_INTERVAL);
            let found = metric(&client.page("/metrics")?, "toolhub_tools").context("no `toolhub_tools`")?;
            if found != known {
                (known, since) = (found, Instant::now());
            }
        }
        Ok(known)
    }

    /// The number of open sessions.
    pub(super) fn sessions(&self) -> Result<usize> {
        let page = Client::new(&self.url)?.page("/metrics")?;
        metric(&page, "toolhub_sessions{profile=\"default\"}").context("no `toolhub_sessions`")
    }
}

/// A figure in the text format of Prometheus. The name includes the labels.
fn metric(page: &str, name: &str) -> Option<usize> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_metrics_by_their_whole_name() {
        let page = "# HELP toolhub_tools x\ntoolhub_tools_total 9\ntoolhub_tools 12\nsessions{p=\"a\"} 3\n";
        assert_eq!(metric(page, "toolhub_tools"), Some(12));
        assert_eq!(metric(page, "sessions{p=\"a\"}"), Some(3));
        assert_eq!(metric(page, "toolhub"), None);
    }

    #[test]
    fn hubs_without_nats_form_no_cluster() {
        let configuration = Configuration {
            name: "plain",
            nats: None,
            servers: json!({}),
            settings: "[worker]\ncapacity = 3\n",
        };
        let text = settings(&configuration, "postgres://x");
        assert!(!text.contains("[cluster]") && text.contains("url = \"postgres://x\""), "{text}");
        assert!(text.ends_with("[worker]\ncapacity = 3\n"), "{text}");
    }
}
