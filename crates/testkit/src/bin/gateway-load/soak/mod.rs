//! The soak test: full load on the gateway for a long time, while its servers are killed and restarted. Checks every
//! response and the resource usage of the gateway.

mod callers;
mod samples;
mod servers;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolhub_testkit::processes;

use self::samples::Samples;
use self::servers::Servers;

const CALLERS: usize = 32;
/// Timeout of the gateway's shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// The running gateway.
struct Gateway {
    child: Child,
    url: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gateway {
    fn start(program: &Path, folder: &Path, servers: &Value) -> Result<Self> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        fs::write(folder.join("toolhub.toml"), "[profiles.default]\nexpose = \"all\"\n")?;
        fs::write(folder.join("mcp.json"), json!({"mcpServers": servers}).to_string())?;
        let mut command = Command::new(program);
        command.arg("--config").arg(folder.join("toolhub.toml")).arg("--home").arg(folder.join("home"));
        command.args(["--json", "serve", "--bind", "127.0.0.1:0"]);
        // Without jemalloc: every arena of glibc keeps freed memory of its own, so that many of them reach their size only after minutes.
        command.env("MALLOC_ARENA_MAX", "2");
        let words = fs::File::create(folder.join("stderr"))?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(words).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
        let announcement: Option<Value> = serde_json::from_str(&line).ok();
        match announcement.as_ref().and_then(|announcement| announcement["mcp"].as_str()) {
            Some(url) => Ok(Self { url: url.to_owned(), child }),
            None => {
                let _ = child.kill();
                bail!("the gateway does not serve: {line}{}", fs::read_to_string(folder.join("stderr"))?)
            }
        }
    }

    /// Sends SIGTERM and returns the exit code.
    fn end(mut self) -> Result<Option<i32>> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.context("no process")?, rustix::process::Signal::TERM)?;
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            ensure!(since.elapsed() < SHUTDOWN_TIMEOUT, "the gateway does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The options of a soak test.
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
}

/// Runs the soak test; fails if the gateway misbehaved.
#[expect(clippy::print_stdout, reason = "the program prints its report")]
pub(crate) async fn run(plan: Plan<'_>) -> Result<()> {
    let Plan { program, folder, seconds, seed } = plan;
    let folder = PathBuf::from(folder);
    println!("{CALLERS} callers for {seconds} s, seed {seed}");
    let servers = Arc::new(Servers::start(&folder)?);
    let gateway = Gateway::start(Path::new(program), &folder.join("hub"), &servers.config())?;
    let pid = gateway.child.id();
    let url = Arc::<str>::from(gateway.url.as_str());
    callers::connect_all(&url, &servers).await?;

    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut calling = JoinSet::new();
    for number in 0..CALLERS {
        let random = fastrand::Rng::with_seed(seed.wrapping_add(1 + number as u64));
        calling.spawn(callers::run(Arc::clone(&url), Arc::clone(&servers), random, until));
    }
    let mut beside = JoinSet::new();
    let chosen = Arc::clone(&servers);
    beside.spawn(async move { chosen.kill_at_random(fastrand::Rng::with_seed(seed), until).await });
    let sampling = Samples::take(pid, until);
    let (samples, called) = tokio::join!(sampling, calling.join_all());
    beside.join_all().await.into_iter().collect::<Result<Vec<()>>>()?;

    let mut faults: Vec<String> = called.into_iter().flatten().collect();
    faults.extend(callers::all_recover(&url, &servers).await);
    println!("{}", servers.report());
    println!("{}", samples.report());
    faults.extend(samples.faults());
    let leftover = processes::children_of(pid);
    let code = gateway.end()?;
    if code != Some(0) {
        faults.push(format!("the gateway ended with {code:?}"));
    }
    faults.extend(
        leftover.iter().filter(|pid| processes::alive(**pid)).map(|pid| format!("child {pid} was left")),
    );
    let killed = servers.kills();
    if killed == 0 && seconds >= 10.0 {
        faults.push("no server was killed: nothing was tested".to_owned());
    }
    match faults.is_empty() {
        true => {
            println!(
                "verdict: no wrong answer, no leak, errors only for calls to a killed server ({killed} kills)"
            );
            Ok(())
        }
        false => {
            let count = faults.len();
            faults.truncate(20);
            bail!("verdict: {count} faults\n{}", faults.join("\n"))
        }
    }
}
