//! The tool `run_script`: runs a script in its own process, and returns its value.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::lang::Lang;
use toolhub_core::{
    BoxFuture, CallContext, CallId, NativeTool, NestedTools, RUN_SCRIPT, RawJson, RawObject, ToolDefinition,
    ToolError, ToolOutput, meta_keys,
};
use toolhub_native::localized_block;
use toolhub_script::{Script, ScriptLimits, ScriptOutcome, ScriptReport};

use super::script_runs::{ScriptAuthor, ScriptRuns, report_details, report_error, report_notes};
use crate::settings::Settings;

const DEFINITION: &str = r#"{
    "name": "run_script",
    "description": "Runs a JavaScript program that calls tools, and returns only its value: use it for several calls, loops, and large results that need not be read. `await tools.SERVER.TOOL({…})` (or `tools[\"NAME\"]`) returns the tool's structured content, or its text as a string; a failed call throws an error with `kind`, `message` and `hint`. `Promise.all` runs calls in parallel. The value is that of `return` or of the last expression; `console.log` is returned, too. `input` is the given data. Plain JavaScript: no imports, no network, no files, no state between scripts, no timers but `sleep(ms)`. search_tools finds tools, describe_tool tells their signatures.",
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
    runs: Arc<ScriptRuns>,
}

impl RunScript {
    /// `None` if the settings disable it.
    pub(crate) fn new(runs: &Arc<ScriptRuns>, settings: &Settings) -> Option<Arc<Self>> {
        let is_disabled = settings.native.disabled.iter().any(|name| name == RUN_SCRIPT);
        if is_disabled || !settings.native.enabled {
            return None;
        }
        let definition = ToolDefinition::parse(RawJson::parse(DEFINITION).ok()?).ok()?;
        Some(Arc::new(Self { definition, runs: Arc::clone(runs) }))
    }

    /// Runs the script in the arguments of a call, with these tools and without a journal.
    pub(crate) async fn run(
        &self,
        arguments: &RawJson,
        nested: &dyn NestedTools,
        call: CallId,
    ) -> ScriptReport {
        self.runs.run(&self.script(arguments), nested, call, None).await
    }

    fn script(&self, arguments: &RawJson) -> Script {
        let members = arguments.object().unwrap_or_default();
        let seconds = members.get("timeout").and_then(|seconds| seconds.decode::<f64>().ok());
        let wall = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let input = members.get("input").cloned().unwrap_or_else(RawJson::null);
        let code = members.get("code").and_then(RawJson::text).unwrap_or_default().into_owned();
        let limits = wall.map(|wall| ScriptLimits { wall, ..*self.runs.limits() });
        Script { code, input, limits, arguments: Some(arguments.clone()) }
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
            let script = self.script(&arguments);
            output(&self.runs.run_for_call(ScriptAuthor::Caller, &script, context).await?)
        })
    }
}

/// The report as the result of a call: the value, and what else there is to say.
fn output(report: &ScriptReport) -> Result<ToolOutput, ToolError> {
    let ScriptOutcome::Value(value) = &report.outcome else { return Err(report_error(report)) };
    let text = value.text().map_or_else(|| value.get().to_owned(), std::borrow::Cow::into_owned);
    let mut blocks = vec![RawObject::default().with("type", "text").with("text", text)];
    if !report.notes(Lang::En).is_empty() {
        blocks.push(localized_block(&report_notes(report)));
    }
    let members = RawObject::default()
        .with("content", RawJson::of(&blocks))
        .with("_meta", RawObject::default().with(meta_keys::SCRIPT, report_details(report)));
    ToolOutput::from_raw(members.into_raw()).ok_or(ToolError::Internal)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolhub_script::HostConfig;

    use super::*;

    #[test]
    fn definition_parses() {
        let (host, settings) = (HostConfig::of_current_program().unwrap(), Settings::default());
        let runs = ScriptRuns::new(host, &settings, Path::new("."), false, None).unwrap();
        let tool = RunScript::new(&runs, &settings).unwrap();
        assert_eq!(tool.definition().name().as_str(), RUN_SCRIPT);
        let script =
            tool.script(&RawJson::parse(r#"{"code": "1", "input": {"a": 2}, "timeout": 2.5}"#).unwrap());
        assert_eq!((script.code.as_str(), script.input.get()), ("1", r#"{"a": 2}"#));
        assert_eq!(script.limits.unwrap().wall, Duration::from_millis(2500));
    }
}
