//! The result of a step.

use std::time::Duration;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::{Outcome, RawJson, RawObject, Source, ToolName, ToolOutput, meta_keys};

use toolhub_planner::plan::StepId;

/// The result of a step.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// The id of the step.
    pub id: StepId,
    /// The description of the step.
    pub description: String,
    /// The tool that was called. Differs from the planned tool after a fallback.
    pub tool: Option<ToolName>,
    /// The arguments of the call.
    pub arguments: Option<RawJson>,
    /// The outcome of the call, if one was made.
    pub outcome: Option<Outcome>,
    /// The result as text, truncated for the model.
    pub text: String,
    /// The complete result as text.
    pub full_output: String,
    /// The error, if the step failed.
    pub error: Option<LocalizedText>,
    /// Result of the verification, if one was made.
    pub verification: Option<OutcomeVerification>,
    /// Duration of the step.
    pub took: Duration,
}

/// The texts of an output, in Chinese if translated; `None` if no block has a translation.
fn in_chinese(output: &ToolOutput) -> Option<String> {
    let chinese = |block: &RawJson| -> Option<String> {
        block.object()?.get("_meta")?.object()?.get(meta_keys::CHINESE)?.decode().ok()
    };
    let plain = |block: &RawJson| -> Option<String> { block.object()?.get("text")?.decode().ok() };
    let blocks = output.blocks();
    blocks.iter().any(|block| chinese(block).is_some()).then(|| {
        let texts: Vec<String> =
            blocks.iter().filter_map(|block| chinese(block).or_else(|| plain(block))).collect();
        texts.join("\n")
    })
}

impl StepResult {
    /// Whether the step succeeded.
    pub fn success(&self) -> bool {
        self.error.is_none()
    }

    /// The complete result in a language. Only native tools provide translations.
    pub fn localized_text(&self, lang: Lang) -> String {
        let native = self.sources().iter().all(|source| *source == Source::Native);
        let output = self.outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
        match output.filter(|_| native && lang == Lang::Zh) {
            Some(output) => in_chinese(output).unwrap_or_else(|| self.full_output.clone()),
            None => self.full_output.clone(),
        }
    }

    /// The sources of the result.
    pub fn sources(&self) -> &[Source] {
        self.outcome.as_ref().map_or(&[], |outcome| &outcome.sources)
    }

    /// The JSON form.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let or_null = |value: Option<RawJson>| value.unwrap_or_else(RawJson::null);
        let outcome = self.outcome.as_ref().map(|outcome| outcome.to_json(lang));
        let result = outcome.as_ref().and_then(|outcome| outcome.get("result").cloned());
        let meta = outcome.as_ref().and_then(|outcome| outcome.get("_meta").cloned());
        let text = || (!self.text.is_empty()).then(|| RawJson::from(self.text.clone()));
        RawObject::default()
            .with("id", self.id.as_str())
            .with("description", self.description.as_str())
            .with("tool", or_null(self.tool.as_ref().map(|tool| RawJson::from(tool.as_str()))))
            .with("arguments", or_null(self.arguments.clone()))
            .with("success", self.success())
            .with("result", or_null(result.filter(|value| value.get() != "null").or_else(text)))
            .with("error", or_null(self.error.as_ref().map(|error| RawJson::from(error.localize(lang)))))
            .with("_meta", or_null(meta))
    }
}
