//! Runs scripts for calls: each has a slot, a journal and the tools of its caller. `run_script` and the scripts of skills share
//! the host processes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::script_host::ScriptHosts;
use toolhub_core::{CallContext, CallId, NestedTools, RawJson, RawObject, ToolError, ToolOutput, meta_keys};
use toolhub_native::localized_block;
use toolhub_script::{
    CallStatus, HostConfig, Journal, OtherHosts, RunnerConfig, Script, ScriptLimits, ScriptReport,
    ScriptRunner,
};

use super::caller_tools::CallerTools;
use super::journals::{Journals, ReopenError, RunJournal};
use super::last_interruption::LastInterruption;
use super::output_meta::FAILURE_KEY;
use super::shares::Shares;
use crate::settings::{RunLocation, Settings};

/// Who wrote a script. Each kind has its own slots: a script of a caller waits for the scripts of skills that it calls, and
/// these call no further scripts, so that no two wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptAuthor {
    /// The caller, with `run_script`.
    Caller,
    /// The author of a skill.
    Skill,
}

/// Runs the scripts of a hub.
pub(crate) struct ScriptRuns {
    config: RunnerConfig,
    journals: Journals,
    shares_of_callers: Shares,
    shares_of_skills: Shares,
    /// The journals of runs that are resumed, until their call begins.
    resumed: Mutex<HashMap<CallId, RunJournal>>,
    /// The journals of runs that have ended, until the end of their call is recorded.
    ended: Mutex<HashMap<CallId, RunJournal>>,
    interruption: LastInterruption,
    /// Created by the first script, within the runtime of the hub.
    runners: OnceLock<Runners>,
}

struct Runners {
    of_callers: ScriptRunner,
    of_skills: ScriptRunner,
}

impl ScriptRuns {
    /// `None` if the settings disable scripts. A process that ends after one call keeps no host ready. `others` are the hosts of
    /// cluster workers.
    pub(crate) fn new(
        host: HostConfig,
        settings: &Settings,
        home: &Path,
        one_shot: bool,
        others: Option<Arc<dyn ScriptHosts>>,
    ) -> Option<Arc<Self>> {
        if !settings.script.is_enabled() {
            return None;
        }
        let others = match settings.cluster.scripts {
            RunLocation::Replica => None,
            location => others.map(|hosts| OtherHosts { hosts, or_here: location == RunLocation::Auto }),
        };
        let config = RunnerConfig {
            limits: settings.script.limits(),
            warm_hosts: if one_shot { 0 } else { settings.script.warm_hosts() },
            max_running: settings.script.max_running(),
            others,
            ..RunnerConfig::new(host)
        };
        Some(Arc::new(Self {
            journals: Journals::in_folder(home),
            shares_of_callers: Shares::of(config.max_running),
            shares_of_skills: Shares::of(config.max_running),
            config,
            resumed: Mutex::default(),
            ended: Mutex::default(),
            interruption: LastInterruption::default(),
            runners: OnceLock::new(),
        }))
    }

    /// The limits of a script.
    pub(crate) fn limits(&self) -> &ScriptLimits {
        &self.config.limits
    }

    /// Locks the journal that an earlier run of a call has left.
    pub(crate) fn reopen(&self, call: &CallId) -> Result<RunJournal, ReopenError> {
        self.journals.reopen(call)
    }

    /// Uses a journal for the next run of its call. Returns the arguments of that run. Journals of earlier versions have none, and
    /// the recorded ones are used.
    pub(crate) fn resume(&self, call: &CallId, journal: RunJournal, recorded: &RawJson) -> RawJson {
        let arguments = journal.arguments().unwrap_or(recorded).clone();
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner).insert(call.clone(), journal);
        arguments
    }

    /// What a run had called when it was interrupted, if it was the last one that was.
    pub(crate) fn interruption(&self, call: &CallId) -> Option<LocalizedText> {
        self.interruption.of(call)
    }

    /// Removes the journal of a run whose end is recorded.
    pub(crate) fn forget(&self, call: &CallId) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
    }

    /// Ends the processes that wait for a script.
    pub(crate) async fn shutdown(&self) {
        if let Some(runners) = self.runners.get() {
            runners.of_callers.shutdown().await;
        }
    }

    fn runner(&self, author: ScriptAuthor) -> &ScriptRunner {
        let runners = self.runners.get_or_init(|| {
            self.journals.remove_old();
            let of_callers = ScriptRunner::new(self.config.clone());
            Runners { of_skills: of_callers.with_separate_slots(self.config.max_running), of_callers }
        });
        match author {
            ScriptAuthor::Caller => &runners.of_callers,
            ScriptAuthor::Skill => &runners.of_skills,
        }
    }

    /// Runs a script of a caller with these tools, outside of a call.
    pub(crate) async fn run(
        &self,
        script: &Script,
        nested: &dyn NestedTools,
        call: CallId,
        journal: Option<&mut dyn Journal>,
    ) -> ScriptReport {
        let limits = script.limits.unwrap_or(self.config.limits).at_most(&self.config.limits);
        let tools = CallerTools::new(nested, call, &limits, &self.interruption);
        self.runner(ScriptAuthor::Caller).run(script, &tools, journal).await
    }

    /// Runs the script of a call with the tools of its caller, within the share of its principal, and keeps its journal.
    pub(crate) async fn run_for_call(
        &self,
        author: ScriptAuthor,
        script: &Script,
        context: &CallContext,
    ) -> Result<ScriptReport, ToolError> {
        let nested = context.nested.as_deref().ok_or_else(no_tools)?;
        let shares = match author {
            ScriptAuthor::Caller => &self.shares_of_callers,
            ScriptAuthor::Skill => &self.shares_of_skills,
        };
        // Scripts of a single user need no shares.
        let identity = context.caller.as_ref().and_then(|caller| caller.principal());
        let _slot = match identity {
            // A script that a script calls belongs to that one, which waits for it.
            Some(principal) if nested.origin().budget.is_some() => Some(shares.wait(principal.id()).await),
            Some(principal) => Some(shares.take(principal.id()).ok_or_else(share_used_up)?),
            None => None,
        };
        let resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner).remove(&context.call);
        // A journal that nothing could resume would only be a copy of what the caller reads.
        let create = || nested.origin().may_resume.then(|| self.journals.create(&context.call)).flatten();
        let mut journal = resumed.or_else(create);
        let mut limits = script.limits.unwrap_or(self.config.limits).at_most(&self.config.limits);
        // A script that a script calls has a share of its time.
        let share = match nested.origin().budget {
            Some(budget) => Some(budget.take_cpu().ok_or_else(cpu_used_up)?),
            None => None,
        };
        limits.cpu = share.as_ref().map_or(limits.cpu, |share| share.time().min(limits.cpu));
        let tools = CallerTools::new(nested, context.call.clone(), &limits, &self.interruption);
        let kept = journal.as_mut().map(RunJournal::as_journal);
        let script = Script { limits: Some(limits), ..script.clone() };
        let report = self.runner(author).run(&script, &tools, kept).await;
        if let Some(share) = share {
            share.end(report.cpu);
        }
        if let Some(mut journal) = journal {
            journal.end(&report);
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(context.call.clone(), journal);
        }
        Ok(report)
    }
}

fn no_tools() -> ToolError {
    ToolError::failed(LocalizedText::new(
        "a script cannot be run from here: call it directly, not through another tool",
        "此处无法运行脚本：请直接调用，不要经由其他工具",
    ))
}

fn cpu_used_up() -> ToolError {
    ToolError::failed(LocalizedText::new(
        "the script and the scripts of skills that it calls have used up their CPU time: do less per script",
        "脚本及其调用的技能脚本已用完 CPU 时间：请减少每个脚本的工作量",
    ))
}

fn share_used_up() -> ToolError {
    ToolError::failed(LocalizedText::new(
        "too many of your scripts run at the same time: wait until one has ended",
        "你的脚本同时运行过多：请等其中之一结束",
    ))
}

/// The report of a script that failed as the error of its call. It is the text of the script, and reaches clients unchanged.
pub(super) fn report_error(report: &ScriptReport) -> ToolError {
    let block = localized_block(&report_notes(report));
    let members = RawObject::default()
        .with("content", RawJson::of(&[block]))
        .with("isError", true)
        .with("_meta", RawObject::default().with(meta_keys::SCRIPT, report_details(report)));
    let output = ToolOutput::from_raw(members.into_raw()).map(Box::new);
    ToolError::Failed { message: report_notes(report), output }
}

/// What there is to say beside the value; empty if there is nothing.
pub(super) fn report_notes(report: &ScriptReport) -> LocalizedText {
    LocalizedText::new(report.notes(Lang::En), report.notes(Lang::Zh))
}

/// The log and the calls, for people and programs. Models get the texts.
pub(super) fn report_details(report: &ScriptReport) -> RawObject {
    let calls: Vec<RawObject> = report
        .calls
        .iter()
        .map(|call| {
            let (status, error) = match &call.status {
                CallStatus::Succeeded => ("succeeded", None),
                CallStatus::Failed(kind) => ("failed", Some(kind)),
                CallStatus::Cancelled => ("cancelled", None),
                CallStatus::NotSent => ("not_sent", None),
            };
            let shown = RawObject::default().with("tool", call.tool.as_str()).with("status", status);
            error.into_iter().fold(shown, |shown, kind| shown.with("error", kind.as_str()))
        })
        .collect();
    let log: Vec<&str> = report.log.iter().map(|line| line.text.as_str()).collect();
    let details = RawObject::default().with("log", RawJson::of(&log)).with("calls", RawJson::of(&calls));
    let Some(failure) = report.failure() else { return details };
    let details = details.with(FAILURE_KEY, failure.kind.name());
    match failure.returned.as_ref().and_then(|returned| RawJson::parse(returned.clone()).ok()) {
        Some(returned) => details.with("returned", returned),
        None => details,
    }
}
