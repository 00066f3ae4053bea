//! Runs scripts: takes a host from the pool, repeats or continues the journal, and makes the report.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::{duration_millis, unix_millis};
use toolhub_core::script_host::ScriptHosts;

use crate::failure;
use crate::host::Host;
use crate::host_process::HostConfig;
use crate::journal::{EntryDurability, Journal, JournalEntry, RunHeader};
use crate::limits::ScriptLimits;
use crate::pool::HostPool;
use crate::protocol::{self, HostLimits, ScriptRun, ToHost};
use crate::replay::{EarlierRun, Replay};
use crate::report::{FailureKind, ScriptFailure, ScriptOutcome, ScriptReport};
use crate::session::{Session, SessionSetup};
use crate::tools::{ScriptTool, ScriptTools};

/// How scripts are run.
#[derive(Clone, Debug)]
pub struct RunnerConfig {
    /// How hosts are started.
    pub host: HostConfig,
    /// The limits that no run may exceed.
    pub limits: ScriptLimits,
    /// Hosts that are kept ready. Each takes a few megabytes.
    pub warm_hosts: usize,
    /// Scripts that run at the same time. Further ones wait, within their own time.
    pub max_running: usize,
    /// Hosts of other machines, which are used before those of this one.
    pub others: Option<OtherHosts>,
}

/// Hosts of other machines.
#[derive(Clone)]
pub struct OtherHosts {
    /// The hosts.
    pub hosts: Arc<dyn ScriptHosts>,
    /// Whether a script may run on this machine if no other one takes it.
    pub or_here: bool,
}

impl std::fmt::Debug for OtherHosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherHosts").field("or_here", &self.or_here).finish_non_exhaustive()
    }
}

impl RunnerConfig {
    /// The usual values for a host configuration.
    pub fn new(host: HostConfig) -> Self {
        Self { host, limits: ScriptLimits::default(), warm_hosts: 1, max_running: 32, others: None }
    }
}

/// A script to run.
#[derive(Clone, Debug)]
pub struct Script {
    /// The program.
    pub code: String,
    /// The value of `input`.
    pub input: RawJson,
    /// Lower limits than those of the runner.
    pub limits: Option<ScriptLimits>,
    /// The arguments of the call that runs the script: the journal keeps them, so that the call can be repeated.
    pub arguments: Option<RawJson>,
}

impl Script {
    /// A script without input.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), input: RawJson::null(), limits: None, arguments: None }
    }
}

/// Runs scripts, each in a sandboxed process of its own.
#[derive(Clone, Debug)]
pub struct ScriptRunner {
    pool: Arc<HostPool>,
    others: Option<OtherHosts>,
    running: Arc<Semaphore>,
    limits: ScriptLimits,
}

impl ScriptRunner {
    /// Starts nothing yet. Must be called within the runtime that outlives all runs.
    pub fn new(config: RunnerConfig) -> Self {
        let RunnerConfig { host, limits, warm_hosts, max_running, others } = config;
        Self {
            pool: HostPool::new(host, limits, warm_hosts),
            others,
            running: Arc::new(Semaphore::new(max_running.max(1))),
            limits,
        }
    }

    /// A runner with the same hosts and limits, whose scripts have slots of their own: a script of it may be called by one of
    /// this runner, which keeps its slot meanwhile.
    #[must_use]
    pub fn with_separate_slots(&self, max_running: usize) -> Self {
        Self { running: Arc::new(Semaphore::new(max_running.max(1))), ..self.clone() }
    }

    /// Starts the hosts that are kept ready, and waits for them. Without this, the first script starts its own.
    pub async fn warm_up(&self) -> Result<(), LocalizedText> {
        self.pool.warm_up().await.map_err(|error| error.text())
    }

    /// Ends the hosts that are kept ready.
    pub async fn shutdown(&self) {
        self.pool.close().await;
    }

    /// Runs a script to its end. Dropping the future kills the host and drops all calls.
    ///
    /// With a journal that has entries the script is run again: calls that have an answer are not sent, and if one was
    /// sent and has no answer, nothing is called.
    pub async fn run(
        &self,
        script: &Script,
        tools: &dyn ScriptTools,
        journal: Option<&mut dyn Journal>,
    ) -> ScriptReport {
        let began = Instant::now();
        let mut report = match Box::pin(self.prepared(script, tools, journal)).await {
            Ok(report) => report,
            Err(failure) => ScriptReport::failed(*failure),
        };
        if report.duration.is_zero() {
            report.duration = began.elapsed();
        }
        report
    }

    async fn prepared(
        &self,
        script: &Script,
        tools: &dyn ScriptTools,
        mut journal: Option<&mut dyn Journal>,
    ) -> Result<ScriptReport, Box<ScriptFailure>> {
        let limits = script.limits.map_or(self.limits, |limits| limits.at_most(&self.limits));
        let deadline = Instant::now() + limits.wall;
        check_lengths(script, &limits)?;
        let entries = journal.as_mut().map(|journal| journal.take_entries()).unwrap_or_default();
        let replay = match EarlierRun::read(entries) {
            EarlierRun::New => None,
            EarlierRun::Finished(report) => return Ok(*report),
            EarlierRun::Interrupted(replay) => Some(replay),
            EarlierRun::Unknown(calls) => return Err(failure::unknown(&calls)),
            EarlierRun::Damaged => return Err(failure::journal_damaged()),
        };
        let running = tokio::time::timeout_at(deadline, self.running.acquire()).await;
        let _permit = running.ok().and_then(Result::ok).ok_or_else(failure::busy)?;
        // A run that waits for its slot holds no list of tools, which may be long.
        let listed = by_name(tools.tools().await)?;
        let digest = digest(script, &listed);
        if replay.as_ref().is_some_and(|replay| replay.started.digest != digest) {
            return Err(failure::other_script());
        }
        let started = match &replay {
            Some(replay) => replay.started.clone(),
            None => {
                let arguments = script.arguments.clone();
                RunHeader { digest, seed: fastrand::u64(..), clock: now(), arguments }
            }
        };
        if let (Some(journal), None) = (&mut journal, &replay) {
            let entry = JournalEntry::Started(started.clone());
            journal
                .append(&entry, EntryDurability::Process)
                .await
                .map_err(|error| failure::journal(&error))?;
        }
        let run = ToHost::Run(Box::new(run_message(script, &limits, &listed, &started, &replay)?));
        let first = protocol::encode(&run).map_err(failure::internal)?;
        drop(run);
        let host = tokio::time::timeout_at(deadline, self.begin(&first)).await;
        let host = host.map_err(|_| failure::wall(limits.wall))??;
        drop(first);
        let began = Instant::now();
        let setup = SessionSetup {
            code: &script.code,
            limits,
            tools,
            listed: &listed,
            journal: journal.as_mut().map(|journal| &mut **journal as &mut dyn Journal),
            replay,
            deadline,
        };
        let report = {
            let mut session = Session::new(host, setup);
            let outcome = session.run().await;
            let report = report_of(&mut session, outcome, began);
            if let Host::Local(process) = session.into_host() {
                self.pool.discard(*process);
            }
            report
        };
        if let Some(journal) = journal {
            end_journal(journal, &report).await;
        }
        Ok(report)
    }

    /// Gives a script to a host: one of another machine if there are any, else one of this machine.
    async fn begin(&self, first: &[u8]) -> Result<Host, Box<ScriptFailure>> {
        if let Some(OtherHosts { hosts, or_here }) = &self.others {
            match hosts.begin(first).await {
                Ok(host) => return Ok(Host::remote(host, self.limits.host_line())),
                Err(_) if *or_here => {}
                Err(why) => return Err(failure::not_placed(why)),
            }
        }
        Ok(Host::Local(Box::new(self.pool.begin(first).await?)))
    }
}

/// The report of a session that has ended with this outcome.
fn report_of(
    session: &mut Session<'_>,
    outcome: Result<RawJson, Box<ScriptFailure>>,
    began: Instant,
) -> ScriptReport {
    ScriptReport {
        outcome: match outcome {
            Ok(value) => ScriptOutcome::Value(value),
            Err(failure) => ScriptOutcome::Failure(failure),
        },
        log: std::mem::take(&mut session.log),
        dropped_lines: session.dropped_lines,
        calls: session.take_calls(),
        duration: began.elapsed(),
        cpu: session.cpu(),
    }
}

/// Appends the report to the journal. Errors are ignored: without this entry a re-run ends with the same report, or with
/// `unknown`, and what the script did must not be lost.
async fn end_journal(journal: &mut dyn Journal, report: &ScriptReport) {
    // A host that died has not run the script to its end: the run may be repeated.
    if report.failure().is_some_and(|failure| failure.kind == FailureKind::Crashed) {
        drop(journal.flush());
        return;
    }
    let entry = JournalEntry::Finished(Box::new(report.clone()));
    let _ = journal.append(&entry, EntryDurability::Process).await;
}

fn check_lengths(script: &Script, limits: &ScriptLimits) -> Result<(), Box<ScriptFailure>> {
    if script.code.len() > limits.code {
        return Err(failure::too_long(&LocalizedText::new("the script", "脚本"), limits.code));
    }
    if script.input.get().len() > limits.code {
        return Err(failure::too_long(
            &LocalizedText::new("the input of the script", "脚本的输入"),
            limits.code,
        ));
    }
    Ok(())
}

fn by_name(tools: Vec<ScriptTool>) -> Result<HashMap<String, ScriptTool>, Box<ScriptFailure>> {
    let mut listed = HashMap::with_capacity(tools.len());
    for tool in tools {
        if let Some(other) = listed.insert(tool.path.name.clone(), tool) {
            return Err(failure::duplicate_tool(&other.path.name));
        }
    }
    Ok(listed)
}

fn run_message(
    script: &Script,
    limits: &ScriptLimits,
    listed: &HashMap<String, ScriptTool>,
    started: &RunHeader,
    replay: &Option<Replay>,
) -> Result<ScriptRun, Box<ScriptFailure>> {
    let mut tools: Vec<_> = listed.values().map(|tool| tool.path.clone()).collect();
    // The order is that of `Object.keys(tools)`, which must not differ between runs.
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(ScriptRun {
        code: script.code.clone(),
        input: RawValue::from_string(script.input.get().to_owned()).map_err(failure::internal)?,
        limits: HostLimits {
            cpu_ms: duration_millis(limits.cpu),
            memory: limits.memory,
            calls: limits.calls,
            output: limits.output,
            log: limits.log(),
            arguments: limits.arguments,
        },
        tools,
        seed: started.seed,
        clock: started.clock,
        report_idle: replay.is_some(),
    })
}

/// Hash of everything that determines a run beside seed, clock and answers.
fn digest(script: &Script, listed: &HashMap<String, ScriptTool>) -> String {
    let mut names: Vec<&str> = listed.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for part in [script.code.as_str(), script.input.get()].into_iter().chain(names) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize())
}

fn now() -> i64 {
    i64::try_from(unix_millis(SystemTime::now())).unwrap_or(i64::MAX)
}
