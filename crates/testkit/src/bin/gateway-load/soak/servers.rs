//! The servers of a soak test, over stdio and HTTP, which are killed one at a time at random moments.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use toolhub_testkit::processes;
use toolhub_testkit::scripted::{HttpServer, Script, binary};

/// Number of servers per transport.
const SERVERS_PER_TRANSPORT: usize = 3;
/// The environment variable that identifies servers over stdio.
const MARKER_VARIABLE: &str = "TOOLHUB_SOAK_SERVER";
/// Time between two kills, and downtime of a server over HTTP, in milliseconds.
const KILL_INTERVAL_MS: std::ops::Range<u64> = 1_000..4_000;
const DOWNTIME_MS: std::ops::Range<u64> = 100..2_000;

/// A server.
pub(super) struct Target {
    pub(super) name: String,
    script: Script,
    /// `None` over stdio: the gateway starts those.
    http: Option<(Mutex<HttpServer>, u16)>,
    config: Value,
    mark: String,
    availability: Mutex<Availability>,
    calls: AtomicU64,
    refused: AtomicU64,
    kills: AtomicU64,
}

/// The availability of a server.
#[derive(Clone, Copy)]
struct Availability {
    /// Since when it responds; `None` while it is down.
    up: Option<Instant>,
    /// When the process was restarted: a response to a later call means that it is up.
    back: Option<Instant>,
}

impl Target {
    fn new(folder: &Path, number: usize, over_http: bool) -> Self {
        let name = format!("{}{number}", if over_http { "http" } else { "stdio" });
        // A read-only tool, and one without annotations: the gateway logs their calls differently.
        let look = json!({"name": format!("look_{name}"), "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}});
        let who_tool = format!("who_{name}");
        let script = Script::both()
            .tool(look)
            .plain_tool(&who_tool)
            .on(&format!("tools/call:{who_tool}"), json!([{"text": format!("I am {name}")}]));
        let mark = format!("{}-{name}", std::process::id());
        let server = over_http.then(|| HttpServer::start(&script));
        let config = match &server {
            Some(server) => json!({"url": server.url}),
            None => {
                let file = script.write(folder);
                json!({"command": binary(), "args": ["stdio", file], "env": {MARKER_VARIABLE: mark}})
            }
        };
        let http = server.map(|server| {
            let port = server.port();
            (Mutex::new(server), port)
        });
        let availability = Mutex::new(Availability { up: Some(Instant::now()), back: Some(Instant::now()) });
        let (calls, refused, kills) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { name, script, http, config, mark, availability, calls, refused, kills }
    }

    fn availability(&self) -> MutexGuard<'_, Availability> {
        self.availability.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a correct response to a call that began at `run_started`.
    pub(super) fn answered(&self, run_started: Instant) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut availability = self.availability();
        // A call from before the kill may be answered after it.
        if availability.up.is_none() && availability.back.is_some_and(|back| run_started >= back) {
            availability.up = Some(Instant::now());
        }
    }

    /// Records the failure of a call that began at `run_started`. Returns whether it is excused, because the server was down
    /// meanwhile.
    pub(super) fn refused(&self, run_started: Instant) -> bool {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.availability().up.is_none_or(|up| up >= run_started)
    }

    fn is_up(&self) -> bool {
        self.availability().up.is_some()
    }

    fn mark_down(&self) {
        *self.availability() = Availability { up: None, back: None };
        self.kills.fetch_add(1, Ordering::Relaxed);
    }

    fn mark_up(&self) {
        self.availability().back = Some(Instant::now());
    }

    /// Kills the server like a crash, and restarts it or lets the gateway do so.
    async fn kill(&self, away: Duration) -> Result<()> {
        self.mark_down();
        match &self.http {
            Some((server, port)) => {
                server.lock().unwrap_or_else(PoisonError::into_inner).kill();
                tokio::time::sleep(away).await;
                *server.lock().unwrap_or_else(PoisonError::into_inner) =
                    HttpServer::start_on(&self.script, *port);
            }
            None => {
                for pid in processes::with_marker(MARKER_VARIABLE, &self.mark) {
                    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
                    // The process may have exited already.
                    let _ = rustix::process::kill_process(
                        pid.context("no process")?,
                        rustix::process::Signal::KILL,
                    );
                }
            }
        }
        self.mark_up();
        Ok(())
    }
}

/// All servers.
pub(super) struct Servers {
    pub(super) all: Vec<Target>,
    _folder: tempfile::TempDir,
}

impl Servers {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let scripts = tempfile::tempdir_in(folder)?;
        let each = |over_http: bool| (0..SERVERS_PER_TRANSPORT).map(move |number| (number, over_http));
        let all = each(false).chain(each(true));
        let all = all.map(|(number, over_http)| Target::new(scripts.path(), number, over_http)).collect();
        Ok(Self { all, _folder: scripts })
    }

    /// The configuration for the gateway.
    pub(super) fn config(&self) -> Value {
        let all: Map<String, Value> =
            self.all.iter().map(|target| (target.name.clone(), target.config.clone())).collect();
        all.into()
    }

    /// Kills random running servers until `until`.
    pub(super) async fn kill_at_random(&self, mut random: fastrand::Rng, until: Instant) -> Result<()> {
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(random.u64(KILL_INTERVAL_MS))).await;
            let away = Duration::from_millis(random.u64(DOWNTIME_MS));
            let up: Vec<&Target> = self.all.iter().filter(|target| target.is_up()).collect();
            if let Some(target) = random.choice(up) {
                target.kill(away).await?;
            }
        }
        Ok(())
    }

    pub(super) fn kills(&self) -> u64 {
        self.all.iter().map(|target| target.kills.load(Ordering::Relaxed)).sum()
    }

    /// Formats a line per server.
    pub(super) fn report(&self) -> String {
        let mut out = format!("{:<10}{:>12}{:>12}{:>8}", "server", "answered", "refused", "kills");
        for target in &self.all {
            let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let (calls, refused, kills) =
                (count(&target.calls), count(&target.refused), count(&target.kills));
            let _ = write!(out, "\n{:<10}{calls:>12}{refused:>12}{kills:>8}", target.name);
        }
        out
    }
}
