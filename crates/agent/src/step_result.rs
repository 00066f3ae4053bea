//! What a step came to.

use std::time::Duration;

use toolhub_core::lang::{Lang, Say as _, Text};
use toolhub_core::outcome::Verification;
use toolhub_core::{Outcome, RawJson, RawObject, Source, ToolName, ToolOutput};

use crate::plan::StepId;

/// What a step came to.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// Which step.
    pub id: StepId,
    /// What it was to do.
    pub description: String,
    /// The tool that was called; another than planned where a fallback was.
    pub tool: Option<ToolName>,
    /// The arguments it was called with.
    pub arguments: Option<RawJson>,
    /// What came of the call, where one was made.
    pub outcome: Option<Outcome>,
    /// What a model is shown of it.
    pub text: String,
    /// All of it, as text.
    pub whole: String,
    /// Why it failed, if it did.
    pub error: Option<Text>,
    /// What is held of its truth.
    pub verification: Option<Verification>,
    /// How long it took.
    pub took: Duration,
}

/// The member of a text block's `_meta` that has the same text in Chinese.
const CHINESE: &str = "toolhub/zh";

/// The texts of an output, in Chinese where they have it; none where nothing has.
fn in_chinese(output: &ToolOutput) -> Option<String> {
    let chinese = |block: &RawJson| -> Option<String> {
        block.object()?.get("_meta")?.object()?.get(CHINESE)?.decode().ok()
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
    /// Whether it did what it was to do.
    pub fn success(&self) -> bool {
        self.error.is_none()
    }

    /// All of it in a language: native tools have their words in both.
    pub fn said(&self, lang: Lang) -> String {
        let native = self.sources().iter().all(|source| *source == Source::Native);
        let output = self.outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
        match output.filter(|_| native && lang == Lang::Zh) {
            Some(output) => in_chinese(output).unwrap_or_else(|| self.whole.clone()),
            None => self.whole.clone(),
        }
    }

    /// Where the answer came from.
    pub fn sources(&self) -> &[Source] {
        self.outcome.as_ref().map_or(&[], |outcome| &outcome.sources)
    }

    /// For programs.
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
            .with("error", or_null(self.error.as_ref().map(|error| RawJson::from(error.say(lang)))))
            .with("_meta", or_null(meta))
    }
}
