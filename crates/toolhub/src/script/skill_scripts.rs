//! Scripts of skills that call tools: they run like scripts of `run_script`, with their arguments as `input`.

use std::sync::Arc;

use toolhub_core::{BoxFuture, CallContext, RawObject, ToolError, ToolOutput, meta_keys};
use toolhub_native::localized_block;
use toolhub_script::{Script, ScriptOutcome, ScriptReport};
use toolhub_skills::{CallingScript, CallingScripts};

use super::output_meta::VALUE_KEY;
use super::script_runs::{ScriptAuthor, ScriptRuns, report_details, report_error, report_notes};

/// Runs the scripts of skills.
pub(crate) struct SkillScripts(pub(crate) Arc<ScriptRuns>);

impl CallingScripts for SkillScripts {
    fn run<'a>(
        &'a self,
        script: CallingScript,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let CallingScript { code, input } = script;
            let script = Script { code, arguments: Some(input.clone()), input, limits: None };
            let report = self.0.run_for_call(ScriptAuthor::Skill, &script, context).await?;
            output(&report)
        })
    }
}

/// The report as the result of a tool: the value alone, with the log in `_meta`. Calls that the script did not await are
/// named, since they may have run.
fn output(report: &ScriptReport) -> Result<ToolOutput, ToolError> {
    let ScriptOutcome::Value(value) = &report.outcome else { return Err(report_error(report)) };
    let output = match value.text() {
        Some(text) => ToolOutput::text(text.into_owned()),
        None => ToolOutput::json(value.clone()),
    };
    let mut members = output.raw().object().unwrap_or_default();
    if report.unfinished_calls().next().is_some() {
        let mut blocks = output.blocks();
        blocks.push(localized_block(&report_notes(report)).into_raw());
        members.set("content", toolhub_core::RawJson::of(&blocks));
    }
    let mut details = report_details(report);
    if value.text().is_none() && !value.is_object() {
        // Structured content is an object; a script that calls this one gets the value itself.
        details.set(VALUE_KEY, value.clone());
    }
    members.set("_meta", RawObject::default().with(meta_keys::SCRIPT, details));
    ToolOutput::from_raw(members.into_raw()).ok_or(ToolError::Internal)
}
