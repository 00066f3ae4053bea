//! Runs the script of a client against one or several profiles of a hub, and reads its reports.
use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::{Context, catalog::Client, hub::Hub, left_over};
use crate::run::program;

/// The called tool.
pub(super) const TOOL: &str = "echo";
const CLIENT_TIMEOUT: Duration = Duration::from_secs(180);
const BETWEEN_POLLS: Duration = Duration::from_millis(20);
/// Maximum length of the stderr excerpt in an error, in characters.
const MAX_SHOWN: usize = 600;

/// An installed client and the hub it connects to.
pub(super) struct Driver<'a> {
    context: &'a Context<'a>,
    hub: &'a Hub,
    client: &'a Client,
    /// The directory with its packages.
    installed: &'a Path,
    /// Its working directory.
    folder: PathBuf,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        hub: &'a Hub,
        client: &'a Client,
        installed: &'a Path,
    ) -> Result<Self> {
        let folder = context.folder.join("clients").join(&client.name);
        fs::create_dir_all(&folder)?;
        Ok(Self { context, hub, client, installed, folder })
    }

    /// Returns one report per profile: the names of its `tools` and the text that the call returned, or an `error`.
    pub(super) fn reports(&self, profiles: &[String]) -> Result<Vec<Value>> {
        let (output, errors) = (self.folder.join("output"), self.folder.join("errors"));
        let mut command = self.command(profiles);
        command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&errors)?);
        wait(command.process_group(0).spawn()?)?;
        let printed = fs::read_to_string(&output)?;
        // Frameworks may print other lines before the report.
        let reports = printed.lines().rev().find_map(|line| serde_json::from_str::<Vec<Value>>(line).ok());
        match reports {
            Some(reports) if reports.len() == profiles.len() => Ok(reports),
            _ => bail!("no report: {}", end_of(&errors)?),
        }
    }

    /// Kills and returns the processes that outlived the client.
    pub(super) fn left_over(&self) -> Vec<String> {
        left_over::collect(&self.mark(), &self.folder)
    }

    fn mark(&self) -> String {
        self.folder.display().to_string()
    }

    fn command(&self, profiles: &[String]) -> Command {
        let serve = |profile: &String| self.hub.words(&["serve", "--stdio", "--profile", profile]);
        let targets: Vec<_> = profiles.iter().map(serve).collect();
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers/many/clients").join(&self.client.script);
        let (interpreter, environment) =
            self.context.catalog.interpreter(self.client, self.installed, &self.folder);
        let mut command = program(interpreter);
        if !self.client.is_python() {
            command.arg("--experimental-import-meta-resolve");
        }
        command.arg(script).arg(self.installed).arg(json!(targets).to_string());
        command.current_dir(&self.folder).env_clear().envs(environment);
        command.env(left_over::MARKER, self.mark()).env("TOOL", TOOL);
        command.env("DO_NOT_TRACK", "1").env("NO_COLOR", "1");
        command
    }
}

/// Waits for the process to exit, and kills its process group after the timeout.
fn wait(mut child: Child) -> Result<()> {
    let deadline = Instant::now() + CLIENT_TIMEOUT;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
        }
        thread::sleep(BETWEEN_POLLS);
    }
    Ok(())
}

/// The last characters of a client's stderr, on one line.
fn end_of(file: &Path) -> Result<String> {
    let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
    let skipped = text.chars().count().saturating_sub(MAX_SHOWN);
    Ok(text.chars().skip(skipped).collect::<String>().replace('\n', " | "))
}
