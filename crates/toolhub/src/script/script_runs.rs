//! Runs scripts for calls: each has a place, a journal and the tools of its caller. `run_script` and the scripts of skills share
//! the host processes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::{CallContext, CallId, NestedTools, RawJson, RawObject, ToolError};
use toolhub_script::{
    CallStatus, HostConfig, Journal, RunnerConfig, Script, ScriptLimits, ScriptReport, ScriptRunner,
};

use super::caller_tools::CallerTools;
use super::journals::{Journals, RunJournal};
use super::shares::Shares;
use crate::settings::Settings;

/// The member of an output's `_meta` with the log and the calls of a script.
pub(super) const META_KEY: &str = "toolhub/script";

/// Who wrote a script. Each kind has its own places: a script of a caller waits for the scripts of skills that it calls, and
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
    /// Created by the first script, within the runtime of the hub.
    runners: OnceLock<Runners>,
}

struct Runners {
    of_callers: ScriptRunner,
    of_skills: ScriptRunner,
}

impl ScriptRuns {
    /// `None` if the settings disable scripts. A process that ends after one call keeps no host ready.
    pub(crate) fn new(
        host: HostConfig,
        settings: &Settings,
        (home, one_shot): (&Path, bool),
    ) -> Option<Arc<Self>> {
        if !settings.script.is_enabled() {
            return None;
        }
        let config = RunnerConfig {
            limits: settings.script.limits(),
            warm_hosts: if one_shot { 0 } else { settings.script.warm_hosts() },
            max_running: settings.script.max_running(),
            ..RunnerConfig::new(host)
        };
        Some(Arc::new(Self {
            journals: Journals::in_folder(home),
            shares_of_callers: Shares::of(config.max_running),
            shares_of_skills: Shares::of(config.max_running),
            config,
            resumed: Mutex::default(),
            runners: OnceLock::new(),
        }))
    }

    /// The limits of a script.
    pub(crate) fn limits(&self) -> &ScriptLimits {
        &self.config.limits
    }

    /// Locks the journal that the run with this id has left, for its next run. Returns the arguments of that run, or `None` if
    /// there is no journal. Journals of earlier versions have no arguments, and the recorded ones are used.
    pub(crate) fn resume(&self, call: &CallId, recorded: &RawJson) -> Option<RawJson> {
        let journal = self.journals.reopen(call)?;
        let arguments = journal.arguments().unwrap_or(recorded).clone();
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner).insert(call.clone(), journal);
        Some(arguments)
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
            Runners { of_skills: of_callers.with_own_places(self.config.max_running), of_callers }
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
        (nested, call): (&dyn NestedTools, CallId),
        journal: Option<&mut dyn Journal>,
    ) -> ScriptReport {
        let tools = CallerTools::new(nested, call);
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
        let identity = context.caller.as_ref().and_then(|caller| caller.identity());
        let _place = match identity {
            Some(principal) => Some(shares.take(principal.id()).ok_or_else(share_used_up)?),
            None => None,
        };
        let resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner).remove(&context.call);
        let mut journal = resumed.or_else(|| self.journals.create(&context.call));
        let tools = CallerTools::new(nested, context.call.clone());
        let kept = journal.as_mut().map(RunJournal::as_journal);
        let report = self.runner(author).run(script, &tools, kept).await;
        if let Some(journal) = journal {
            journal.end(&report);
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

fn share_used_up() -> ToolError {
    ToolError::failed(LocalizedText::new(
        "too many of your scripts run at the same time: wait until one has ended",
        "你的脚本同时运行过多：请等其中之一结束",
    ))
}

/// What there is to say beside the value; empty if there is nothing.
pub(super) fn notes(report: &ScriptReport) -> LocalizedText {
    LocalizedText::new(report.notes(Lang::En), report.notes(Lang::Zh))
}

/// The log and the calls, for people and programs. Models get the texts.
pub(super) fn details(report: &ScriptReport) -> RawObject {
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
    RawObject::default().with("log", RawJson::of(&log)).with("calls", RawJson::of(&calls))
}
