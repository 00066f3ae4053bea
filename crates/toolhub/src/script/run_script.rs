//! The tool `run_script`: runs a script in its own process, and returns its value.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::{
    BoxFuture, CallContext, CallId, NativeTool, NestedTools, RUN_SCRIPT, RawJson, RawObject, ToolDefinition,
    ToolError, ToolOutput,
};
use toolhub_native::localized_block;
use toolhub_script::{
    CallStatus, HostConfig, Journal, RunnerConfig, Script, ScriptLimits, ScriptOutcome, ScriptReport,
    ScriptRunner,
};

use super::caller_tools::CallerTools;
use super::journals::{Journals, RunJournal};
use super::shares::Shares;
use crate::settings::Settings;

/// The member of an output's `_meta` with the log and the calls of a script.
const META_KEY: &str = "toolhub/script";

const DEFINITION: &str = r#"{
    "name": "run_script",
    "description": "Runs a JavaScript program that calls tools, and returns only its value: use it for several calls, loops, and large results that need not be read. `await tools.SERVER.TOOL({…})` (or `tools[\"RUN_SCRIPT\"]`) returns the tool's structured content, or its text as a string; a failed call throws an error with `kind`, `message` and `hint`. `Promise.all` runs calls in parallel. The value is that of `return` or of the last expression; `console.log` is returned, too. `input` is the given data. Plain JavaScript: no imports, no network, no files, no state between scripts, no timers but `sleep(ms)`. search_tools finds tools, describe_tool tells their signatures.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "The program; top-level `await` and `return` are allowed"},
            "input": {"description": "Data for the program, as `input`"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds until the program is stopped (600)"}
        },
        "required": ["code"],
        "additionalProperties": false
    },
    "_meta": {"toolhub/tags": ["tools"]}
}"#;

/// The tool.
pub(crate) struct RunScript {
    definition: ToolDefinition,
    config: RunnerConfig,
    journals: Journals,
    shares: Shares,
    /// The journals of runs that are resumed, until their call begins.
    resumed: Mutex<HashMap<CallId, RunJournal>>,
    /// Created by the first script, within the runtime of the hub.
    runner: OnceLock<ScriptRunner>,
}

impl RunScript {
    /// `None` if the settings disable it. A process that ends after one call keeps no host ready.
    pub(crate) fn new(
        host: HostConfig,
        settings: &Settings,
        (home, one_shot): (&Path, bool),
    ) -> Option<Arc<Self>> {
        let is_disabled = settings.native.disabled.iter().any(|name| name == RUN_SCRIPT);
        if is_disabled || !settings.native.enabled || !settings.script.is_enabled() {
            return None;
        }
        let definition = ToolDefinition::parse(RawJson::parse(DEFINITION).ok()?).ok()?;
        let config = RunnerConfig {
            limits: settings.script.limits(),
            warm_hosts: if one_shot { 0 } else { settings.script.warm_hosts() },
            max_running: settings.script.max_running(),
            ..RunnerConfig::new(host)
        };
        let journals = Journals::in_folder(home);
        let shares = Shares::of(config.max_running);
        Some(Arc::new(Self {
            definition,
            config,
            journals,
            shares,
            resumed: Mutex::default(),
            runner: OnceLock::new(),
        }))
    }

    /// Locks the journal that the run with this id has left, for its next run. Returns whether there is one.
    pub(crate) fn resume(&self, call: &CallId) -> bool {
        let journal = self.journals.reopen(call);
        let is_resumable = journal.is_some();
        let mut resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner);
        resumed.extend(journal.map(|journal| (call.clone(), journal)));
        is_resumable
    }

    /// Ends the processes that wait for a script.
    pub(crate) async fn shutdown(&self) {
        if let Some(runner) = self.runner.get() {
            runner.shutdown().await;
        }
    }

    fn runner(&self) -> &ScriptRunner {
        self.runner.get_or_init(|| {
            self.journals.remove_old();
            ScriptRunner::new(self.config.clone())
        })
    }

    /// Runs the script in the arguments of a call, with the tools of its caller.
    pub(crate) async fn run(
        &self,
        arguments: &RawJson,
        (nested, call): (&dyn NestedTools, CallId),
        journal: Option<&mut dyn Journal>,
    ) -> ScriptReport {
        let tools = CallerTools::new(nested, call);
        self.runner().run(&self.script(arguments), &tools, journal).await
    }

    fn script(&self, arguments: &RawJson) -> Script {
        let members = arguments.object().unwrap_or_default();
        let seconds = members.get("timeout").and_then(|seconds| seconds.decode::<f64>().ok());
        let wall = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let input = members.get("input").cloned().unwrap_or_else(RawJson::null);
        let code = members.get("code").and_then(RawJson::text).unwrap_or_default().into_owned();
        let limits = wall.map(|wall| ScriptLimits { wall, ..self.config.limits });
        Script { code, input, limits }
    }
}

impl NativeTool for RunScript {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call<'a>(
        &'a self,
        arguments: RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Some(nested) = &context.nested else {
                return Err(ToolError::failed(LocalizedText::new(
                    "`run_script` cannot be called from here: call it directly, not through another tool",
                    "此处无法调用 `run_script`：请直接调用，不要经由其他工具",
                )));
            };
            // Scripts of a single user need no shares.
            let identity = context.caller.as_ref().and_then(|caller| caller.identity());
            let _place = match identity {
                Some(principal) => Some(self.shares.take(principal.id()).ok_or_else(share_used_up)?),
                None => None,
            };
            let resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner).remove(&context.call);
            let mut journal = resumed.or_else(|| self.journals.create(&context.call));
            let caller = (&**nested, context.call.clone());
            let report = self.run(&arguments, caller, journal.as_mut().map(RunJournal::as_journal)).await;
            if let Some(journal) = journal {
                journal.end(&report);
            }
            output(&report)
        })
    }
}

fn share_used_up() -> ToolError {
    ToolError::failed(LocalizedText::new(
        "too many of your scripts run at the same time: wait until one has ended",
        "你的脚本同时运行过多：请等其中之一结束",
    ))
}

/// The report as the result of a call: the value, and what else there is to say.
fn output(report: &ScriptReport) -> Result<ToolOutput, ToolError> {
    let notes = LocalizedText::new(report.notes(Lang::En), report.notes(Lang::Zh));
    let ScriptOutcome::Value(value) = &report.outcome else { return Err(ToolError::failed(notes)) };
    let text = value.text().map_or_else(|| value.get().to_owned(), std::borrow::Cow::into_owned);
    let mut blocks = vec![RawObject::default().with("type", "text").with("text", text)];
    if !report.notes(Lang::En).is_empty() {
        blocks.push(localized_block(&notes));
    }
    let members = RawObject::default()
        .with("content", RawJson::of(&blocks))
        .with("_meta", RawObject::default().with(META_KEY, details(report)));
    ToolOutput::from_raw(members.into_raw()).ok_or(ToolError::Internal)
}

/// The log and the calls, for people and programs. Models get the texts.
fn details(report: &ScriptReport) -> RawObject {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_parses() {
        let host = HostConfig::of_current_program().unwrap();
        let tool = RunScript::new(host, &Settings::default(), (Path::new("."), false)).unwrap();
        assert_eq!(tool.definition().name().as_str(), RUN_SCRIPT);
        let script =
            tool.script(&RawJson::parse(r#"{"code": "1", "input": {"a": 2}, "timeout": 2.5}"#).unwrap());
        assert_eq!((script.code.as_str(), script.input.get()), ("1", r#"{"a": 2}"#));
        assert_eq!(script.limits.unwrap().wall, Duration::from_millis(2500));
    }
}
